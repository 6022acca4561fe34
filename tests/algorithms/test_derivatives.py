"""Analytical derivatives against differentiated programs (exact) and against differences along `integrate`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from helpers import EPS, FIVE_POINT, assert_close, body, col, cond, constraints_of, derivative, motion, random_model
from helpers import random_state as state_of
from linkwork.algorithms.constrained.kkt import joint_space, kkt
from linkwork.algorithms.derivatives.base_frame_motion import Rooted
from linkwork.algorithms.derivatives.propagated_solution import JointSpace, Sweeps
from linkwork.algorithms.derivatives.rnea_derivatives import placed, rnea_derivatives
from linkwork.algorithms.derivatives.rows_inverse import REDUNDANT, RowsInverse
from linkwork.algorithms.tree.crba import assemble, crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.numpy_ import NUMPY
from linkwork.functions.differentiation.dense_derivatives import DenseDerivatives
from linkwork.functions.differentiation.jacobians import Jacobians
from linkwork.functions.differentiation.motion_equations import MotionEquations
from linkwork.joints import KINDS
from linkwork.robots import mechanisms

SEEDS = range(6)
ONE_OF_EACH = [k for k in KINDS if k != "fixed"]


def unusual(seed: int) -> lw.Model:
    """All joints, a free joint with an armature in its parent's axes, links that gravity pulls in part."""
    model = random_model(seed, 7)
    rng = np.random.default_rng(seed)
    links = [model.links[0]]
    for link in model.links[1:]:
        if rng.random() < 0.4:
            link = replace(link, weightless=body(rng))
        if link.joint.kind == "free":
            link = replace(link, joint=lw.joints.Free("parent"), armature=np.array([0.3] * 3 + [0.1] * 3))
        links.append(link)
    return replace(model, links=tuple(links))


def by_columns(f, n: int) -> np.ndarray:
    return np.array([derivative(lambda h, e=e: f(h * e)) for e in np.eye(n)]).T


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_of_any_tree(seed):
    model = unusual(seed)
    q, v, a = state_of(model, seed)
    fext = np.random.default_rng(seed).normal(size=6 * model.nlinks)
    m = motion(model, q, v)
    rooted = Rooted(m)
    forces = {i: m.felt(i, col(fext[6 * i - 6 : 6 * i])) for i in model.topology.links}
    f = rooted.forces(rooted.accelerations(col(a)), forces)
    assert_close(rooted.tau(f, col(a)), rnea(m, col(a), col(fext)), scale=100)
    assert_close(assemble(m, rooted.mass()), crba(m), scale=10)

    d = rnea_derivatives(rooted, col(a), forces)

    def tau(dq, dv):
        return rnea(motion(model, model.integrate(q, dq), v + dv), col(a), col(fext))[:, 0]

    zero = np.zeros(model.nv)
    expected = by_columns(lambda x: tau(x, zero), model.nv), by_columns(lambda x: tau(zero, x), model.nv)
    for found, judged in zip((d.dq, d.dv), expected, strict=True):
        assert_close(placed(m, found), judged, scale=float(np.abs(judged).max()) * 10, eps=FIVE_POINT)


@pytest.mark.parametrize("axes", ["link", "parent"])
def test_what_free_bases_take_of_their_columns(axes):
    """With M times that it is all of dID: of two trees with armatures, partly weightless, beside a third one."""
    rng, b = np.random.default_rng(2), lw.Builder()
    rotors = np.array([0.3] * 3 + [0.1] * 3)
    for n, joint in enumerate((lw.joints.Free(axes), lw.joints.Free(axes), "revolute")):
        armature = rotors if n < 2 else 0.0
        b.link(f"base{n}", joint=joint, inertia=body(rng), weightless=body(rng), armature=armature)
        b.link(f"arm{n}", parent=f"base{n}", joint="universal", inertia=body(rng))
        b.link(f"hand{n}", parent=f"arm{n}", joint="free" if n else "revolute", inertia=body(rng))
    model = b.build()
    q, v, a = state_of(model, 3)
    m = motion(model, q, v)
    whole, left = (rnea_derivatives(Rooted(m), col(a), {}, but_for_bases=x) for x in (False, True))
    assert list(left.of_base) == [1, 4]
    assert not whole.of_base
    M = crba(m)
    for k, n in enumerate(("dq", "dv")):
        known = placed(m, {(i, i): x[k] for i, x in left.of_base.items()})
        assert np.abs(known).max() > 1
        assert_close(placed(m, getattr(left, n)) + M @ known, placed(m, getattr(whole, n)), scale=100)
    f = lw.forward_dynamics(model, backend="numpy")
    r = f.derivatives()(q, v, a)
    for n, moved in (("q", lambda x: f(model.integrate(q, x), v, a).a), ("v", lambda x: f(q, v + x, a).a)):
        judged = by_columns(moved, model.nv)
        assert_close(getattr(r, f"da_d{n}"), judged, cond(M), scale=float(np.abs(judged).max()) * 10, eps=FIVE_POINT)


