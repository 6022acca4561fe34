"""Every Delassus method against J M^-1 J^T in dense numbers."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, cond, motion
from linkwork.algorithms.tree.crba import crba
from linkwork.constraints import jacobian
from linkwork.constraints.rows import constraint_rows
from linkwork.errors import UnsupportedError
from linkwork.robots.mechanisms import chain, humanoid, quadruped, stem
from linkwork.structure.elimination import needs_base
from row_cases import ANY_ROWS, LIMBS, ONE_LINK, loop_cases, method, one_link_cases, random_rows

CASES, LOOPS = one_link_cases(), loop_cases()


def expected(m):
    J, M = jacobian(m), crba(m)
    return J @ np.linalg.solve(M, J.T), cond(M)


def refusal(m):
    rows = constraint_rows(m)
    return needs_base(m.model, [(*r.links, *r.joints) for r in rows], [r.k.shape[0] for r in rows])


def check(name, model, c=100):
    for seed in (0, 1):
        m = motion(model, model.random_q(seed))
        matrix, kappa = expected(m)
        assert_close(method(name)(m), matrix, kappa, c=c)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["dense", *ANY_ROWS, *ONE_LINK])
def test_rows_on_single_links(name, case):
    check(name, CASES[case])


@pytest.mark.parametrize("name", [None, "dense", *ANY_ROWS, *ONE_LINK])
def test_a_joint_on_the_world_is_held(name):
    """Its rows are over a joint, and over one link alone: `pv_r` refused them, and so did the planner's choice."""
    arm = chain(3)
    model = arm.with_constraints(lw.Coupling(arm.links[1].joint_name, {}), lw.point("linktip"))
    m = motion(model, model.random_q(0))
    matrix, kappa = expected(m)
    assert_close(lw.delassus(model, method=name, backend="numpy")(m.q[:, 0]).matrix, matrix, kappa)


@pytest.mark.parametrize("case", LOOPS)
@pytest.mark.parametrize("name", ["dense", *ANY_ROWS])
def test_rows_over_several_links_and_joints(name, case):
    check(name, LOOPS[case])


@pytest.mark.parametrize("name", ["dense", *ANY_ROWS, *ONE_LINK])
def test_neutral_and_repeated_rows(name):
    """A singular posture and duplicated rows: the matrix is singular, and still right."""
    body = humanoid(hands=False)
    model = body.with_constraints(*(lw.surface(f) for f in LIMBS[:3]), *(lw.surface(f) for f in LIMBS[:3]))
    m = motion(model, model.neutral())
    matrix, kappa = expected(m)
    assert_close(method(name)(m), matrix, kappa)


@pytest.mark.parametrize("case", [c for c in CASES if c != "quadruped 0" and c != "humanoid 0"])
def test_fast_operator_multiplies_and_solves_or_refuses(case):
    model = CASES[case]
    m = motion(model, model.random_q(1))
    reason = refusal(m)
    if reason:
        with pytest.raises(UnsupportedError, match="'pv' can"):
            method("pv_fast")(m)
        return
    matrix, kappa = expected(m)
    operator, x = method("pv_fast")(m), np.random.default_rng(0).normal(size=(model.rows, 2))
    assert_close(operator.multiply(x), matrix @ x, kappa)
    # the residual: each of the limbs is solved on its own, held by nothing but its joints
    worst = max((cond(limb.L) for limb in getattr(operator, "limbs", ())), default=1.0)
    assert_close(matrix @ operator.solve(x), x, kappa * cond(matrix) * worst)


def test_fast_operator_is_there_for_legged_robots():
    for model in (CASES["quadruped 4"], CASES["humanoid 4"], CASES["humanoid random"], CASES["stem 6"]):
        assert refusal(motion(model, model.neutral())) is None
        method("pv_fast")(motion(model, model.random_q(0)))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (chain(7).with_constraints(lw.surface("linktip")), "free base"),
        (quadruped().with_constraints(random_rows("trunk", 3)), "3 rows can only be moved by the base"),
        (
            quadruped().with_constraints(random_rows("front_left_shank", 3), random_rows("front_left_hip", 3)),
            "3 rows can only be moved by the base",
        ),
        (quadruped().with_constraints(random_rows("front_left_shank", 7)), "7 rows depend on the six motions of link"),
        (stem(1, 2, branch_links=2), "16 rows can only be moved by the base"),
    ],
)
def test_fast_operator_says_why_not(model, reason):
    with pytest.raises(UnsupportedError, match=reason):
        method("pv_fast")(motion(model, model.neutral()))


@pytest.mark.parametrize("name", ONE_LINK)
def test_methods_for_single_links_refuse_loops(name):
    model = LOOPS["humanoid four bar"]
    with pytest.raises(UnsupportedError, match=r"rows on single links.*'pv', 'ltl'"):
        method(name)(motion(model, model.neutral()))


def test_damping_is_added_to_the_diagonal():
    m = motion(CASES["humanoid 2"], CASES["humanoid 2"].random_q(0))
    plain, damped = method("kkt_cholesky")(m), method("kkt_cholesky")(m, damping=0.25)
    assert_close(damped, plain + 0.25 * np.eye(len(plain)))
