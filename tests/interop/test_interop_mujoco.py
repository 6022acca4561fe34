"""Our coordinates against MuJoCo itself: free, ball, hinge and slide joints, `ref`, several joints on a body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linkwork import interop
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import MissingExtra, UnsupportedError
from linkwork.joints import Cylindrical, Free, Planar, Prismatic, Revolute, Spherical, Universal
from linkwork.model import BodyInertia, Builder, Model, Motion, Placement
from linkwork.robots import mechanisms as mech
from surroundings import Missing

mujoco = pytest.importorskip("mujoco")
EPS = np.finfo(float).eps

INERTIAL = '<inertial pos="0.1 -0.05 0.2" mass="{m}" fullinertia="0.4 0.5 0.6 0.02 -0.03 0.05"/>'
ALL_KINDS = f"""
<mujoco><compiler angle="radian"/><option gravity="0.3 -0.2 -9.7"/><worldbody>
  <body name="a" pos="0.1 0.2 0.3" quat="0.8 0.1 -0.2 0.5"><freejoint name="root"/>{INERTIAL.format(m=3)}
    <body name="b" pos="0.3 0 0.1" quat="0.5 0.5 0.1 0.2">
      <joint name="ball" type="ball" armature="0.1"/>{INERTIAL.format(m=1)}
      <body name="c" pos="0 0.2 0">
        <joint name="hinge" axis="1 2 3" ref="0.4" armature="0.2"/>{INERTIAL.format(m=2)}</body>
    </body>
    <body name="d" pos="-0.2 0.1 0"><joint name="slide" type="slide" axis="0 1 1" ref="-0.2"/>{INERTIAL.format(m=1)}
      <body name="e" pos="0.1 0 0.2"><joint axis="0 1 0"/>{INERTIAL.format(m=2)}</body>
    </body>
  </body>
  <body name="f" pos="1 0 0"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <joint name="yaw" axis="0 0 1"/>{INERTIAL.format(m=2)}
    <body name="g" pos="0.2 0 0"><joint name="u1" axis="1 0 0"/><joint name="u2" axis="0 0 1"/>{INERTIAL.format(m=1)}
      <body name="h" pos="0 0.2 0"><joint name="along" type="slide" axis="0 0 1"/><joint name="about" axis="0 0 1"/>
        {INERTIAL.format(m=1)}</body></body>
  </body>
</worldbody></mujoco>
"""
NAMES = {"base": ["x", "y", "yaw"], "cross": ["u1", "u2"], "screw": ["along", "about"]}


def body(mass: float) -> BodyInertia:
    return BodyInertia(
        mass, np.array([0.1, -0.05, 0.2]), np.array([[0.4, 0.02, -0.03], [0.02, 0.5, 0.05], [-0.03, 0.05, 0.6]])
    )


def by_hand() -> Model:
    """The robot above, built here: zero where MuJoCo is at `ref`, with joints that MuJoCo does not have."""
    b = Builder("by hand", gravity=np.array([0.3, -0.2, -9.7]))

    def at(xyz: list[float], wxyz: tuple[float, ...] = (1, 0, 0, 0)) -> Placement:
        return Placement.from_quaternion(xyz, np.roll(wxyz, -1))

    b.link("f", joint=Planar(), placement=at([1, 0, 0]), inertia=body(2), joint_name="base")
    b.link("g", "f", Universal("x", "z"), placement=at([0.2, 0, 0]), inertia=body(1), joint_name="cross")
    b.link("h", "g", Cylindrical("z"), placement=at([0, 0.2, 0]), inertia=body(1), joint_name="screw")
    b.link(
        "a", joint=Free(), placement=at([0.5, -0.4, 0.2], (0.3, 0.2, 0.9, -0.1)), inertia=body(3), joint_name="float"
    )
    b.link("d", "a", Prismatic([0, 1, 1]), placement=at([-0.2, 0.1, 0]), inertia=body(1), joint_name="slide")
    b.link("e", "d", Revolute("y"), placement=at([0.1, 0, 0.2]), inertia=body(2))
    b.link(
        "b",
        "a",
        Spherical(),
        placement=at([0.3, 0, 0.1], (0.5, 0.5, 0.1, 0.2)),
        inertia=body(1),
        armature=0.1,
        joint_name="ball",
    )
    b.link("c", "b", Revolute([1, 2, 3]), placement=at([0, 0.2, 0]), inertia=body(2), armature=0.2, joint_name="hinge")
    return b.build()


def mass_matrix(mj_model: object, data: object) -> np.ndarray:
    M = np.zeros((mj_model.nv, mj_model.nv))
    try:
        mujoco.mj_fullM(mj_model, M, data.qM)
    except (TypeError, AttributeError):
        mujoco.mj_fullM(mj_model, data, M)
    return M


def agree(model: Model, mj_model: object, to: interop.Map, state: int) -> None:
    """M, bias and mj_forward's acceleration in one random state."""
    rng, data = np.random.default_rng(state), mujoco.MjData(mj_model)
    q, v, tau = model.random_q(state), *rng.normal(size=(2, model.nv))
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = to.q_to(q), to.v_to(q, v), to.tau_to(q, tau)
    mujoco.mj_forward(mj_model, data)
    s, T = Motion(model, q[:, None], v[:, None], NUMPY), to.velocity_matrix(q)
    M = crba(s)
    assert np.abs(T.T @ mass_matrix(mj_model, data) @ T - M).max() <= 100 * EPS * np.abs(M).max()
    still = to.a_from(q, v, np.zeros(model.nv))  # our acceleration when theirs is zero
    bias, ours = to.tau_from(q, np.array(data.qfrc_bias)), rnea(s, still[:, None])[:, 0]
    assert np.abs(bias - ours).max() <= 100 * EPS * (np.abs(ours).max() + np.abs(M).max() * np.abs(still).sum())
    a = aba(s, tau[:, None])[:, 0]
    theirs = np.array(data.qacc)
    assert np.abs(to.a_from(q, v, theirs) - a).max() <= 200 * EPS * np.linalg.cond(M) * np.abs(a).max()
    assert np.abs(to.a_to(q, v, a) - theirs).max() <= 200 * EPS * np.linalg.cond(M) * np.abs(theirs).max()


