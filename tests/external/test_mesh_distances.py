"""Gaps between meshes beside MuJoCo's distances: convex hulls of the meshes of an MJCF file, balls, capsules, boxes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.io.xml import LoadWarning

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("coal")

SCENE = """
<mujoco>
  <asset><mesh name="lump" vertex="{lump}"/><mesh name="chip" vertex="{chip}" scale="1 0.5 2"/></asset>
  <worldbody>
    <body name="lump"><freejoint/><geom name="lump" type="mesh" mesh="lump" pos="0.02 0 0.01" euler="20 30 40"/></body>
    <body name="chip"><freejoint/><geom name="chip" type="mesh" mesh="chip"/></body>
    <body name="ball"><freejoint/><geom name="ball" type="sphere" size="0.05"/></body>
    <body name="rod"><freejoint/><geom name="rod" type="capsule" fromto="0 0 -0.1 0 0 0.1" size="0.02"/></body>
    <body name="block"><freejoint/><geom name="block" type="box" size="0.05 0.1 0.02"/></body>
  </worldbody>
</mujoco>
"""
TOLERANCE = 1e-6
"""MuJoCo's, of distances."""


def test_the_nearest_gap_is_mujocos_distance(tmp_path: Path) -> None:
    """Of the mesh `lump` from each of the others in random poses near it; of penetrating ones both have some depth."""
    rng, path = np.random.default_rng(0), tmp_path / "scene.xml"
    clouds = {name: " ".join(f"{x:.6f}" for x in rng.normal(0, 0.05, 3 * 20)) for name in ("lump", "chip")}
    path.write_text(SCENE.format(**clouds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)
        model = lw.load(path)
    m = mujoco.MjModel.from_xml_path(str(path))
    data, meshes = mujoco.MjData(m), {body.frame: body for body in lw.mesh_bodies(model)}
    others = {
        "chip": meshes["chip"],
        "ball": lw.Ball("ball", radius=0.05),
        "rod": lw.Rod("rod", (0, 0, -0.1), (0, 0, 0.1), 0.02),
        "block": lw.Block("block", (0.1, 0.2, 0.04)),
    }
    find = lw.find_contacts(model, [c for b in others.values() for c in lw.mesh_pairs(meshes["lump"], b)])
    apart = 0
    for _ in range(50):
        q = model.neutral()
        for k in range(5):
            turn = rng.standard_normal(4)
            q[7 * k : 7 * k + 7] = np.r_[rng.uniform(-0.25, 0.25, 3) * (k > 0), turn / np.linalg.norm(turn)]
        data.qpos[:] = lw.interop.mujoco(model, m).q_to(q)
        mujoco.mj_kinematics(m, data)
        gaps = find(q).reshape(len(others), 4, 7)[:, :, 6].min(axis=1)
        for name, gap in zip(others, gaps, strict=True):
            theirs = mujoco.mj_geomDistance(m, data, m.geom("lump").id, m.geom(name).id, 10.0, None)
            assert (gap < 0) == (theirs < 0)
            if theirs > 0:
                assert gap == pytest.approx(theirs, abs=TOLERANCE), name
                apart += 1
    assert apart > 100
