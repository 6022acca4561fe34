"""Self-collision beside MuJoCo: the same pairs of geoms by the same rules, with the same friction and margins."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.contact import Ground
from linkwork.errors import LinkworkError
from linkwork.interop import mujoco as coordinates
from linkwork.io.mjcf import read_compiled
from linkwork.io.xml import LoadWarning
from linkwork.io.zoo import find
from linkwork.model.motion import Motion

mujoco = pytest.importorskip("mujoco")

SCENE = """
<mujoco>
  <option><flag {flag}/></option>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="post" type="capsule" fromto="0 1 0  0 1 1" size="0.1" friction="0.2 0.1 0.01" condim="4" margin="0.01"/>
    <body name="stand" pos="2 0 0">
      <geom name="stand" type="box" size="0.1 0.1 0.1"/>
      <body name="turret" pos="0 0 0.15"><joint axis="0 0 1"/>
        <geom name="turret" type="sphere" size="0.1" pos="0 0.15 0"/>
        <body name="barrel" pos="0 0.2 0"><joint name="up" axis="1 0 0"/><joint name="out" type="slide" axis="0 1 0"/>
          <geom name="barrel" type="capsule" fromto="0 0 0 0 0.3 0" size="0.03" friction="0.9 0 0" condim="1"/>
          <body name="sight" pos="0 0 0.05">
            <geom name="sight" type="sphere" size="0.02" condim="6" friction="0.4 0.02 0.003" priority="1"/>
            <body name="flag" pos="0 0 0.05"><joint axis="0 1 0"/>
              <geom name="flag" type="box" size="0.02 0.01 0.05" contype="2" conaffinity="4"/></body>
          </body>
          <body name="muzzle" pos="0 0.4 0"><joint axis="1 0 0"/>
            <geom name="muzzle" type="sphere" size="0.05" pos="0.03 0 0.01" contype="4" conaffinity="3"/></body>
        </body>
      </body>
    </body>
    <body name="ball" pos="0 0 1"><freejoint/>
      <geom name="ball" type="sphere" size="0.1" friction="0.5 0.01 0.001" margin="0.02" gap="0.01"/>
      <geom name="look" type="sphere" size="0.2" contype="0" conaffinity="0"/></body>
    <body name="crate" pos="0 0 2"><freejoint/><geom name="crate" type="box" size="0.1 0.1 0.1"/></body>
    <body name="egg" pos="0 0 3"><freejoint/><geom name="egg" type="ellipsoid" size="0.1 0.1 0.2"/></body>
  </worldbody>
  <contact>
    <exclude body1="crate" body2="turret"/>
    <pair geom1="crate" geom2="ball" friction="0.1 0.1 0 0 0"/>
  </contact>