@pytest.mark.parametrize("seed", SEEDS)
def test_sweeps_are_solves_with_the_mass_matrix(seed):
    """Forces on all links and joints, and on a few: M = L^T D L by links and by M itself."""
    model, rng = unusual(seed), np.random.default_rng(seed)
    q, v, _ = state_of(model, seed)
    m = motion(model, q, v)
    sweeps, joint_space = Sweeps(m), JointSpace(m)
    b, forces = rng.normal(size=(model.nv, 2)), {i: rng.normal(size=(6, 2)) for i in model.topology.links}
    kappa = cond(crba(m))
    assert_close(np.array(sweeps.pivots), np.array(joint_space.pivots), kappa, scale=max(sweeps.pivots))
    z = [f.solve_LT(b, forces) for f in (sweeps, joint_space)]
    assert_close(*z, kappa, scale=float(np.abs(z[1]).max()))
    x = [f.solve_L(f.solve_D(f.solve_LT(b))) for f in (sweeps, joint_space)]
    for found in x:
        assert_close(crba(m) @ found, b, kappa, scale=float(np.abs(crba(m)).max() * np.abs(found).max()))
    last = model.nlinks
    few = [f.through({}, {last: forces[last]}) for f in (sweeps, joint_space)]
    assert set(few[0]) == set(few[1])
    for k, theirs in few[1].items():
        assert_close(few[0][k], theirs, kappa, scale=float(np.abs(theirs).max()))


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_inverse_dynamics_against_the_differentiated_program(kind):
    """Exact: every joint type, moving, against forward differentiation of `rnea`, operation by operation."""
    model = random_model(5, 4, (kind,))
    q, v, a = state_of(model, 5)
    function = lw.inverse_dynamics(model, backend="numpy")
    ours, plain = function.derivatives(), Jacobians(function, None)
    plain._traced = lambda xp, x, symbol: plain._by_operations(xp, x)
    for mine, theirs in zip(ours(q, v, a), plain(q, v, a), strict=True):
        assert_close(mine, theirs, scale=float(np.abs(theirs).max()) * 10)


@pytest.mark.parametrize("seed", range(3))
def test_every_constraint(seed):
    """Stabilised or not, open and moving: against differences of `kkt`, where rows are independent."""
    base = random_model(seed, 5, base="free")
    q, v, tau = state_of(base, seed)
    checked = 0
    for n, c in enumerate(constraints_of(base, seed)):
        if n % 3 != seed:
            continue
        steady = n % 2 and not isinstance(c, lw.LinkRows)
        model = base.with_constraints(replace(c, stabilisation=lw.Stabilisation(0.3)) if steady else c)
        J, _ = joint_space(motion(model, q, v))
        if np.linalg.matrix_rank(J, tol=1e-2) < model.rows:
            continue
        checked += 1

        def solution(dq, dv, dtau, model=model):
            a, lam = kkt(motion(model, model.integrate(q, dq), v + dv), col(tau + dtau))
            return np.concatenate([a[:, 0], lam[:, 0]])

        r = lw.forward_dynamics(model, method="kkt", backend="numpy").derivatives()(q, v, tau)
        o, X = np.zeros(model.nv), np.random.default_rng(n).normal(size=(model.nv, 2))
        kappa = cond(J) ** 2 * cond(crba(motion(model, q)))
        assert_close(np.concatenate([r.a, r.lam]), solution(o, o, o), kappa, scale=100)
        for k, w in enumerate(("q", "v", "tau")):
            expected = [derivative(lambda h, x=x, k=k, o=o: solution(*([o] * k), h * x, *([o] * (2 - k)))) for x in X.T]
            found = np.vstack([getattr(r, f"da_d{w}"), getattr(r, f"dlam_d{w}")]) @ X
            scale = max(float(np.abs(y).max()) for y in (*expected, r.da_dq, r.dlam_dq))
            assert_close(found.T, np.array(expected), kappa, scale=scale, eps=FIVE_POINT)
    assert checked >= 10


