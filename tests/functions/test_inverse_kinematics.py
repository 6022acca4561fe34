"""Inverse kinematics: targets are reached, limits and loops hold, and what cannot be reached is said."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import EPS, assert_close
from linkwork.functions.inverse_kinematics import quaternions
from linkwork.model import Limits
from linkwork.robots import mechanisms


def arm(bound: float = 2.5) -> lw.Model:
    """Seven hinges about alternating axes, with limits, and a frame at the end."""
    b, before = lw.Builder("arm"), "world"
    for k in range(7):
        b.link(
            f"l{k}",
            before,
            "revolute",
            axis="zy"[k % 2],
            placement=lw.Placement.at((0, 0, 0.2)),
            inertia=lw.BodyInertia(1.0),
            limits=Limits(-bound, bound),
        )
        before = f"l{k}"
    b.frame("hand", before, lw.Placement.at((0.05, 0, 0.1), (0.3, 0.2, 0.1)))
    return b.build()


ARM = arm()


def poses(model, q, frame="hand"):
    p, R = lw.forward_kinematics(model, frame, backend="numpy")(q)
    T = np.zeros((*p.shape[:-1], 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1
    return T


def test_a_batch_of_poses_is_reached_within_the_limits():
    T = poses(ARM, ARM.random_q(0, batch=60))
    found = lw.ik(ARM, {"hand": T})
    assert found.converged.all()
    assert found.error.max() <= 1e-8
    assert_close(poses(ARM, found.q), T, eps=1e-10)
    assert (np.abs(found.q) <= 2.5).all()
    assert found.iterations.min() > 0


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_one_target_as_pose_position_and_placement(backend):
    q = ARM.random_q(3)
    T = poses(ARM, q)
    targets = (lw.Placement(T[:3, :3], T[:3, 3]), T, np.concatenate([T[:3, 3], quaternions(T[:3, :3])]))
    results = [lw.ik(ARM, {"hand": x}, backend=backend) for x in targets]
    for found in results:
        assert found.converged
        assert_close(found.q, results[0].q, eps=1e-12)
        assert_close(poses(ARM, found.q), T, eps=1e-10)
    point = lw.ik(ARM, {"hand": T[:3, 3], "l3": poses(ARM, q, "l3")[:3, 3]}, backend=backend)
    assert point.converged
    assert_close(poses(ARM, point.q)[:3, 3], T[:3, 3], eps=1e-10)


def test_backends_take_the_same_steps():
    T = poses(ARM, ARM.random_q(5, batch=4))
    kernel, reference = (lw.ik(ARM, {"hand": T}, attempts=1, backend=b) for b in ("kernel", "numpy"))
    assert (kernel.iterations == reference.iterations).all()
    assert_close(kernel.q, reference.q, eps=1e-8)


def test_out_of_reach_is_said_and_stretches():
    found = lw.ik(ARM, {"hand": (3.0, 0.0, 0.2)}, attempts=2)
    assert not found.converged
    assert found.error > 1.0
    direction = poses(ARM, found.q)[:3, 3]
    assert direction[0] > 0.9


def test_near_the_start_and_locked():
    q = ARM.random_q(7)
    there = poses(ARM, ARM.integrate(q, 0.02 * np.ones(7)))
    found = lw.ik(ARM, {"hand": there}, q, attempts=1)
    assert found.converged
    assert np.abs(found.q - q).max() < 0.2
    fixed = lw.ik(ARM, {"hand": there[:3, 3]}, q, locked=["l2_joint"], attempts=1)
    assert fixed.converged
    assert fixed.q[2] == q[2]


def test_loops_stay_closed():
    """The coupler's end of a four-bar goes along its circle, and the loop holds."""
    model = mechanisms.four_bar()
    closed = lw.assemble(model, model.random_q(1))
    frame = model.links[-1].name
    target = lw.forward_kinematics(model, frame, backend="numpy")(closed).positions
    near = lw.assemble(model, closed + 0.1)
    found = lw.ik(model, {frame: target}, near)
    assert found.converged
    assert np.abs(lw.constraint_error(model, backend="numpy")(found.q, np.zeros(model.nv)).phi).max() <= 1e-8


def test_a_humanoid_stands_and_reaches():
    """Both feet keep their poses and a hand moves: the free base is found, too."""
    model = mechanisms.humanoid(hands=False)
    q, frames = lw.ik(model, {"left_hand": (0.3, 0.2, 0.1)}, attempts=1, backend="numpy").q, ["left_foot", "right_foot"]
    places = lw.forward_kinematics(model, frames, backend="numpy")(q)
    feet = {n: lw.Placement(R, p) for n, p, R in zip(frames, *places, strict=True)}
    found = lw.ik(model, {**feet, "left_hand": (0.33, 0.2, 0.12)}, q, attempts=1, backend="numpy")
    assert found.converged
    moved = lw.forward_kinematics(model, [*frames, "left_hand"], backend="numpy")(found.q)
    assert_close(moved.positions, [*places.positions, [0.33, 0.2, 0.12]], eps=1e-10)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({}, "at least one"),
        ({"hnad": (0, 0, 1)}, "hand"),
        ({"hand": (0, 1)}, "shape"),
        ({"hand": np.zeros(7)}, "quat"),
        ({"hand": np.zeros((4, 4))}, "no pose"),
        ({"hand": np.diag([-1.0, -1, -1, 1])}, "no pose"),
        ({"hand": np.ones((4, 4)) * [[[1]], [[2]]]}, "no pose"),
    ],
)
def test_bad_targets_are_refused(targets, message):
    with pytest.raises(lw.LinkworkError, match=message):
        lw.ik(ARM, targets, backend="numpy")


def test_quaternions_of_all_rotations():
    q = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0.5, -0.5, 0.5, 0.5]], dtype=float)
    R = [lw.Placement.from_quaternion((0, 0, 0), x).R for x in q]
    found = quaternions(np.array(R))
    assert_close(np.abs(np.einsum("ij,ij->i", found, q)), np.ones(5), eps=EPS)
