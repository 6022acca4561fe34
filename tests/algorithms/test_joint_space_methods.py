"""ltl, ltl_soft, prox_ltl, prox_ltl_soft against the dense oracle: contacts, loops, redundant rows, contact modes."""

from __future__ import annotations

from itertools import product

import casadi
import numpy as np
import pytest

import linkwork as lw
from helpers import EPS, assert_close, col, cond, motion, random_state
from linkwork.algorithms.common.iteration import Prox, run, unrolled
from linkwork.algorithms.constrained.kkt import kkt
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.casadi_ import CASADI
from linkwork.constraints import jacobian
from linkwork.constraints.row_inertia import units
from linkwork.constraints.rows import constraint_rows
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.model import Motion
from linkwork.robots.mechanisms import ball, humanoid, quadruped
from row_cases import FEET, LIMBS, loop_cases, method, one_link_cases, random_rows, without_repetition

CASES = {**one_link_cases(), **loop_cases()}
PROX = ("prox_ltl", "prox_ltl_soft")
MU = 1e6


def solver(name):
    return method(name, "constrained")


def state(model, seed=0):
    q, v, tau = random_state(model, seed)
    return motion(model, q, v), col(tau)


def joint_space(m):
    """M, J and k of J vdot = k, for dense formulas."""
    return crba(m), jacobian(m), joint_targets(m, constraint_rows(m))


def delassus_cond(m):
    """How much the rows amplify rounding: the condition of what counts in J M^-1 J^T."""
    M, J, _ = joint_space(m)
    return cond(J @ np.linalg.solve(M, J.T))


def stiffness(m):
    """What the penalty makes of the largest eigenvalue of J M^-1 J^T: the condition of M + mu J^T J, in units of M."""
    M, J, _ = joint_space(m)
    return max(1.0, MU * np.linalg.eigvalsh(J @ np.linalg.solve(M, J.T)).max(initial=0.0))


@pytest.mark.parametrize("case", CASES)
def test_ltl_solves_independent_rows(case):
    q, _, _ = random_state(CASES[case], 1)
    m, tau = state(without_repetition(CASES[case], q), 1)
    a, lam = solver("ltl")(m, tau)
    expected, forces = kkt(m, tau)
    J, kappa = jacobian(m), delassus_cond(m)
    assert_close(a, expected, kappa)
    assert_close(J.T @ lam, J.T @ forces, kappa, scale=np.abs(a).max())


@pytest.mark.parametrize("name", ["ltl", *PROX])
def test_without_constraints_they_are_aba(name):
    m, tau = state(humanoid(hands=False))
    fext = np.random.default_rng(5).normal(size=(6 * m.model.nlinks, 1))
    once = Prox(MU, tolerance=0.0, max_iterations=1)
    out = solver(name)(m, tau, fext) if name == "ltl" else run(solver(name)(m, tau, fext, mu=MU), once)[:2]
    assert_close(out[0], aba(m, tau, fext), cond(crba(m)))
    assert out[1].shape == (0, 1)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", PROX)
def test_proximal_methods_solve_all_rows(name, case):
    """Redundant, singular and conflicting rows included: accelerations and forces of the least-squares solution."""
    m, tau = state(CASES[case], 2)
    check_prox(name, m, tau)


def check_prox(name, m, tau):
    """Within rounding and what the iteration leaves of each direction, 1 / (1 + mu x) per step for an eigenvalue x."""
    (expected, forces), free = kkt(m, tau), aba(m, tau)
    a, lam, used, *_ = run(solver(name)(m, tau, mu=MU), Prox(MU, tolerance=1e-13, max_iterations=40))
    M, J, _ = joint_space(m)
    values = np.linalg.eigvalsh(J @ np.linalg.solve(M, J.T))
    largest = values.max(initial=0.0)
    kept = values[values > 1e-13 * largest]
    left = (1 / (1 + MU * min(units(m.model)) * kept.min())) ** used if kept.size else 0.0
    # without redundant rows the iteration refines its own rounding errors away; penalties on the mass matrix do not
    redundant = len(kept) < len(values)
    kappa = max(delassus_cond(m), stiffness(m) if redundant or name == "prox_ltl_soft" else 1.0)
    scale = 1 + left / (100 * kappa * EPS)
    size = max(np.abs(expected).max(), np.abs(expected - free).max(initial=0.0))
    assert_close(a, expected, kappa * scale, scale=size)
    assert_close(J.T @ lam, J.T @ forces, kappa * scale, scale=size)