def test_rows_by_known_values_of_links_or_by_operations():
    """Exact: analytical pages and seeds at links against the equations differentiated operation by operation."""
    model = random_model(4, 6, base="free")
    model = model.with_constraints(
        lw.surface("f3", axes="world", stabilisation=lw.Stabilisation()),
        lw.Hinge("f5", "f2", axis=[0.3, 0.4, 0.5], stabilisation=lw.Stabilisation()),
    )
    q, v, tau = state_of(model, 4)
    function = lw.forward_dynamics(model, backend="numpy", method="prox_ltl")
    ours, plain = function.derivatives(), Jacobians(function, None)
    plain._of_solution = lambda xp, x, symbol: plain._of_solution_by_operations(
        MotionEquations(function, xp, x), symbol
    )
    J, _ = joint_space(motion(model, q, v))
    kappa = cond(J) ** 2 * cond(crba(motion(model, q)))
    for mine, theirs in zip(ours(q, v, tau), plain(q, v, tau), strict=True):
        assert_close(mine, theirs, kappa, scale=float(np.abs(theirs).max()) * 10)


def test_a_joint_of_the_users_own():
    """A subspace that depends on q without derivatives of its own is differentiated operation by operation."""

    class Plain(lw.joints.Universal):
        subspace_slope = lw.joints.Joint.subspace_slope
        bias_slopes = lw.joints.Joint.bias_slopes

    model = random_model(8, 4, ("universal",))
    links = [replace(l, joint=Plain(l.joint.axis, l.joint.second)) for l in model.links[1:]]
    other = replace(model, links=(model.links[0], *links))
    q, v, tau = state_of(model, 8)
    r, s = (lw.forward_dynamics(m, backend="numpy").derivatives()(q, v, tau) for m in (model, other))
    for mine, theirs in zip(r, s, strict=True):
        assert_close(mine, theirs, cond(crba(motion(model, q))), scale=float(np.abs(theirs).max(initial=0)) * 10)


def test_redundant_rows_have_the_derivative_of_the_independent_ones():
    """Twice the same contact: accelerations and their derivatives do not change; multipliers share."""
    base = random_model(2, 5, base="free")
    once = base.with_constraints(lw.point("f3"))
    twice = once.with_constraints(lw.point("f3", name="again"))
    q, v, tau = state_of(base, 2)
    r, s = (lw.forward_dynamics(m, backend="numpy", method="prox_ltl").derivatives()(q, v, tau) for m in (once, twice))
    # the part of W that redundant rows leave is rounding over REDUNDANT
    for w in ("q", "v", "tau"):
        mine, theirs = getattr(s, f"da_d{w}"), getattr(r, f"da_d{w}")
        assert_close(mine, theirs, scale=float(np.abs(theirs).max()), eps=EPS / REDUNDANT)
        split = getattr(s, f"dlam_d{w}")
        joined = getattr(r, f"dlam_d{w}")
        assert_close(split[:3] + split[3:], joined, scale=float(np.abs(joined).max()), eps=EPS / REDUNDANT)


