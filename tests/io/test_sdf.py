"""SDF: the files on this machine, and random robots written as SDF in many ways against the model they come from.

All poses in an SDF file are given with every joint at zero, so there each link must be where the file puts it and each
loop must be closed. For the dynamics, URDF robots (which agree with Pinocchio) are written as SDF with joint frames
moved and turned at random, joints turned round, and loops added; mass matrix and inverse dynamics must not change.
"""

from __future__ import annotations

import numpy as np
import pytest
from loaded import EPS, State, assert_near, quiet_load, robots, states

from linkwork.errors import LoadError
from linkwork.io import zoo
from linkwork.io.sdf_scope import read_pose
from linkwork.io.xml import parse
from linkwork.io.zoo import Robot
from linkwork.model import Model, Placement


def at_zero(model: Model) -> State:
    return State(model, model.neutral(), np.zeros(model.nv))


@pytest.mark.parametrize("robot", robots(".sdf"))
def test_files(robot: Robot, capsys: pytest.CaptureFixture[str]) -> None:
    model = quiet_load(robot.path)
    (element,) = parse(robot.path.read_bytes(), "file").all("model")
    links = {l.name: read_pose(l) for l in element.all("link")}
    s = at_zero(model)
    root = next(l for l in model.links if l.joint_name in ("root_joint", "static")).name
    R0, p0 = s.frame(root)
    for name, pose in links.items():
        R, p = s.frame(name)
        expected = links[root].inverse() @ pose
        assert_near(R0.T @ R, expected.R, 1.0, 1e-11)
        assert_near(R0.T @ (p - p0), expected.p, 1.0, 1e-11)
    total = sum(float(i.need("mass").content(1)[0]) for l in element.all("link") for i in l.all("inertial"))
    assert model.mass == pytest.approx(total)
    assert np.linalg.eigvalsh(states(model, 1)[0].M)[0] > 0
    loops = len([j for j in element.all("joint") if j.get("type") != "gearbox"]) - len(model.links[1:])
    loops += any(l.joint_name == "root_joint" for l in model.links)
    gears = [j.name for j in element.all("joint") if j.get("type") == "gearbox"]
    assert {c.name for c in model.constraints} >= set(gears)
    assert len(model.constraints) - len(gears) == loops
    for c in model.constraints:
        assert np.abs(c.position_error(s.motion)).max() < 1e-13
    with capsys.disabled():
        print(f"\nSDF robot {robot.name}: {model.nv} degrees of freedom, {loops} loops, {len(gears)} gearboxes")


def test_cassie_cuts_the_rods_ball_joints() -> None:
    try:
        model = quiet_load(zoo.find("cassie_v2").path)
    except LookupError:
        pytest.skip("cassie_v2.sdf is not installed")
    assert [c.joint for c in model.constraints] == ["spherical"] * 4
    assert (model.nv, model.rows) == (28, 12)


def vector(values: np.ndarray) -> str:
    return " ".join(f"{x:.17g}" for x in values)


def pose(X: Placement) -> str:
    yaw, pitch = np.arctan2(X.R[1, 0], X.R[0, 0]), np.arctan2(-X.R[2, 0], np.hypot(X.R[0, 0], X.R[1, 0]))
    roll = np.arctan2(X.R[2, 1], X.R[2, 2])
    return vector(np.array([*X.p, roll, pitch, yaw]))


KINDS = {"revolute": "revolute", "prismatic": "prismatic", "spherical": "ball", "fixed": "fixed"}


