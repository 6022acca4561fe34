"""Delassus matrices with damping and modes, operational-space inertias, factors, and the KKT system."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError, SingularError
from linkwork.robots.mechanisms import humanoid

EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def standing():
    model = humanoid(hands=False)
    return model.with_constraints(lw.surface("left_foot"), lw.point("right_foot"))


@pytest.fixture(scope="module")
def states(standing):
    rng = np.random.default_rng(0)
    return np.array([standing.random_q(rng) for _ in range(11)]), rng.normal(size=(11, standing.rows))


def dense(model, q):
    """J M^-1 J^T from the mass matrix and the Jacobian, and the error that rounding may cause."""
    M, J = lw.mass_matrix(model)(q).M, lw.constraint_jacobian(model)(q).J
    A = J @ np.linalg.solve(M, np.swapaxes(J, -1, -2))
    return A, 100 * EPS * np.max(np.linalg.cond(M)) * np.max(np.linalg.norm(A, axis=(-2, -1)))


@pytest.mark.parametrize("method", ["pv", "ltl", "kkt_cholesky"])
def test_damping_and_modes_of_each_lane(standing, states, method):
    q, _ = states
    A, error = dense(standing, q)
    rng = np.random.default_rng(1)
    damping, active = rng.uniform(0, 0.1, (len(q), 1)), rng.integers(0, 2, (len(q), 2)).astype(float)
    found = lw.delassus(standing, method=method, damping=True, modes=True)(q, damping, active).matrix
    on = np.repeat(active, [c.rows for c in standing.constraints], axis=1)
    wanted = A * on[:, :, None] * on[:, None, :] + damping[:, :, None] * np.eye(standing.rows)
    assert np.abs(found - wanted).max() < error


def test_inertia_factor_and_solve(standing, states):
    q, b = states
    A, error = dense(standing, q)
    bound = error * np.max(np.linalg.cond(A)) * np.max(np.linalg.norm(np.linalg.inv(A), axis=(-2, -1))) ** 2
    wanted = np.linalg.inv(A)
    assert np.abs(lw.operational_space_inertia(standing, output="matrix")(q).matrix - wanted).max() < bound
    force = np.einsum("bij,bj->bi", wanted, b)
    bound = bound * np.abs(b).max() * standing.rows
    assert np.abs(lw.operational_space_inertia(standing)(q, b).force - force).max() < bound
    factor = lw.operational_space_inertia(standing, output="factor")(q).factor
    assert np.abs(lw.factored_solve(standing)(factor, b).force - force).max() < bound


def test_constraints_that_are_switched_off_exert_no_force(standing, states):
    q, b = states
    one = standing.without_constraints().with_constraints(standing.constraints[0])
    off = np.array([1.0, 0.0])
    force = lw.operational_space_inertia(standing, modes=True)(q, b, off).force
    alone = lw.operational_space_inertia(one)(q, b[:, :6]).force
    assert not force[:, 6:].any()
    assert force[:, :6] == pytest.approx(alone, rel=1e-8)
    inertia = lw.operational_space_inertia(standing, modes=True, output="matrix")(q, off).matrix
    assert not inertia[:, 6:].any()
    assert not inertia[:, :, 6:].any()
    assert np.einsum("bij,bj->bi", inertia, b)[:, :6] == pytest.approx(alone, rel=1e-8)


def test_redundant_rows_need_damping(standing, states):
    q, b = states
    twice = standing.with_constraints(lw.point("left_foot"))
    b = np.hstack([b, b[:, :3]])
    with pytest.raises(SingularError):
        lw.operational_space_inertia(twice, method="ltl")(q, b)
    with pytest.raises(SingularError):
        lw.operational_space_inertia(twice, method="ltl", output="factor", backend="numpy")(q)
    with pytest.raises(SingularError):
        lw.kkt_solve(twice, diagonal=True, backend="numpy")(q, np.zeros(twice.nv), b)
    A, _ = dense(twice, q)
    force = lw.operational_space_inertia(twice, method="ltl", damping=True)(q, b, [1e-3]).force
    left = np.einsum("bij,bj->bi", A, force) + 1e-3 * force - b
    assert np.abs(left).max() < 1e3 * EPS * np.linalg.norm(A, axis=(-2, -1)).max() * np.abs(force).max()


def test_an_operator_has_neither_damping_nor_modes(standing):
    with pytest.raises(InputError, match="forms no matrix"):
        lw.delassus(standing, method="pv_fast", damping=True)
    with pytest.raises(InputError, match="forces without damping"):
        lw.operational_space_inertia(standing, method="pv_fast", output="matrix")


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_the_kkt_system(standing, states, diagonal, backend):
    q, b = states
    rng = np.random.default_rng(2)
    f, weights, mu = rng.normal(size=(len(q), standing.nv)), rng.uniform(1, 2, standing.nv), 1e-3
    more = (weights,) if diagonal else ()
    x, lam = lw.kkt_solve(standing, diagonal=diagonal, backend=backend)(q, f, b, [mu], *more)
    J = lw.constraint_jacobian(standing)(q).J
    M = np.diag(weights) if diagonal else lw.mass_matrix(standing)(q).M
    size = np.abs(M).max() * np.abs(x).max() + np.abs(J).max() * np.abs(lam).max() * standing.rows
    kappa = np.max(np.linalg.cond(M)) if not diagonal else 2.0
    error = (M @ x[:, :, None])[..., 0] - f - np.einsum("bij,bi->bj", J, lam)
    assert np.abs(error).max() < 100 * EPS * kappa * size
    assert np.abs(np.einsum("bij,bj->bi", J, x) + mu * lam - b).max() < 100 * EPS * kappa * size


def test_an_armature_of_a_free_base_counts_where_limbs_are_solved_before_it():
    """`pv` and `pv_fast` eliminate the base last and at once; it was 8e-5 and 1e-2 off (seed 702968 of the fuzzing)."""
    model = humanoid(hands=False).with_armature("root", [3.0, 5.0, 2.0, 0.5, 0.7, 0.2])
    model = model.with_constraints(lw.surface("left_foot"), lw.surface("right_foot"))
    rng = np.random.default_rng(0)
    q, v, tau, b = model.random_q(rng), *(rng.normal(size=n) for n in (model.nv, model.nv, 12))
    wanted = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a
    A, error = dense(model, q)
    kappa = np.linalg.cond(A) * np.linalg.cond(lw.mass_matrix(model, backend="numpy")(q).M)
    assert np.abs(lw.forward_dynamics(model, method="pv", backend="numpy")(q, v, tau).a - wanted).max() < (
        100 * EPS * kappa * np.abs(wanted).max()
    )
    found = lw.delassus(model, method="pv_fast", backend="numpy")(q, b)
    assert np.abs(found.multiplied - A @ b).max() < 12 * error * np.abs(b).max()