@pytest.mark.parametrize("name", PROX)
def test_highly_redundant_rows(name):
    """carpentier2021_proximal_sparse V-F: both feet and a hand held twice, m = 36: solved, but NaN without the term."""
    limbs = (*LIMBS[:3], *LIMBS[:3])
    m, tau = state(humanoid(hands=False).with_constraints(*(lw.surface(f) for f in limbs)))
    assert m.model.rows == 36
    assert np.isnan(solver("ltl")(m, tau)[0]).any()
    check_prox(name, m, tau)


def test_a_missing_proximal_term_fails_loudly():
    """Two equal rows of a slide with 4 kg: roots and quotients of powers of four are exact, and so is the pivot 0."""
    b = lw.Builder()
    b.link("cart", joint="prismatic", axis="x", inertia=ball(4.0, 0.1))
    twice = lw.Coupling("cart_joint", {}, offset=0.1)
    m, tau = state(b.build().with_constraints(twice, twice))
    a, *_ = run(solver("prox_ltl")(m, tau, mu=np.inf), Prox(MU, tolerance=1e-9, max_iterations=3))
    assert np.isnan(a).any()


def test_conflicting_rows_are_met_in_the_middle():
    foot = "left_sole"
    K = random_rows(foot, 3)
    model = humanoid(hands=False).with_constraints(
        lw.LinkRows({foot: K.K[foot]}, [1.0, 2.0, 3.0]), lw.LinkRows({foot: K.K[foot]}, [3.0, 2.0, 1.0])
    )
    m, tau = state(model)
    expected, _ = kkt(m, tau)
    a, *_ = run(solver("prox_ltl")(m, tau, mu=1e4), Prox(MU, tolerance=0.0, max_iterations=4))
    assert_close(a, expected, stiffness(m))


SOFT = ("quadruped 3", "humanoid mixed", "floating tree 2", "ladder 3")
"""Rows on single links, which pv_soft takes too."""


@pytest.mark.parametrize("case", [*SOFT, "four bar", "mechanism 1"])
def test_soft_rows(case):
    m, tau = state(CASES[case])
    rng = np.random.default_rng(0)
    R = [col(rng.uniform(0.01, 1, c.rows)) for c in m.model.constraints]
    weights = rng.uniform(0, 1, (len(R), 1))
    weights[0] = 0.0
    for active in (None, weights):
        a, lam = solver("ltl_soft")(m, tau, R=R, active=active)
        M, J, k = joint_space(m)
        firm = np.vstack([r * 0 + (1.0 if active is None else active[c, 0]) for c, r in enumerate(R)]) / np.vstack(R)
        H = M + J.T @ (firm * J)
        expected = np.linalg.solve(H, tau - rnea(m, None) + J.T @ (firm * k))
        assert_close(a, expected, cond(H))
        assert_close(lam, firm * (k - J @ a), cond(H), scale=np.abs(firm * k).max())
    for name in ("lcaba_soft", "bbo_soft", *(["pv_soft"] if case in SOFT else [])):
        other, forces = solver(name)(m, tau, R=R, active=weights)
        assert_close(a, other, cond(H))
        assert_close(lam, forces, cond(H), scale=np.abs(firm * k).max())


@pytest.mark.parametrize("name", PROX)
def test_contact_modes(name):
    """All 16 modes of a quadruped: weights give what the model with that set of contacts gives, and no other force."""
    legs = quadruped()
    model = legs.with_constraints(*(lw.point(f) for f in FEET))
    m, tau = state(model)
    for mode in product((0.0, 1.0), repeat=4):
        a, lam, *_ = run(solver(name)(m, tau, mu=MU, active=col(mode)), Prox(MU, tolerance=0.0, max_iterations=6))
        part = legs.with_constraints(*(lw.point(f) for f, on in zip(FEET, mode, strict=True) if on))
        alone = solver(name)(motion(part, m.q, m.v), tau, mu=MU * min(units(m.model)) / min(units(part), default=1.0))
        b, lam_part, *_ = run(alone, Prox(MU, tolerance=0.0, max_iterations=6))
        kappa = stiffness(m) if name == "prox_ltl_soft" else delassus_cond(m)
        assert_close(a, b, kappa)
        off = np.repeat(np.array(mode) == 0, 3)
        assert (lam[off] == 0).all()
        assert_close(lam[~off], lam_part, kappa)