@pytest.mark.parametrize("copies", [2, 5])
def test_a_weld_that_is_stated_several_times(copies):
    """In machine code's form, which was 8e-6 and 4e-5 off: rounding over REDUNDANT; then 6e-9 and 7e-8, see below."""
    base = mechanisms.chain(6)
    tip, rng = base.links[-1].name, np.random.default_rng(0)
    q, v, tau = rng.normal(size=6), np.zeros(6), rng.normal(size=6)
    place = lw.forward_kinematics(base, tip, backend="numpy")(q)
    welds = [lw.Closure(tip, "place", "fixed", name=f"weld{k}") for k in range(copies)]
    held = base.with_frame("place", placement=lw.Placement(place.rotations, place.positions)).with_constraints(*welds)
    f = lw.forward_dynamics(held, backend="numpy", method="prox_ltl").derivatives()
    found = dict(zip([port.name for port in f.program.outputs], f.program.interpret(q, v, tau), strict=True))
    free = lw.forward_dynamics(base, backend="numpy").derivatives()(q, v, tau)
    right = DenseDerivatives(f)([q, v, tau])
    for name in ("da_dq", "da_dtau"):
        scale = max(np.abs(right[name]).max(), np.abs(getattr(free, name)).max())
        assert np.abs(found[name].reshape(6, 6) - right[name]).max() < 2e-9 * scale


def test_rows_of_light_and_heavy_links_that_are_stated_several_times():
    """Inertias over six decades: what a single root leaves of redundant directions cost two more digits here."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        axes = np.linalg.qr(rng.normal(size=(8, 8)))[0]
        A, J = (axes * 10.0 ** rng.uniform(-3, 3, 8)) @ axes.T, np.tile(rng.normal(size=(4, 8)), (3, 1))
        A = (A + A.T) / 2
        Q = A @ J.T
        D = np.triu(J @ Q) + np.triu(J @ Q, 1).T
        W = RowsInverse(D, np.ones((12, 1)), np.diag(D)[:, None], range(-1, 11), NUMPY)
        free = np.linalg.svd(J[:4])[2][4:].T
        right = free @ np.linalg.solve(free.T @ np.linalg.solve(A, free), free.T)
        for found in (W.W @ Q.T, W @ Q.T):
            assert np.abs(A - Q @ found - right).max() < 3e-8 * np.abs(right).max()


def test_softness_and_modes():
    base = random_model(6, 5, base="free").with_constraints(lw.point("f3"), lw.point("f4"))
    q, v, tau = state_of(base, 6)
    model = base
    soft = lw.forward_dynamics(model, R=0.05, backend="numpy")
    r = soft.derivatives()(q, v, tau)

    def solution(dq):
        x = soft(model.integrate(q, dq), v, tau)
        return np.concatenate([x.a, x.lam])

    expected = by_columns(solution, model.nv)
    assert_close(np.vstack([r.da_dq, r.dlam_dq]), expected, 1e3, scale=float(np.abs(expected).max()), eps=FIVE_POINT)
    switched = lw.forward_dynamics(model, modes=True, backend="numpy", method="prox_ltl").derivatives()
    one = replace(model, constraints=model.constraints[:1])
    alone = lw.forward_dynamics(one, backend="numpy", method="prox_ltl").derivatives()(q, v, tau)
    r = switched(q, v, tau, [1.0, 0.0])
    assert_close(r.da_dq, alone.da_dq, 1e4, scale=float(np.abs(alone.da_dq).max()))
    assert not r.dlam_dq[3:].any()


@pytest.mark.parametrize("make", [mechanisms.four_bar, mechanisms.six_bar, lambda: mechanisms.geared_chain(3)])
def test_along_the_motions_of_closed_loops(make):
    """Redundant rows (hinges in a plane) and gears: along motions that keep loops closed, against `kkt` on these."""
    model = make()
    q, v = lw.random_state(model, seed=1)[:2]
    tau = np.random.default_rng(0).normal(size=model.nv)
    r = lw.forward_dynamics(model, backend="numpy").derivatives()(q, v, tau)
    assert_close(r.a, kkt(motion(model, q, v), col(tau))[0][:, 0], 1e3, scale=10)
    assert np.isfinite(r.da_dq).all()
    J, _ = joint_space(motion(model, q, v))
    _, s, vt = np.linalg.svd(J)
    free = vt[(s > 1e-9 * s[0]).sum() :]
    for t in free:

        def moved(h, t=t):
            there = lw.assemble(model, model.integrate(q, h * t), tolerance=1e-13)
            return kkt(motion(model, there, v), col(tau))[0][:, 0]

        expected = derivative(moved)
        assert_close(r.da_dq @ t, expected, 1e4, scale=float(np.abs(expected).max()), eps=FIVE_POINT)
