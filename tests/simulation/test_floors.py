"""The ground of MJCF files: planes and height fields."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError
from linkwork.io.xml import LoadWarning

mujoco = pytest.importorskip("mujoco")

SCENE = """<mujoco>
  <asset><hfield name="hills" nrow="3" ncol="4" size="1.5 1 0.4 0.1"
    elevation="0 1 2 3  4 5 6 7  8 9 10 11"/></asset>
  <worldbody>
    {floor}
    <body name="ball" pos="0.1 0.2 1"><freejoint/><geom name="skin" size="0.05" friction="0.7" condim="4"/></body>
  </worldbody>
</mujoco>"""


def loaded(folder: Path, floor: str) -> lw.Model:
    file = folder / "scene.xml"
    file.write_text(SCENE.format(floor=floor))
    return lw.load(file)


def test_a_height_field_is_where_mujoco_has_it(tmp_path: Path) -> None:
    """Rays of MuJoCo meet it at the grid points, and the ball rests at that height."""
    model = loaded(tmp_path, '<geom name="hills" type="hfield" hfield="hills" pos="0.5 -0.25 0.3"/>')
    field = lw.ground(model)
    assert isinstance(field, lw.HeightField)
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml"))
    data, hit = mujoco.MjData(theirs), np.zeros(1, np.int32)
    data.qpos[2] = 50.0
    mujoco.mj_forward(theirs, data)
    z, (x, y) = np.asarray(field.heights), np.asarray(field.centre)
    for j, i in ((1, 1), (1, 2)):
        at = np.array([x - 1.5 + i, y - 1.0 + j, 10.0])
        depth = mujoco.mj_ray(theirs, data, at, np.array([0, 0, -1.0]), None, 1, -1, hit)
        assert 10.0 - depth == pytest.approx(z[j, i], abs=1e-6)


def test_planes_and_files_without_ground(tmp_path: Path) -> None:
    tilted = lw.ground(loaded(tmp_path, '<geom type="plane" size="1 1 1" pos="0 0 0.2" euler="30 0 0"/>'))
    assert isinstance(tilted, lw.Ground)
    assert np.asarray(tilted.normal) == pytest.approx([0.0, -0.5, np.sqrt(0.75)])
    assert tilted.height == pytest.approx(0.2 * np.sqrt(0.75))
    assert lw.ground(loaded(tmp_path, "")) == lw.Ground()
    with pytest.warns(LoadWarning, match="one ground is taken, 'hills'; 'flat'"):
        lw.ground(
            loaded(
                tmp_path,
                '<geom name="flat" type="plane" size="1 1 1"/><geom name="hills" type="hfield" hfield="hills"/>',
            )
        )
    with pytest.raises(InputError, match="turned"):
        lw.ground(loaded(tmp_path, '<geom name="hills" type="hfield" hfield="hills" euler="0 10 0"/>'))