def as_sdf(model: Model, seed: int, turned_round: bool, newer: bool) -> str:
    """The model written as SDF, with joint frames anywhere on their axes and, if asked, some joints turned round."""
    rng = np.random.default_rng(seed)
    s = at_zero(model)
    parts = []
    for i, l in enumerate(model.links):
        if i == 0:
            continue
        R, p = s.motion.poses[i]
        X, inertia = Placement(R, p[:, 0]), l.inertia
        inertial = (
            f"<inertial><pose>{vector(inertia.com)} 0 0 0</pose><mass>{inertia.mass:.17g}</mass><inertia>"
            + "".join(
                f"<{t}>{inertia.I[a, b]:.17g}</{t}>"
                for t, a, b in (
                    ("ixx", 0, 0),
                    ("iyy", 1, 1),
                    ("izz", 2, 2),
                    ("ixy", 0, 1),
                    ("ixz", 0, 2),
                    ("iyz", 1, 2),
                )
            )
            + "</inertia></inertial>"
        )
        parts.append(f'<link name="{l.name}"><pose>{pose(X)}</pose>{inertial}</link>')
        if l.parent == 0 and l.joint.kind == "free":
            continue
        Rp, pp = s.motion.poses[l.parent]
        parent, names = Placement(Rp, pp[:, 0]), (model.links[l.parent].name, l.name)
        axis = getattr(l.joint, "axis", np.array([0.0, 0.0, 1.0]))
        shift = axis * rng.normal() if l.joint.kind == "revolute" else np.zeros(3)
        on_child = Placement(p=shift) @ Placement.at((0, 0, 0), rng.normal(size=3) if rng.random() < 0.7 else (0, 0, 0))
        joint_axis, sign = on_child.R.T @ axis, 1.0
        at = on_child
        if turned_round and l.parent and rng.random() < 0.5:
            names, sign = names[::-1], -1.0
            at = parent.inverse() @ X @ on_child  # the pose is given in what is now the child
        joint_axis, where = sign * joint_axis, ""
        if newer and rng.random() < 0.5:
            joint_axis, where = X.R @ on_child.R @ joint_axis, ' expressed_in="__model__"'
        elif not newer and rng.random() < 0.5:
            joint_axis, where = X.R @ on_child.R @ joint_axis, "flag"
        flag = "<use_parent_model_frame>1</use_parent_model_frame>" if where == "flag" else ""
        where = "" if where == "flag" else where
        parts.append(
            f'<joint name="{l.joint_name}" type="{KINDS[l.joint.kind]}"><pose>{pose(at)}</pose>'
            f"<parent>{names[0]}</parent><child>{names[1]}</child><axis><xyz{where}>{vector(joint_axis)}</xyz>{flag}</axis></joint>"
        )
    version = "1.9" if newer else "1.6"
    return f'<sdf version="{version}"><model name="m">{"".join(parts)}</model></sdf>'


@pytest.mark.parametrize("name", ["go1", "iiwa", "panda", "talos_reduced", "tiago_pro"])
@pytest.mark.parametrize(("turned_round", "newer"), [(False, False), (True, True)])
def test_a_urdf_robot_written_as_sdf(name: str, turned_round: bool, newer: bool) -> None:
    try:
        robot = zoo.find(name)
    except LookupError:
        pytest.skip(f"{name} is not installed")
    model = quiet_load(robot.path, robot.base).without_constraints()
    again = quiet_load(as_sdf(model, 3, turned_round, newer))
    assert again.nv == model.nv
    for s in states(model, 3):
        parts, slices = {}, {}
        for i in model.topology.links:
            parts[model.links[i].joint_name] = s.q[model.topology.q_slices[i]]
            slices[model.links[i].joint_name] = np.r_[model.topology.v_slices[i]]
        order = [l.joint_name for l in again.links[1:]]
        rows = np.concatenate([slices[j] for j in order])
        other = State(again, np.concatenate([parts[j] for j in order]), s.v[rows])
        relative = 1e-11  # angles in the text and rotations rounded to 1e-12
        assert_near(other.M, s.M[np.ix_(rows, rows)], 0.0, relative)
        assert_near(other.rnea(), s.rnea()[rows], float(np.abs(s.M).max()), relative)


LOOP = """<sdf version="1.7"><world name="w"><gravity>0 0 -1</gravity><model name="ground"><static>true</static>
  <link name="g"/></model><model name="loop"><pose>1 0 0 0 0 0</pose>
  <link name="a"/><link name="b"><pose>1 0 0 0 0 0</pose></link>
  <link name="c"><pose relative_to="b">0 1 0 0 0 0</pose></link>
  <frame name="tip" attached_to="c"><pose>0.5 0 0 0 0 0</pose></frame>
  <joint name="base" type="fixed"><parent>world</parent><child>a</child></joint>
  <joint name="j1" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz>
    <limit><lower>-1</lower><upper>1e16</upper><effort>-1</effort></limit></axis></joint>
  <joint name="j2" type="{}"><parent>b</parent><child>c</child><axis><xyz>0 0 1</xyz></axis>
    <axis2><xyz>0 1 0</xyz></axis2><screw_thread_pitch>0.1</screw_thread_pitch></joint>
  <joint name="j3" type="continuous"><pose relative_to="tip"/><parent>a</parent><child>tip</child>
    <axis><xyz expressed_in="b">0 0 1</xyz></axis></joint>
  </model></world></sdf>"""


