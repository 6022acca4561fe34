"""Constrained methods as machine code: lanes, float32, contact modes, impulses."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms import registry
from linkwork.robots import mechanisms as mech

FEET = ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")
METHODS = [m for m in registry.methods("forward_dynamics").values() if m.rows != "none" and m.name != "kkt"]
SWITCHED = [m for m in METHODS if m.modes and not m.soft]


def quadruped() -> lw.Model:
    return mech.quadruped().with_constraints(*(lw.point(f) for f in FEET))


def walker(feet: int = 2) -> lw.Model:
    """A quadruped without its hind legs."""
    model = mech.quadruped()
    links = model.links[:8]
    front = replace(model, links=links, frames={n: x for n, x in model.frames.items() if x.link < len(links)})
    return front.with_constraints(*(lw.point(f) for f in FEET[:feet]))


def states(model: lw.Model, n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_q(rng) for _ in range(n)])
    return q, rng.normal(size=(n, model.nv)), rng.normal(size=(n, model.nv)) * 5


def error(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_kernels_agree_with_numpy_in_batches_and_alone(method) -> None:
    model = walker()
    options = {"R": 1e-3} if method.soft else {}
    q, v, tau = states(model, 11)
    reference = lw.forward_dynamics(model, method=method.name, backend="numpy", **options)(q, v, tau)
    fd = lw.forward_dynamics(model, method=method.name, **options)
    result, alone = fd(q, v, tau), fd(q[3], v[3], tau[3])
    bound = 1e-11 if method.prox is None else 3e-8
    assert error(result.a, reference.a) < bound
    assert error(result.lam, reference.lam) < bound
    assert error(alone.a, reference.a[3]) < bound
    if method.prox is not None:
        assert np.array_equal(result.iterations, reference.iterations)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_traces_agree_with_numpy(method) -> None:
    model = walker()
    options = {"R": 1e-3} if method.soft else {}
    q, v, tau = (x[0] for x in states(model, 1))
    made = [lw.forward_dynamics(model, method=method.name, backend=b, **options) for b in ("casadi", "numpy")]
    traced, reference = (fd(q, v, tau).a for fd in made)
    assert error(traced, reference) < (1e-11 if method.prox is None else 3e-8)


@pytest.mark.parametrize("method", ["constrained_aba", "pv_early", "pv", "lcaba"])
def test_float32(method) -> None:
    """Single precision with a penalty that suits it: mu eps is then about 1e-3."""
    model = walker()
    q, v, tau = states(model, 9)
    prox = {} if registry.methods("forward_dynamics")[method].prox is None else {"prox": lw.Prox(1e3, 1e-3, 20)}
    a = lw.forward_dynamics(model, method=method, dtype="float32", **prox)(q, v, tau).a
    assert a.dtype == np.float32
    reference = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a
    assert error(a, reference) < 5e-3


@pytest.mark.parametrize("method", SWITCHED, ids=lambda m: m.name)
def test_one_kernel_serves_all_sixteen_contact_modes_at_once(method) -> None:
    """Each lane in another mode; a constraint switched off is as if it were not there."""
    model = quadruped()
    modes = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    q, v, tau = states(model, 16)
    result = lw.forward_dynamics(model, method=method.name, modes=True)(q, v, tau, modes)
    for i, mode in enumerate(modes):
        kept = [c for c, on in zip(model.constraints, mode, strict=True) if on]
        alone = model.without_constraints().with_constraints(*kept)
        reference = lw.forward_dynamics(alone, method="kkt", backend="numpy")(q[i], v[i], tau[i])
        assert error(result.a[i], reference.a) < 3e-8, mode
        on = np.repeat(mode > 0, 3)
        assert np.all(result.lam[i][~on] == 0)
        if on.any():
            assert error(result.lam[i][on], reference.lam) < 3e-7, mode


def test_one_kernel_equals_the_kernels_compiled_for_each_mode() -> None:
    model = walker()
    q, v, tau = states(model, 4)
    fd = lw.forward_dynamics(model, method="constrained_aba", modes=True)
    for mode in itertools.product([0.0, 1.0], repeat=2):
        kept = [c for c, on in zip(model.constraints, mode, strict=True) if on]
        alone = lw.forward_dynamics(model.without_constraints().with_constraints(*kept), method="constrained_aba")
        assert error(fd(q, v, tau, np.array(mode)).a, alone(q, v, tau).a) < 1e-8


def test_soft_rows_can_be_switched_too() -> None:
    model = walker()
    q, v, tau = states(model, 3)
    one = lw.forward_dynamics(walker(1), method="pv_soft", R=1e-4)(q, v, tau)
    two = lw.forward_dynamics(model, method="pv_soft", R=1e-4, modes=True)(q, v, tau, np.array([1.0, 0.0]))
    assert error(two.a, one.a) < 1e-11


@pytest.mark.parametrize("restitution", [0.0, 0.4])
def test_impulses_stop_or_reverse_the_feet_and_lose_energy(restitution) -> None:
    model = quadruped()
    q, v, _ = states(model, 6)
    after, impulse = lw.impulse(model, restitution=restitution)(q, v)
    M, J = lw.mass_matrix(model)(q).M, lw.constraint_jacobian(model)(q).J
    before, behind = (np.einsum("bij,bj->bi", J, x) for x in (v, after))
    np.testing.assert_allclose(behind, -restitution * before, atol=1e-7)
    jump = np.einsum("bij,bj->bi", M, after - v)
    np.testing.assert_allclose(jump, np.einsum("bij,bi->bj", J, impulse), atol=1e-6 * np.abs(jump).max())
    energy = [0.5 * np.einsum("bi,bij,bj->b", x, M, x) for x in (v, after)]
    assert np.all(energy[1] <= energy[0] * (1 + 1e-9))


def test_impulse_refuses_impossible_restitution() -> None:
    with pytest.raises(lw.LinkworkError, match="between 0"):
        lw.impulse(quadruped(), restitution=1.5)


def test_loops_compiled() -> None:
    model = mech.chain_of_loops(2)
    rng = np.random.default_rng(1)
    q = np.tile(model.neutral(), (5, 1))
    v, tau = np.zeros((5, model.nv)), rng.normal(size=(5, model.nv))
    reference = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a
    for method in ("lcaba", "prox_bbo", "bbo", "prox_ltl"):
        assert error(lw.forward_dynamics(model, method=method)(q, v, tau).a, reference) < 1e-7, method


def test_packed_mass_matrix() -> None:
    model = mech.humanoid(hands=False)
    q = np.array([model.random_q(s) for s in range(3)])
    M = lw.mass_matrix(model)(q).M
    rows, columns = lw.mass_pattern(model)
    again = np.zeros_like(M)
    entries = lw.mass_matrix(model, packed=True)(q).entries
    again[:, rows, columns] = entries
    again[:, columns, rows] = entries
    np.testing.assert_allclose(again, M, rtol=1e-13, atol=1e-13)
