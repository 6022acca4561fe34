"""Every URDF file on this machine against Pinocchio: joint order, mass matrix, frames, inverse dynamics, gravity.

The tolerance is c (eps + delta) nv on quantities relative to their largest entry, with delta the largest difference of
a constant rotation in the two models: the loader rounds entries within 1e-12 of 0 and 1, which real files have.
20 random states each.
"""

from __future__ import annotations

from importlib import metadata

import numpy as np
import pytest
from loaded import EPS, NO_ROBOTS, TIDY, assert_near, quiet_load, robots, states

from linkwork.errors import LoadError
from linkwork.io.zoo import Robot
from linkwork.model import Model

pin = pytest.importorskip("pinocchio", reason="Pinocchio (package pin) is the oracle")

NO_LINKS = "ur3"
"""The one file that holds no robot: Pinocchio refuses it too."""


def pinocchio_model(path: str, base: str | None, model: Model) -> object:
    free = any(l.joint_name == "root_joint" and l.joint.nv == 6 for l in model.links)
    return pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()) if free else pin.buildModelFromUrdf(path)


def pinocchio_q(model: Model, peer: object, q: np.ndarray) -> np.ndarray:
    """Our continuous joints are one angle, Pinocchio's a cosine and a sine; all else is the same."""
    parts = [np.zeros(0)]
    for i in model.topology.links:
        part = q[model.topology.q_slices[i]]
        joint = peer.joints[peer.getJointId(model.links[i].joint_name)]  # type: ignore[attr-defined]
        parts.append(part if joint.nq == len(part) else np.array([np.cos(part[0]), np.sin(part[0])]))
    return np.concatenate(parts)


def rounding(model: Model, peer: object) -> float:
    """The largest difference of a constant rotation, which is the loader's rounding and no more."""
    pairs = [
        (l.placement.R, peer.jointPlacements[i].rotation)  # type: ignore[attr-defined]
        for i, l in enumerate(model.links)
        if i
    ]
    for frame in peer.frames:  # type: ignore[attr-defined]
        if frame.type == pin.FrameType.BODY and frame.name in model.frames:
            pairs.append((model.frames[frame.name].placement.R, frame.placement.rotation))
    delta = max((float(np.abs(a - b).max()) for a, b in pairs), default=0.0)
    assert delta < TIDY
    return delta


@pytest.mark.parametrize("robot", robots(".urdf"))
def test_agrees_with_pinocchio(robot: Robot) -> None:
    if robot.name == NO_LINKS:
        with pytest.raises(LoadError, match="no <link>"):
            quiet_load(robot.path)
        return
    model = quiet_load(robot.path, robot.base)
    peer = pinocchio_model(str(robot.path), robot.base, model)
    assert [l.joint_name for l in model.links[1:]] == list(peer.names)[1:]  # type: ignore[attr-defined]
    assert model.nv == peer.nv  # type: ignore[attr-defined]
    data = peer.createData()  # type: ignore[attr-defined]
    relative = 20 * (EPS + rounding(model, peer)) * max(model.nv, 1)
    bodies = [f.name for f in peer.frames if f.type == pin.FrameType.BODY]  # type: ignore[attr-defined]
    rng = np.random.default_rng(2)
    for s in states(model, 20):
        q, vdot = pinocchio_q(model, peer, s.q), rng.normal(size=model.nv)
        upper = np.triu(pin.crba(peer, data, q)) if model.nv else np.zeros((0, 0))
        M = upper + np.triu(upper, 1).T
        largest = float(np.abs(M).max(initial=0.0))
        assert_near(s.M, M, 0.0, relative)
        assert_near(s.rnea(vdot), pin.rnea(peer, data, q, s.v, vdot), largest, relative)
        assert_near(s.gravity, pin.computeGeneralizedGravity(peer, data, q), largest, relative)
        pin.framesForwardKinematics(peer, data, q)
        for name in bodies:
            pose = data.oMf[peer.getFrameId(name, pin.FrameType.BODY)]  # type: ignore[attr-defined]
            R, p = s.frame("world" if name == "universe" else name)
            assert_near(R, pose.rotation, 1.0, relative)
            assert_near(p, pose.translation, 1.0, relative)


def test_many_robots_are_compared() -> None:
    """A search that misses the files of example-robot-data would leave the test above without cases."""
    try:
        metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        pytest.skip(NO_ROBOTS)
    assert len(robots(".urdf")) > 40