@pytest.mark.parametrize(
    ("kind", "cut", "nv"),
    [
        ("revolute", "revolute", 2),
        ("ball", "spherical", 2),
        ("universal", "universal", 2),
        ("screw", "helical", 2),
        ("prismatic", "prismatic", 2),
        ("fixed", "revolute", 1),
    ],
)
def test_loops(kind: str, cut: str, nv: int) -> None:
    model = quiet_load(LOOP.format(kind))
    assert [c.joint for c in model.constraints] == [cut]
    assert model.nv == nv
    assert np.allclose(model.gravity, [0, 0, -1])
    s = at_zero(model)
    assert s.frame("tip")[1] == pytest.approx([2.5, 1, 0])
    assert np.abs(model.constraints[0].position_error(s.motion)).max() < 10 * EPS
    limits = model.links[model.joint("j1")].limits
    assert (limits.lower, limits.upper, limits.effort) == (-1, np.inf, np.inf)
    with pytest.raises(LoadError, match="ties the model to the world"):
        quiet_load(LOOP.format(kind), "free")


def test_universal_in_the_tree_turns_round() -> None:
    """A universal joint met from its child's side has its two angles in the other order."""
    text = """<sdf version="1.7"><model name="m" canonical_link="{root}"><link name="a"/><link name="b"/>
      <joint name="u" type="universal"><parent>a</parent><child>b</child><axis><xyz>1 0 0</xyz></axis>
      <axis2><xyz>0 1 0</xyz></axis2></joint></model></sdf>"""
    on_a, on_b = (quiet_load(text.format(root=r), "fixed") for r in "ab")
    Ra, _ = State(on_a, np.array([0.3, 0.5]), np.zeros(2)).frame("b")
    Rb, _ = State(on_b, np.array([0.5, 0.3]), np.zeros(2)).frame("a")
    assert np.abs(Ra - Rb.T).max() < 10 * EPS


def test_gearbox_and_mimic() -> None:
    text = """<sdf version="1.11"><model name="m"><link name="r"/><link name="a"/><link name="b"/><link name="c"/>
      <joint name="ja" type="revolute"><parent>r</parent><child>a</child><axis><xyz>0 0 1</xyz></axis></joint>
      <joint name="jb" type="revolute"><parent>b</parent><child>r</child><axis><xyz>0 0 1</xyz></axis></joint>
      <joint name="jc" type="revolute"><parent>b</parent><child>c</child><axis><xyz>0 0 1</xyz>
        <mimic joint="ja"><multiplier>2</multiplier><offset>1</offset><reference>.25</reference></mimic></axis></joint>
      <joint name="gear" type="gearbox"><parent>a</parent><child>b</child><gearbox_ratio>3</gearbox_ratio>
        <gearbox_reference_body>r</gearbox_reference_body><axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>
      </joint></model></sdf>"""
    model = quiet_load(text)
    found = {c.name: c for c in model.constraints}
    assert dict(found["gear"].terms) == {"ja": (3.0,)}  # theta_2 = -3 theta_1, and jb turns r against b
    assert (dict(found["jc/mimic"].terms), found["jc/mimic"].offset) == ({"ja": (2.0,)}, 0.5)


def test_nested_models_and_relative_poses() -> None:
    text = """<sdf version="1.9"><model name="m"><static>true</static>
      <link name="a"><pose degrees="true">0 0 1 0 0 90</pose></link>
      <model name="n"><pose relative_to="a">1 0 0 0 0 0</pose><link name="a"><pose rotation_format="quat_xyzw">
        0 1 0 0 0 0 1</pose></link></model>
      <joint name="j" type="revolute"><parent>a</parent><child>n::a</child><axis><xyz>0 0 1</xyz></axis></joint>
      </model></sdf>"""
    s = at_zero(quiet_load(text))
    assert s.frame("n::a")[1] == pytest.approx([-1, 1, 1])
    assert quiet_load(text, "free").nv == 7