@pytest.mark.parametrize("state", range(10))
def test_all_kinds_built_by_hand(state: int) -> None:
    model, mj_model = by_hand(), mujoco.MjModel.from_xml_string(ALL_KINDS)
    agree(model, mj_model, interop.mujoco(model, mj_model, NAMES, from_ref=True), state)


def test_all_kinds_loaded(tmp_path: Path) -> None:
    from linkwork.io.load import load

    path = tmp_path / "robot.xml"
    path.write_text(ALL_KINDS)
    model, mj_model = load(path), mujoco.MjModel.from_xml_string(ALL_KINDS)
    for state in range(5):
        agree(model, mj_model, interop.mujoco(model, mj_model), state)


def test_ref_is_where_the_file_puts_it() -> None:
    model, mj_model = by_hand(), mujoco.MjModel.from_xml_string(ALL_KINDS)
    to = interop.mujoco(model, mj_model, NAMES, from_ref=True)
    there = to.q_to(model.neutral())
    assert there[mj_model.joint("hinge").qposadr[0]] == 0.4
    assert there[mj_model.joint("slide").qposadr[0]] == -0.2
    as_it_is = interop.mujoco(model, mj_model, NAMES).q_to(model.neutral())
    assert as_it_is[mj_model.joint("hinge").qposadr[0]] == 0.0


def test_round_trips_and_body_poses() -> None:
    model, mj_model = by_hand(), mujoco.MjModel.from_xml_string(ALL_KINDS)
    to, data = interop.mujoco(model, mj_model, NAMES, from_ref=True), mujoco.MjData(mj_model)
    q = np.array([model.random_q(k) for k in range(20)])
    assert np.abs(to.q_from(to.q_to(q)) - q).max() < 10 * EPS
    for k in range(20):
        data.qpos[:] = to.q_to(q[k])
        mujoco.mj_kinematics(mj_model, data)
        for name in "abcdefgh":
            ours = mech.frame_pose(model, name, q[k])
            assert np.abs(data.body(name).xpos - ours.p).max() < 1e-14
            assert np.abs(data.body(name).xmat.reshape(3, 3) - ours.R).max() < 1e-14


def test_motion_goes_the_same_way() -> None:
    """A small step with MuJoCo's integrator and with ours ends in the same place, up to the step squared."""
    model, mj_model = by_hand(), mujoco.MjModel.from_xml_string(ALL_KINDS)
    to, h = interop.mujoco(model, mj_model, NAMES, from_ref=True), 1e-6
    q, v = model.random_q(4), np.random.default_rng(4).normal(size=model.nv)
    there = to.q_to(q)
    mujoco.mj_integratePos(mj_model, there, to.v_to(q, v), h)
    moved = model.difference(q, to.q_from(there)) / h
    assert np.abs(moved - v).max() < 100 * h


def test_what_does_not_fit() -> None:
    model, mj_model = by_hand(), mujoco.MjModel.from_xml_string(ALL_KINDS)
    with pytest.raises(UnsupportedError, match=r"planar here and slide \+ hinge \+ slide"):
        interop.mujoco(model, mj_model, {**NAMES, "base": ["x", "yaw", "y"]})
    with pytest.raises(UnsupportedError, match="prismatic here and hinge"):
        interop.mujoco(model, mj_model, {**NAMES, "slide": "hinge", "hinge": "slide"})


def test_without_mujoco(missing: Missing) -> None:
    mj_model = mujoco.MjModel.from_xml_string(ALL_KINDS)
    missing("mujoco")
    with pytest.raises(MissingExtra, match=r"linkwork\[mjcf\]"):
        interop.mujoco(by_hand(), mj_model, NAMES)
