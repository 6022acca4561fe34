"""The dense oracle against an independent dense solution: M from energies, J and drift from differences."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import (
    EPS,
    FIVE_POINT,
    along,
    assert_close,
    body,
    closed_at,
    col,
    cond,
    derivative,
    motion,
    random_model,
    random_state,
)
from linkwork.algorithms.constrained.kkt import kkt
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.energy import kinetic_energy
from linkwork.algorithms.tree.kinematics import frame_jacobian
from linkwork.algorithms.tree.rnea import rnea
from linkwork.constraints import jacobian, velocity_error
from linkwork.model import Builder, Placement

SEEDS = range(5)


def assembled(model, q, v, tau):
    """M, J, the free acceleration and k, by hand: nothing of crba, of the rows' Jacobian or of their drift."""

    def energy(x):
        return kinetic_energy(motion(model, q, x))[0, 0]

    e = np.eye(model.nv)
    single = [energy(x) for x in e]
    M = np.array([[energy(x + y) - single[i] - single[j] for j, y in enumerate(e)] for i, x in enumerate(e)])
    J = np.hstack([velocity_error(motion(model, q, x)) for x in e])
    zero = np.zeros(model.nv)
    drift = derivative(lambda t: velocity_error(along(model, q, v, zero)(t)))[:, 0]
    free = np.linalg.solve(M, tau - rnea(motion(model, q, v), None)[:, 0])
    return M, J, free, -drift


def gauss(M, J, free, k, rcond=1e-9):
    """The acceleration nearest to the free one in the norm of M among those with the least |J a - k|."""
    w, Q = np.linalg.eigh(M)
    root = Q / np.sqrt(w) @ Q.T
    y = np.linalg.lstsq(J @ root, k - J @ free, rcond=rcond)[0]
    a = free + root @ y
    return a, M @ (a - free)


def check(model, q, v, tau):
    M, J, free, k = assembled(model, q, v, tau)
    a, force = gauss(M, J, free, k)
    m = motion(model, q, v)
    mine, lam = kkt(m, col(tau))
    L = np.linalg.cholesky(M)
    kappa = cond(np.linalg.solve(L, J.T)) * cond(M)
    size = max(np.abs(a).max(), np.abs(free).max(), np.abs(k).max())
    assert_close(mine[:, 0], a, kappa, eps=FIVE_POINT, scale=size)
    assert_close((jacobian(m).T @ lam)[:, 0], force, kappa, eps=FIVE_POINT, scale=size)
    # the equation of motion itself, to rounding
    assert_close(crba(m) @ mine + rnea(m, None), col(tau) + jacobian(m).T @ lam, kappa, scale=size)
    return mine, lam