</mujoco>
"""
SHAPES = ("SPHERE", "CAPSULE", "BOX")


def filtered(m) -> Iterator[tuple[int, int]]:
    """Pairs of geoms that MuJoCo may let touch, planes and other shapes aside, written after its documentation."""
    kinds = {int(getattr(mujoco.mjtGeom, f"mjGEOM_{k}")) for k in SHAPES}
    paired = {frozenset(map(int, ends)) for ends in zip(m.pair_geom1, m.pair_geom2, strict=True)}
    excluded = {frozenset((int(x) >> 16, int(x) & 0xFFFF)) for x in m.exclude_signature}
    by_parents = not m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    for g, h in combinations(range(m.ngeom), 2):
        a, b = int(m.geom_bodyid[g]), int(m.geom_bodyid[h])
        meet = m.geom_contype[g] & m.geom_conaffinity[h] or m.geom_contype[h] & m.geom_conaffinity[g]
        if {int(m.geom_type[g]), int(m.geom_type[h])} - kinds or not meet or {g, h} in paired or {a, b} in excluded:
            continue
        first, second = int(m.body_weldid[a]), int(m.body_weldid[b])
        over, under = (int(m.body_weldid[m.body_parentid[x]]) for x in (first, second))
        carried = by_parents and first and second and (first == under or second == over)
        if first != second and not carried:
            yield g, h


def listed(found: list[lw.Pair]) -> dict[frozenset[str], lw.Pair]:
    """By the names of the two shapes, one of their pairs."""
    out = {}
    for c in found:
        one, two = c.name.rpartition("/")[0].split("-")
        out[frozenset((one.rpartition("/")[2], two.rpartition("/")[2]))] = c
    return out


def load(tmp_path: Path, flag: str = "") -> tuple[lw.Model, object]:
    path = tmp_path / "scene.xml"
    path.write_text(SCENE.format(flag=flag))
    return lw.load(path), mujoco.MjModel.from_xml_path(str(path))


def found_in(model: lw.Model, *args, **how) -> list[lw.Pair]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)
        return lw.self_contacts(model, *args, **how)


@pytest.mark.parametrize("flag", ["", 'filterparent="disable"'])
def test_the_pairs_are_those_of_mujoco(tmp_path: Path, flag: str) -> None:
    """Bits, excludes, pairs, parents and welded bodies; neither sphere of the turret touches what carries it."""
    model, m = load(tmp_path, flag)
    names = [m.geom(g).name for g in range(m.ngeom)]
    theirs = {frozenset((names[g], names[h])) for g, h in filtered(m)}
    assert {*listed(found_in(model))} == theirs
    assert frozenset(("turret", "stand")) in theirs  # its parent is welded to the world
    assert frozenset(("crate", "turret")) not in theirs
    assert frozenset(("crate", "ball")) not in theirs
    assert frozenset(("flag", "muzzle")) in theirs
    assert frozenset(("sight", "barrel")) not in theirs
    assert (frozenset(("barrel", "turret")) in theirs) == bool(flag)
    assert [c.friction for c in lw.contacts(model) if isinstance(c, lw.Pair)] == [0.1]
    assert {*listed(found_in(pickle.loads(pickle.dumps(model))))} == theirs


def test_figures_are_mixed_as_mujoco_does(tmp_path: Path) -> None:
    """Friction, torsion, rolling, margin of each pair that touches where all bodies are heaped up."""
    model, m = load(tmp_path)
    data, seen = mujoco.MjData(m), 0
    ours = listed(found_in(model))
    rng = np.random.default_rng(0)
    for _ in range(300):
        data.qpos[:] = m.qpos0
        data.qpos[: m.nq] += rng.uniform(-1, 1, m.nq)
        for joint in range(m.njnt):
            if m.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
                at = m.jnt_qposadr[joint]
                near = data.geom(("post", "turret", "flag", "muzzle", "sight")[rng.integers(5)]).xpos
                data.qpos[at : at + 3] = near + rng.uniform(-0.15, 0.15, 3)
        mujoco.mj_forward(m, data)
        for c in data.contact:
            names = frozenset(m.geom(int(g)).name for g in c.geom)
            if "floor" in names or "egg" in names or names == {"crate", "ball"}:
                continue
            pair, seen = ours[names], seen + 1
            slide, _, torsion, roll, _ = c.friction
            assert pair.friction == (slide if c.dim > 1 else 0.0), names
            assert pair.torsion == (torsion if c.dim >= 4 else 0.0), names
            assert pair.rolling == (roll if c.dim == 6 else 0.0), names
            assert pair.margin == pytest.approx(c.includemargin, abs=1e-15), names
    assert seen > 300


def test_other_shapes_are_counted(tmp_path: Path) -> None:
    """In one warning."""
    model, _ = load(tmp_path)
    with pytest.warns(LoadWarning, match="left out are 'ellipsoid x 1', which could touch others") as told:
        lw.self_contacts(model)
    assert len(told) == 1


def test_links_of_the_caller(tmp_path: Path) -> None:
    """One of each pair is on the first links, one on the others; a friction that is given is that of all."""
    model, _ = load(tmp_path)
    scenery = {frozenset(("ball", "post")), frozenset(("ball", "stand"))}
    assert {*listed(found_in(model, ["ball"], ["world"]))} == scenery
    assert {*listed(found_in(model, ["world"], ["ball"]))} == {*listed(found_in(model, ["ball"], ["world"]))}
    assert {c.friction for c in found_in(model, friction=0.3)} == {0.3}
    assert all("ball" in c.name for c in found_in(model, ["ball"]))


def test_two_copies_know_their_own_bodies(tmp_path: Path) -> None:
    """Excludes and pairs of a file are about the bodies of one copy: its crate touches the other one's turret."""
    model, _ = load(tmp_path)
    once = listed(found_in(model))
    both = lw.combine(lw.Part(model, "a/"), lw.Part(model, "b/"))
    names = [c.name for c in found_in(both)]
    of = {side: [n for n in names if n.count(f"{side}/") == 2] for side in "ab"}
    for side in "ab":
        moving = {k for k in once if "post" not in k and "stand" not in k}
        assert len({n.rpartition("/")[0] for n in of[side]}) == len(moving)
    assert any(n.startswith("a/turret/turret-b/crate/crate") for n in names)
    assert not any(n.startswith("a/turret/turret-a/crate/crate") for n in names)
    pairs = [c.name for c in lw.contacts(both) if isinstance(c, lw.Pair)]
    assert len(pairs) == 2
    assert all(n.count("a/") == 2 or n.count("b/") == 2 for n in pairs)