SMALL = """<robot name="small"><link name="root"/>
<link name="a"><inertial><origin xyz=".1 .2 .3" rpy=".3 .2 .1"/><mass value="2"/>
  <inertia ixx="1" iyy="1.1" izz="1.2" ixy=".1" ixz=".05" iyz=".02"/></inertial></link>
<joint name="j" type="{kind}"><parent link="root"/><child link="a"/><origin xyz=".1 .2 .3" rpy=".1 .2 .3"/>
  <axis xyz="{axis}"/><limit effort="1" velocity="1" lower="-1" upper="1"/></joint>
<link name="b"><inertial><origin xyz="-.1 .2 0"/><mass value="1"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="k" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 .2 .3" rpy="1 .2 .3"/>
  <axis xyz="0 1 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/></joint></robot>"""


@pytest.mark.parametrize(
    ("kind", "axis"),
    [
        ("revolute", "1 2 3"),
        ("revolute", "0 0 -1"),
        ("continuous", "0 1 0"),
        ("continuous", "3 2 1"),
        ("prismatic", "1 0 2"),
        ("floating", "1 0 0"),
        ("planar", "0 0 1"),
        ("fixed", "1 0 0"),
    ],
)
def test_joint_types(kind: str, axis: str) -> None:
    text = SMALL.format(kind=kind, axis=axis)
    model, peer = quiet_load(text), pin.buildModelFromXML(text)
    data = peer.createData()
    for s in states(model, 5):
        q = pinocchio_q(model, peer, s.q)
        upper = np.triu(pin.crba(peer, data, q))
        assert_near(s.M, upper + np.triu(upper, 1).T, 0.0, 100 * EPS)
        assert_near(s.rnea(s.v), pin.rnea(peer, data, q, s.v, s.v), 1.0, 100 * EPS)


@pytest.mark.parametrize("axis", ["1 0 0", "0 1 0", "0 0 -1", "1 2 3", "-1 -2 -3"])
def test_planar_joint_moves_across_its_normal(axis: str) -> None:
    """URDF's planar joint moves in the plane normal to its axis, whatever that is."""
    model = quiet_load(SMALL.format(kind="planar", axis=axis))
    zero = states(model, 1)[0]
    R0, p0 = type(zero)(model, model.neutral(), zero.v).frame("a")
    normal = R0 @ np.array([float(x) for x in axis.split()]) / np.linalg.norm([float(x) for x in axis.split()])
    for s in states(model, 5):
        R, p = s.frame("a")
        assert abs(normal @ (p - p0)) < 100 * EPS
        assert np.abs(R @ R0.T @ normal - normal).max() < 100 * EPS


@pytest.mark.parametrize(("base", "nv"), [("fixed", 2), ("free", 8), ("planar", 5)])
def test_bases(base: str, nv: int) -> None:
    model = quiet_load(SMALL.format(kind="revolute", axis="0 0 1"), base)
    assert model.nv == nv
    assert base == "fixed" or model.links[1].joint_name == "root_joint"


def test_a_root_that_floats_gets_no_second_free_joint() -> None:
    text = SMALL.format(kind="floating", axis="0 0 1")
    assert quiet_load(text, "free").nv == quiet_load(text, "fixed").nv == 7


def test_a_root_called_world() -> None:
    text = SMALL.format(kind="revolute", axis="0 0 1").replace('"root"', '"world"')
    assert quiet_load(text, "fixed").nv == 2
    free = quiet_load(text, "free")
    assert free.nv == 8
    assert free.links[1].name == "world_link"


def test_merging_fixed_joints_changes_nothing() -> None:
    text = SMALL.format(kind="fixed", axis="0 0 1")
    merged, full = quiet_load(text, "free"), quiet_load(text, "free", merge_fixed=False)
    assert merged.nlinks == full.nlinks - 1
    for a, b in zip(states(merged, 5), states(full, 5), strict=True):
        assert_near(a.M, b.M, 0.0, 100 * EPS)
        assert_near(a.frame("a")[1], b.frame("a")[1], 1.0, 100 * EPS)


def test_mimic_limits_and_independent_joints() -> None:
    text = SMALL.format(kind="revolute", axis="0 0 1").replace(
        '<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="j" multiplier="-2" offset=".5"/>'
    )
    model = quiet_load(text)
    (coupling,) = model.constraints
    assert (coupling.joint, dict(coupling.terms), coupling.offset) == ("k", {"j": (-2.0,)}, 0.5)
    assert model.independent == ("j",)
    limits = model.links[model.joint("j")].limits
    assert (limits.lower, limits.upper, limits.effort, limits.velocity) == (-1, 1, 1, 1)
