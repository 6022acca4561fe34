"""Torques and loop forces that cause a motion: there and back by the dense oracle, redundancy, and too few motors."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, cond, motion
from linkwork.algorithms.tree.crba import crba
from linkwork.closure.actuation import actuated_freedoms
from linkwork.constraints import jacobian
from linkwork.errors import ActuationError, InputError, LoadError, NotFound
from linkwork.joints import Revolute
from linkwork.model import BodyInertia, Builder, Model, Placement
from linkwork.robots import mechanisms as mech


def there_and_back(model: Model, joints: list[str] | None, seed: int, **options: object) -> None:
    """Random torques of the actuated joints, the accelerations they cause, and the torques from these again."""
    q, v = lw.random_state(model, seed)
    driven = actuated_freedoms(model, joints)
    tau = np.where(driven, np.random.default_rng(seed).normal(size=model.nv), 0.0)
    a, lam = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)
    found = lw.constrained_inverse_dynamics(model, joints, backend="numpy", **options)(q, v, a)
    J, M = jacobian(motion(model, q)), crba(motion(model, q))
    A = np.hstack([np.eye(model.nv)[:, driven], J.T])
    kappa, scale = cond(M, J) * cond(A), float(np.abs(J.T @ lam).max() + np.abs(a).max() * np.abs(M).max())
    assert_close(found.tau[~driven], np.zeros((~driven).sum()))
    assert_close(found.tau + J.T @ found.lam, tau + J.T @ lam, kappa, scale=scale)
    if np.linalg.matrix_rank(A) == driven.sum() + np.linalg.matrix_rank(J):  # motors and rows do not overlap
        assert_close(found.tau, tau, kappa, scale=scale)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("model", "joints"),
    [
        (mech.four_bar(), ["crank_joint"]),
        (mech.four_bar(), None),
        (mech.four_bar(cut="fixed"), ["rocker_joint"]),
        (mech.six_bar(), ["output_joint"]),
        (mech.bricard(), ["bar3_joint"]),
        (mech.planar_leg(), None),
        (mech.geared_chain(3), None),
        (mech.ring(9), None),
        (mech.chain(3), None),
    ],
    ids=["four_bar", "two_motors", "four_bar_6d", "six_bar", "bricard", "leg", "gears", "ring", "no_loops"],
)
def test_there_and_back(model: Model, joints: list[str] | None, seed: int) -> None:
    there_and_back(model, joints, seed)


def test_cassie_there_and_back() -> None:
    try:
        model = lw.load("cassie.xml")
    except LoadError:
        pytest.skip("cassie.xml is not installed")
    there_and_back(model, None, 1, underactuated=True)
    with pytest.raises(ActuationError, match="cassie-pelvis"):
        lw.constrained_inverse_dynamics(model)


@pytest.mark.parametrize("weight", [1e-3, 1.0])
def test_redundant_motors_share_the_least(weight: float) -> None:
    model = mech.four_bar(cut="fixed")
    q, v = lw.random_state(model, 4)
    a, _ = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, np.zeros(4))
    joints = ["crank_joint", "coupler_joint", "rocker_joint"]
    tau, lam, residual = lw.constrained_inverse_dynamics(model, joints, weight=weight, backend="numpy")(q, v, a)
    driven = actuated_freedoms(model, joints)
    A = np.hstack([np.eye(4)[:, driven], jacobian(motion(model, q)).T])
    x = np.concatenate([tau[driven], lam])
    null = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :].T
    assert null.shape[1] == 5
    cost = np.array([1.0] * 3 + [weight**2] * 6)
    assert_close(null.T @ (cost * x), np.zeros(5), cond(A) / weight, scale=float(np.abs(x).max()))
    assert residual < 1e-12


def test_backends_agree() -> None:
    model = mech.six_bar()
    q, v = lw.random_state(model, 1, batch=3)
    a = np.array(
        [
            lw.forward_dynamics(model, method="kkt", backend="numpy")(x, y, np.ones(5)).a
            for x, y in zip(q, v, strict=True)
        ]
    )
    numpy = lw.constrained_inverse_dynamics(model, ["crank_joint"], backend="numpy")(q, v, a)
    assert (numpy.tau.shape, numpy.lam.shape, numpy.residual.shape) == ((3, 5), (3, 10), (3,))
    for backend in ("casadi", "kernel"):
        other = lw.constrained_inverse_dynamics(model, ["crank_joint"], backend=backend)(q, v, a)
        scale = float(np.abs(numpy.lam).max())
        # the traced least squares works on the Gram matrix, in a unit in which rows are 1e3 times as long
        assert_close(other.tau, numpy.tau, 1e6, scale=scale)


def test_a_standing_robot_is_carried_by_its_feet() -> None:
    model = mech.humanoid(hands=False)
    q = mech.standing(model)
    for foot in ("left_foot", "right_foot"):
        model = mech.closed(model, foot, "world", q=q)
    rest = np.zeros(model.nv)
    tau, lam, _ = lw.constrained_inverse_dynamics(model, backend="numpy")(q, rest, rest)
    assert not tau[:6].any()
    weight = -model.mass * model.gravity
    forces = lam.reshape(2, 6)[:, :3]  # soles are level: their axes are the world's, but for the heading
    assert_close(forces.sum(axis=0)[2], weight[2], 1e3)
    assert_close(forces.sum(axis=0), weight, 1e3)


def test_point_feet_are_not_in_one_place() -> None:
    """Three or four point contacts hold a trunk that two leave free to turn about the line between them."""
    robot = mech.quadruped()
    for feet in (3, 4):
        model = robot.with_constraints(*map(lw.point, [*robot.frames][:feet]))
        q, v = mech.standing(robot), np.zeros(model.nv)
        tau = lw.constrained_inverse_dynamics(model)(q, v, v).tau
        assert not tau[:6].any()
        assert_close(lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a, v, 1e6)
    with pytest.raises(ActuationError, match=r"12 ways.*push 11"):
        lw.constrained_inverse_dynamics(robot.with_constraints(*map(lw.point, [*robot.frames][:2])))


def test_too_few_motors() -> None:
    with pytest.raises(ActuationError, match=r"1 ways.*\(0\) push 0.*'crank_joint'"):
        lw.constrained_inverse_dynamics(mech.four_bar(), [])
    two = lw.combine(lw.Part(mech.four_bar(), "a/"), lw.Part(mech.four_bar(), "b/"))
    with pytest.raises(ActuationError, match=r"2 ways.*\(2\) push 1.*'b/crank_joint'"):
        lw.constrained_inverse_dynamics(two, ["a/crank_joint", "a/rocker_joint"])
    leg = mech.planar_leg()
    with pytest.raises(ActuationError, match="push 1"):
        lw.constrained_inverse_dynamics(leg, ["hip"])
    inverse = lw.constrained_inverse_dynamics(leg, ["hip"], underactuated=True, backend="numpy")
    q, v = lw.random_state(leg, 2)
    forward = lw.forward_dynamics(leg, method="kkt", backend="numpy")
    hip, crank = (leg.topology.v_slices[leg.joint(j)].start for j in ("hip", "crank"))
    assert inverse(q, v, forward(q, v, np.eye(4)[hip]).a).tau[hip] == pytest.approx(1.0)
    with pytest.raises(ActuationError, match="left over"):
        inverse(q, v, forward(q, v, np.eye(4)[crank]).a)


def test_joints_that_move_no_inertia_may_have_motors() -> None:
    """Whether motors are enough does not depend on masses."""
    b = Builder("light")
    b.link("first", "world", Revolute("z"), inertia=BodyInertia(1.0, np.array([0.5, 0.0, 0.0]), np.eye(3)))
    b.link("second", "first", Revolute("z"))
    b.frame("tip", "second", Placement(p=np.array([1.0, 0.0, 0.0])))
    model = b.build().with_constraints(lw.Coupling("second_joint", {"first_joint": [1.0]}))
    found = lw.constrained_inverse_dynamics(model, ["first_joint"])(np.zeros(2), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(
        found.tau, lw.inverse_dynamics(model.without_constraints())(*np.zeros((2, 2)), np.ones(2)).tau
    )


def test_bad_input() -> None:
    with pytest.raises(NotFound, match="crank_joint"):
        lw.constrained_inverse_dynamics(mech.four_bar(), ["motor"])
    with pytest.raises(InputError, match="actuated is a list of names"):
        lw.constrained_inverse_dynamics(mech.four_bar(), 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="weight"):
        lw.constrained_inverse_dynamics(mech.four_bar(), weight=0.0)
