"""Contacts of <pair> elements of MJCF beside MuJoCo's own list: who touches, how far apart, with which friction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.io.xml import LoadWarning
from linkwork.model.motion import Motion

mujoco = pytest.importorskip("mujoco")

SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" friction="0.9 0 0"/>
    <geom name="post" type="capsule" fromto="0 1 0  0 1 1" size="0.1"/>
    <body name="ball" pos="0 0 0.29">
      <freejoint/><geom name="ball" type="sphere" size="0.1" contype="0" conaffinity="0"/>
    </body>
    <body name="crate" pos="0 0 0.1">
      <freejoint/><geom name="crate" type="box" size="0.1 0.1 0.1" friction="0.7 0 0" condim="3"/>
    </body>
    <body name="arm" pos="0 0.85 0.5">
      <joint type="slide" axis="0 1 0"/>
      <geom name="arm" type="capsule" fromto="-0.2 0 0  0.2 0 0.1" size="0.06" contype="0" conaffinity="0"/>
      <geom name="plate" type="cylinder" size="0.1 0.01" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <contact>
    <pair geom1="ball" geom2="crate" condim="4" friction="0.3 0.3 0.02 0.001 0.001"/>
    <pair geom1="arm" geom2="post" condim="6" friction="0.5 0.4 0.01 0.003 0.002" margin="0.03" gap="0.01"/>
    <pair geom1="floor" geom2="crate" condim="1"/>
    <pair geom1="floor" geom2="ball" friction="0.25 0.25 0 0 0" margin="0.5"/>
    {more}
  </contact>
</mujoco>
"""


def read(tmp_path: Path, more: str = "") -> tuple[lw.Model, list[lw.Contact | lw.Pair], Path]:
    path = tmp_path / "pairs.xml"
    path.write_text(SCENE.format(more=more))
    model = lw.load(path)
    return model, lw.contacts(model), path


def placed(model: lw.Model) -> np.ndarray:
    """Where the file has the two free bodies."""
    q = model.neutral()
    q[model.q_slice("ball_joint")][2], q[model.q_slice("crate_joint")][2] = 0.29, 0.1
    return q


def test_beside_mujoco(tmp_path: Path) -> None:
    """The ball is 1 cm in the crate, the arm 10 mm inside its margin, crate and ball over the floor."""
    model, found, path = read(tmp_path)
    theirs = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    q = placed(model)
    motion, ground = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY), lw.ground(model)
    ours = {c.name: (c, c.evaluate(motion, ground)) for c in found}
    assert len(ours) == len(found) == 4 + 1 + 1 + 1

    def contacts_of(*geoms: str) -> list:
        both = {theirs.geom(g).id for g in geoms}
        return [c for c in data.contact if {int(g) for g in c.geom} == both]

    for geoms, names in (
        (("ball", "crate"), ["ball-crate/0"]),
        (("arm", "post"), ["world-arm/0"]),
        (("floor", "crate"), [f"crate/crate/{k}" for k in range(4)]),
        (("floor", "ball"), ["ball/ball"]),
    ):
        listed = contacts_of(*geoms)
        assert len(listed) == len(names), geoms
        for theirs_one in listed:
            gaps = [float(ours[n][1].gap) for n in names]
            gap = theirs_one.dist - theirs_one.includemargin
            assert min(abs(g - gap) for g in gaps) < 1e-9, geoms
            for name in names:
                c, dim = ours[name][0], theirs_one.dim
                slide, other, torsion, roll, second = theirs_one.friction
                assert c.friction == (min(slide, other) if dim > 1 else 0.0)
                assert c.torsion == (torsion if dim >= 4 else 0.0)
                assert c.rolling == (min(roll, second) if dim == 6 else 0.0)
                assert c.margin == pytest.approx(theirs_one.includemargin, abs=1e-15)
                normal = theirs_one.frame[:3]
                np.testing.assert_allclose(np.abs(ours[name][1].axes[:, 2]), np.abs(normal), atol=1e-9)


def test_links_and_friction_of_the_caller(tmp_path: Path) -> None:
    """A pair is there if one of its links is asked for; the friction that is given is that of all."""
    model, _, _ = read(tmp_path)
    assert [c.name for c in lw.contacts(model, ["arm"], friction=0.2)] == ["world-arm/0"]
    assert {c.friction for c in lw.contacts(model, friction=0.2)} == {0.2}


def test_pairs_of_other_shapes_are_told(tmp_path: Path) -> None:
    """A cylinder that would touch a sphere."""
    with pytest.warns(LoadWarning, match="a pair of ellipsoid and cylinder is left out, 'ball' and 'plate'"):
        read(tmp_path, '<pair geom1="plate" geom2="ball"/>')


def test_a_step_keeps_the_margin(tmp_path: Path) -> None:
    """The ball, alone over the floor, comes to rest half a metre above it."""
    model, found, _ = read(tmp_path)
    ball = [c for c in found if c.name == "ball/ball"]
    run = lw.rollout(model, contacts=ball, ground=lw.ground(model))
    q = placed(model)
    q[model.q_slice("ball_joint")][2] = 0.7
    after = run(q, np.zeros(model.nv), steps=300)
    assert after.converged
    assert after.q[-1, model.q_slice("ball_joint")][2] == pytest.approx(0.6, abs=1e-3)