ROBOTS = ("mujoco_humanoid.xml", "digit_v3.xml", "cassie.xml", "shadow_hand.xml", "go2.xml")


def robot(file: str) -> Path:
    try:
        return find(file.removesuffix(".xml")).path
    except LinkworkError as why:
        pytest.skip(f"{file} is in a folder of LINKWORK_ROBOTS: {why}")


def named(file: str) -> tuple[lw.Model, object]:
    """A robot with a name for every geom, without meshes."""
    spec = mujoco.MjSpec.from_file(str(robot(file)))
    for k, geom in enumerate(spec.geoms):
        geom.name = f"geom{k}"
    for thing in [g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_MESH] + [*spec.meshes]:
        spec.delete(thing)
    m = spec.compile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)
        return read_compiled(m), m


@pytest.mark.parametrize("file", ROBOTS)
def test_robots_from_files(file: str) -> None:
    """The list is that of MuJoCo's rules, and has all that its collision detection finds in random postures."""
    model, m = named(file)
    names = [m.geom(g).name for g in range(m.ngeom)]
    ours = {*listed(found_in(model))}
    assert ours == {frozenset((names[g], names[h])) for g, h in filtered(m)}
    data, kinds = mujoco.MjData(m), {int(getattr(mujoco.mjtGeom, f"mjGEOM_{k}")) for k in SHAPES}
    near = {*listed(found_in(model, near=0.03))}
    assert near <= ours
    touched, to = set(), coordinates(model, m)
    for q in model.random_q(1, batch=200):
        data.qpos[:] = to.q_to(q)
        mujoco.mj_kinematics(m, data)
        mujoco.mj_collision(m, data)
        for c in data.contact:
            if {int(m.geom_type[g]) for g in c.geom} <= kinds:
                touched.add(frozenset(names[g] for g in c.geom))
    assert touched <= ours
    assert touched <= near  # in other postures than those that it was sampled in


def test_legs_do_not_pass_through_each_other() -> None:
    """MuJoCo's humanoid, its hips pressed together: shins and thighs stay apart, and cross without contacts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)
        model = lw.load(robot("mujoco_humanoid.xml"), base="fixed")
    legs = found_in(model, ["thigh_right", "shin_right"], ["thigh_left", "shin_left"])
    assert len(legs) == 4
    tau = np.zeros(model.nv)
    for side in ("right", "left"):
        tau[model.v_slice(f"hip_x_{side}")] = 30.0

    def least(contacts: list[lw.Pair]) -> float:
        run = lw.rollout(model, dt=2e-3, contacts=contacts or [lw.Contact("thigh_left")], ground=lw.Ground(height=-9.0))
        after = run(model.neutral(), np.zeros(model.nv), tau, steps=150, every=3)
        assert after.converged
        out = []
        for q in after.q:
            motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)
            out += [float(c.evaluate(motion, Ground()).gap) for c in legs]
        return min(out)

    assert least([]) < -0.05
    assert least(legs) > -1e-5