@pytest.mark.parametrize("seed", SEEDS)
def test_weld_hinge_and_rod(seed):
    model = random_model(seed, 7, base="free")
    q, v, tau = random_state(model, seed)
    model = closed_at(model, q, "f6", "l2", "meet").with_constraints(
        lw.Hinge("f6", "meet"), lw.surface("f3"), lw.Distance("f1", "f5", 0.9)
    )
    check(model, q, v * 0, tau)
    model = model.without_constraints().with_constraints(lw.Distance("f1", "f5", 0.9), lw.CentreOfMass())
    check(model, q, v, tau)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_constraints_it_is_aba(seed):
    model = random_model(seed, 7)
    q, v, tau = random_state(model, seed)
    f = col(np.random.default_rng(seed).normal(size=6 * model.nlinks))
    m = motion(model, q, v)
    a, lam = kkt(m, col(tau), f)
    assert lam.shape == (0, 1)
    assert_close(a, aba(m, col(tau), f), cond(crba(m)), scale=10.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_external_forces_are_joint_forces(seed):
    model = random_model(seed, 6).with_constraints(lw.point("f4"))
    q, v, tau = random_state(model, seed)
    m = motion(model, q, v)
    f = np.random.default_rng(seed).normal(size=6 * model.nlinks)
    kappa = cond(crba(m)) * cond(jacobian(m))
    felt = sum(
        frame_jacobian(m, model.frame(model.links[i].name)).T @ col(f[6 * i - 6 : 6 * i]) for i in model.topology.links
    )
    for x, y in zip(kkt(m, col(tau), col(f)), kkt(m, col(tau) + felt), strict=True):
        assert_close(x, y, kappa, scale=100.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_repeated_rows_change_neither_accelerations_nor_forces(seed):
    model = random_model(seed, 7, base="free")
    q, v, tau = random_state(model, seed)
    once = model.with_constraints(lw.surface("f3"), lw.Connect("f5", "f1"))
    twice = once.with_constraints(lw.Weld("f3", name="again"), lw.Connect("f5", "f1", name="too"), lw.point("f3"))
    J = jacobian(motion(once, q))
    v = v - np.linalg.pinv(J) @ (J @ v)  # where weld and point hold, the point asks for nothing more than the weld
    (a, lam), (b, mu) = (kkt(motion(m, q, v), col(tau)) for m in (once, twice))
    J, K = (jacobian(motion(m, q)) for m in (once, twice))
    L = np.linalg.cholesky(crba(motion(model, q)))
    kappa = cond(np.linalg.solve(L, J.T)) * cond(L) ** 2
    assert_close(b, a, kappa, scale=100.0)
    assert_close(K.T @ mu, J.T @ lam, kappa, scale=100.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_conflicting_rows_are_met_in_the_least_squares_sense(seed):
    """Two rows that ask the same acceleration to be +1 and +3: it becomes 2."""
    model = random_model(seed, 4, base="free")
    q, _, tau = random_state(model, seed)
    K = np.eye(6)[:1]
    both = model.with_constraints(lw.LinkRows({"l0": K}, [1.0]), lw.LinkRows({"l0": K}, [3.0]))
    middle = model.with_constraints(lw.LinkRows({"l0": K}, [2.0]))
    v = np.zeros(model.nv)
    (a, lam), (b, mu) = (kkt(motion(m, q, v), col(tau)) for m in (both, middle))
    kappa = cond(crba(motion(model, q)))
    assert_close(a, b, kappa, scale=100.0)
    assert_close(lam.sum(), mu.sum(), kappa, scale=100.0)
    assert_close(a[0, 0], 2.0, kappa, scale=100.0)


def four_bar(cut):
    """Cranks of 0.3 m, coupler and ground of 0.5 m; all hinges about z. Closed at q = [1, -1, ...]: a parallelogram."""
    b = Builder("four-bar", gravity=np.array([0.0, -9.81, 0.0]))
    rng = np.random.default_rng(0)
    b.link("crank", "world", "revolute", axis="z", inertia=body(rng))
    b.link("coupler", "crank", "revolute", axis="z", placement=Placement.at((0.3, 0, 0)), inertia=body(rng))
    b.link("rocker", "world", "revolute", axis="z", placement=Placement.at((0.5, 0, 0)), inertia=body(rng))
    b.frame("coupler_end", "coupler", Placement.at((0.5, 0, 0)))
    b.frame("rocker_end", "rocker", Placement.at((0.3, 0, 0)))
    return b.build().with_constraints(lw.Closure("coupler_end", "rocker_end", cut, axis="z"))


@pytest.mark.parametrize("cut", ["revolute", "spherical", "cylindrical", "point_on_line"])
def test_a_planar_loop_may_be_closed_by_any_joint_that_holds_its_plane(cut):
    """Five, three, four or two rows, of rank two: the same accelerations and joint-space forces."""
    model, reference = four_bar(cut), four_bar("point_on_line")
    q = np.array([0.8, -0.8, 0.8])
    J = jacobian(motion(model, q))
    assert np.linalg.matrix_rank(J, tol=1e-12) == 2
    v = np.linalg.svd(J)[2][-1] * 2.0
    tau = np.array([0.3, -0.2, 0.5])
    mine, ref = (kkt(motion(m, q, v), col(tau)) for m in (model, reference))
    assert_close(mine[0], ref[0], cond(J) * cond(crba(motion(model, q))), scale=100.0)
    assert_close(J.T @ mine[1], jacobian(motion(reference, q)).T @ ref[1], cond(J), scale=100.0)
    check(model, q, v, tau)


@pytest.mark.parametrize("cut", ["revolute", "point_on_line"])
def test_a_singular_configuration_has_an_answer(cut):
    """The parallelogram folded flat: the two rows in the plane lose a rank, and both branches are open."""
    model = four_bar(cut)
    q = np.zeros(3)
    J = jacobian(motion(model, q))
    assert np.linalg.matrix_rank(J, tol=1e-12) == 1
    check(model, q, np.zeros(3), np.array([0.3, -0.2, 0.5]))


def test_a_fully_constrained_arm_stands_still():
    """More rows than freedom: an arm with three hinges welded at its end carries its weight and any torque."""
    b = Builder()
    rng = np.random.default_rng(1)
    for i in range(3):
        b.link(
            f"l{i}",
            f"l{i - 1}" if i else "world",
            "revolute",
            axis="xyz"[i],
            placement=Placement.at((0.3, 0.1, 0)),
            inertia=body(rng),
        )
    model = b.build().with_constraints(lw.Weld("l2"))
    q, _v, tau = random_state(model, 0)
    m = motion(model, q, np.zeros(3))
    a, lam = kkt(m, col(tau))
    assert_close(a, np.zeros((3, 1)), cond(crba(m)) * cond(jacobian(m)), scale=10.0)
    assert_close(jacobian(m).T @ lam, rnea(m, None) - col(tau), cond(crba(m)), scale=10.0)


def test_lam_is_the_one_of_least_norm():
    """Two equal rows share the force."""
    model = random_model(0, 4, base="free")
    twice = model.with_constraints(lw.point("f2"), lw.point("f2"))
    q, v, tau = random_state(model, 0)
    _, lam = kkt(motion(twice, q, v), col(tau))
    assert_close(lam[:3], lam[3:], 1e3 * cond(crba(motion(model, q))), scale=10.0)
    assert np.abs(lam).max() > EPS
