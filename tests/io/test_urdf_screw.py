"""Screws in URDF: metres per turn in the file, metres per radian in the joint; they may be mimicked."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close
from linkwork.joints import Helical, Spherical, Universal

BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def robot(pitch: str) -> str:
    return f"""<robot name="r"><link name="a"/><link name="b">{BODY}</link><link name="c">{BODY}</link>
      <joint name="screw" type="screw"><parent link="a"/><child link="b"/><axis xyz="0 0 2"/>{pitch}</joint>
      <joint name="slide" type="prismatic"><parent link="a"/><child link="c"/><axis xyz="0 0 1"/>
        <mimic joint="screw" multiplier="0.5"/></joint></robot>"""


def test_a_turn_advances_by_the_pitch():
    model = lw.load(robot('<screw_thread_pitch value="0.02"/>'), format="urdf")
    joint = model.links[model.joint("screw")].joint
    assert isinstance(joint, Helical)
    q = np.zeros(2)
    q[model.q_slice("screw")] = 2 * np.pi
    assert_close(lw.forward_kinematics(model, "b", backend="numpy")(q).positions, [0, 0, 0.02])
    (coupling,) = model.constraints
    assert coupling.joint == "slide"


def test_drakes_tag_is_read_and_a_missing_pitch_is_an_error():
    model = lw.load(robot('<drake:screw_thread_pitch value="0.02"/>'), format="urdf")
    assert model.links[model.joint("screw")].joint == Helical("z", 0.02 / (2 * np.pi))
    with pytest.raises(lw.LinkworkError, match="screw_thread_pitch"):
        lw.load(robot(""), format="urdf")


@pytest.mark.parametrize(
    ("kind", "joint"), [("screw", Helical("z", 0.02 / (2 * np.pi))), ("ball", Spherical()), ("universal", Universal())]
)
def test_joints_of_drake_are_joints(kind, joint):
    model = lw.load(f"""<robot name="r" xmlns:drake="http://drake.mit.edu"><link name="a"/><link name="b">{BODY}</link>
      <drake:joint name="j" type="{kind}"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
        <drake:screw_thread_pitch value="0.02"/></drake:joint></robot>""")
    assert model.links[model.joint("j")].joint == joint