def test_weights_between_nothing_and_all_scale_the_penalty():
    """As in constrained_aba: one step with weight w is one step with the penalty times w."""
    m, tau = state(quadruped().with_constraints(lw.point(FEET[0])))
    for name in PROX:
        a, lam, *_ = run(solver(name)(m, tau, mu=1e3, active=col([0.3])), Prox(MU, tolerance=0.0, max_iterations=1))
        b, lam_b, *_ = run(solver(name)(m, tau, mu=300.0), Prox(MU, tolerance=0.0, max_iterations=1))
        assert_close(a, b, stiffness(m))
        assert_close(lam, lam_b, stiffness(m))


def traced_steps(model, name, steps=3):
    """A CasADi function of q, v, tau, active: accelerations and forces after some steps."""
    q, v, tau = casadi.SX.sym("q", model.nq), casadi.SX.sym("v", model.nv), casadi.SX.sym("tau", model.nv)
    active = casadi.SX.sym("active", len(model.constraints))
    m = Motion(model, q, v, CASADI)
    if name == "ltl":
        out = solver(name)(m, tau)
    elif name == "ltl_soft":
        out = solver(name)(m, tau, R=[casadi.SX.ones(c.rows) * 0.01 for c in model.constraints], active=active)
    else:
        out = unrolled(solver(name)(m, tau, mu=MU, active=active), steps, Prox(MU).flat)[:2]
    return casadi.Function("f", [q, v, tau, active], [casadi.densify(o) for o in out])


@pytest.mark.parametrize("case", ["humanoid mixed", "mechanism 1"])
@pytest.mark.parametrize("name", ["ltl", "ltl_soft", *PROX])
def test_traces_agree(name, case):
    q, v, tau = random_state(CASES[case], 3)
    model = without_repetition(CASES[case], q) if name == "ltl" else CASES[case]
    m = motion(model, q, v)
    active = np.ones(len(model.constraints))
    if name == "ltl":
        a, _ = solver(name)(m, col(tau))
    elif name == "ltl_soft":
        a, _ = solver(name)(m, col(tau), R=[np.full((c.rows, 1), 0.01) for c in model.constraints])
    else:
        a, *_ = run(solver(name)(m, col(tau), mu=MU), Prox(MU, tolerance=0.0, max_iterations=3))
    b, _ = traced_steps(model, name)(q, v, tau, active)
    assert_close(b, a, delassus_cond(m) if name == "ltl" else max(delassus_cond(m), stiffness(m)))


def test_ltl_fails_loudly_when_traced():
    model = quadruped().with_constraints(lw.point(FEET[0]), lw.point(FEET[0]))
    q, v, tau = random_state(model, 0)
    a, _ = traced_steps(model, "ltl")(q, v, tau, np.ones(2))
    assert np.isnan(np.array(a)).any()
    out = Kernel(read_program(traced_steps(model, "ltl")), threads=1)(q, v, tau, np.ones(2))
    assert np.isnan(out[0]).any()


@pytest.mark.parametrize("name", ["ltl_soft", *PROX])
def test_one_kernel_serves_all_modes(name):
    """Lanes in different contact modes at once."""
    legs = quadruped()
    model = legs.with_constraints(*(lw.point(f) for f in FEET))
    modes = np.array(list(product((0.0, 1.0), repeat=4)))
    states = [random_state(model, s) for s in range(16)]
    q, v, tau = (np.array(x) for x in zip(*states, strict=True))
    kernel = Kernel(read_program(traced_steps(model, name)), threads=1)
    a, lam = kernel(q, v, tau, modes)
    for k, mode in enumerate(modes):
        part = legs.with_constraints(*(lw.point(f) for f, on in zip(FEET, mode, strict=True) if on))
        m = motion(part, q[k], v[k])
        if name == "ltl_soft":
            expected, _ = solver(name)(m, col(tau[k]), R=[np.full((3, 1), 0.01)] * int(mode.sum()))
        else:
            expected, *_ = run(solver(name)(m, col(tau[k]), mu=MU), Prox(MU, tolerance=0.0, max_iterations=3))
        assert_close(a[k], expected[:, 0], stiffness(m))
        assert (lam[k][np.repeat(mode == 0, 3)] == 0).all()
