"""Contacts of meshes: places by coal, steps that take them, and what is no mesh."""

from __future__ import annotations

import warnings
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.contact import Ground
from linkwork.constraints.meshes import FAR
from linkwork.errors import InputError, MissingExtra, UnsupportedError
from linkwork.model import Motion
from linkwork.model.visual import Collider, Mesh
from linkwork.simulation.ground.manifolds import nearest_on_triangles

pytest.importorskip("coal")

SIDE = 0.1
CUBE = np.array(list(product((-1.0, 1.0), repeat=3))) * SIDE / 2
FACES = np.array(
    [[0, 2, 3], [0, 3, 1], [4, 5, 7], [4, 7, 6], [0, 1, 5], [0, 5, 4], [2, 6, 7], [2, 7, 3], [0, 4, 6], [0, 6, 2]]
    + [[1, 3, 7], [1, 7, 5]]
)[:, ::-1]
TABLE = np.array(list(product((-0.5, 0.5), (-0.5, 0.5), (-0.2, 0.0))))


def bodies(*masses: float, gravity: float = 9.81) -> lw.Model:
    """Free cubes."""
    b = lw.Builder("cubes", np.array([0.0, 0.0, -gravity]))
    for i, m in enumerate(masses):
        b.link(f"cube{i}", joint="free", inertia=lw.BodyInertia(m, np.zeros(3), np.eye(3) * m * SIDE**2 / 6))
    return b.build()


def bowl(outer: float = 0.3, inner: float = 0.25, around: int = 16, steps: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Half a shell, open upwards: vertices and faces of a closed surface, its lowest place inside at -inner."""
    angles = np.linspace(0, np.pi / 2, steps)
    profile = [(r * np.sin(a), -r * np.cos(a)) for r, turn in ((outer, 1), (inner, -1)) for a in angles[::turn]]
    vertices, faces, rings = [], [], []
    for x, z in profile:
        count = 1 if x < 1e-12 else around
        rings.append([len(vertices) + k % count for k in range(around)])
        vertices += [[x * np.cos(t), x * np.sin(t), z] for t in 2 * np.pi * np.arange(count) / around]
    for one, two in pairwise(rings):
        for k in range(around):
            a, b, c, d = one[k], one[(k + 1) % around], two[k], two[(k + 1) % around]
            faces += [t for t in ((a, b, d), (a, d, c)) if len(set(t)) == 3]
    return np.array(vertices), np.array(faces)


def turned(rng: np.random.Generator, *middle: float) -> np.ndarray:
    quaternion = rng.standard_normal(4)
    return np.r_[middle, quaternion / np.linalg.norm(quaternion)]


def simulated(model: lw.Model, contacts: list, q: np.ndarray, v: np.ndarray, duration: float, dt: float = 1e-3):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some steps are solved to 1e-8 m/s instead of 1e-8 of a small velocity
        return lw.simulate(model, q, v, contacts=contacts, duration=duration, dt=dt, ground=Ground(), progress=False)


def solids() -> dict[str, tuple]:
    """Pairs on cube0 and cube1 that are near each other at a distance of some centimetres."""
    V, F = bowl(0.12, 0.09, 10, 5)
    cube = lw.MeshBody("cube1", CUBE)
    return {
        "cubes": (lw.MeshBody("cube0", CUBE), cube),
        "cube and block": (lw.Block("cube0", (0.1, 0.05, 0.08)), cube),
        "ball and cube": (lw.Ball("cube0", (0.01, 0, 0), 0.04), cube),
        "cube and point": (cube, lw.Ball("cube0")),
        "rod and cube": (lw.Rod("cube0", (0, 0, -0.1), (0, 0.02, 0.1), 0.02), cube),
        "ball and bowl": (lw.Ball("cube0", radius=0.03), lw.MeshBody("cube1", V, F)),
        "cube and bowl": (lw.MeshBody("cube0", CUBE, FACES), lw.MeshBody("cube1", V, F)),
        "cube and plane": (lw.MeshBody("cube0", CUBE), lw.Ground((0.3, 0.1, 1.0), -0.1)),
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", solids())
def test_the_gap_changes_with_the_normal_velocity(kind: str) -> None:
    """d gap / dt = n^T (velocity of one - velocity of the other) of the nearest slot, by differences."""
    model, (a, b) = bodies(1.0, 1.0), solids()[kind]
    find = lw.find_contacts(model, lw.mesh_pairs(a, b, 6, reach=0.3), backend="numpy")
    rng, seen = np.random.default_rng(4), 0
    for _ in range(12):
        q, v = np.r_[turned(rng, 0.02, 0.01, 0.06), turned(rng, 0.0, 0.01, -0.06)], rng.standard_normal(12)
        slots = find(q).reshape(-1, 7)
        k, h = int(np.argmin(slots[:, 6])), 1e-7
        if slots[k, 6] == FAR:
            continue
        np.testing.assert_allclose(np.linalg.norm(slots[k, 3:6]), 1.0, atol=1e-12)
        placed = find.placed(q)[k]
        motion = Motion(model, q[:, None], v[:, None], NUMPY)
        touch = placed.evaluate(motion, Ground())
        u = sum(K @ motion.v[model.topology.v_slices[i], :] for i, K in touch.K.items())
        ends = [find(model.integrate(q, side * h * v)).reshape(-1, 7)[:, 6].min() for side in (-1, 1)]
        if abs(ends[0] + ends[1] - 2 * slots[k, 6]) > 1e-10:  # another face
            continue
        assert (ends[1] - ends[0]) / (2 * h) == pytest.approx(float(u[2, 0]), abs=2e-6)
        seen += 1
    assert seen > 5


def test_places_scale_with_the_bodies() -> None:
    """A hundred times as large, and a hundredth."""
    rng = np.random.default_rng(0)
    V, F = bowl(0.12, 0.09, 10, 5)
    model, q = bodies(1.0, 1.0), np.r_[turned(rng, 0.02, 0.01, 0.03), turned(rng, 0, 0, -0.08)]
    for faces in (None, F):
        found = []
        for size in (0.01, 1.0, 100.0):
            pair = lw.MeshBody("cube0", size * CUBE), lw.MeshBody("cube1", size * V, faces)
            find = lw.find_contacts(model, lw.mesh_pairs(*pair, 6, reach=0.05 * size), backend="numpy")
            at = q.copy()
            at[[0, 1, 2, 7, 8, 9]] *= size
            rows = find(at).reshape(-1, 7)
            rows = rows[rows[:, 6] < FAR]
            found.append(np.hstack([rows[:, :3] / size, rows[:, 3:6], rows[:, 6:] / size]))
        assert len(found[0])
        for other in (found[0], found[2]):
            np.testing.assert_allclose(other, found[1], atol=1e-8)


@pytest.mark.parametrize("under", ["plane", "block", "hull", "surface"])
def test_a_mesh_cube_is_a_box(under: str) -> None:
    """It slides as far as a box does, and then stands; as a hull or a surface, on a plane, a block or a mesh."""
    model, q, v = bodies(1.0), np.r_[0, 0, SIDE / 2, 0, 0, 0, 1], np.r_[1.0, 0, 0, 0, 0, 0]
    box = [lw.BoxContact("cube0", size=(SIDE,) * 3, corner=k, friction=0.5) for k in range(4)]
    table = {
        "plane": lw.Ground(),
        "block": lw.Block("world", (1, 1, 0.2), lw.Placement(p=np.array([0.0, 0.0, -0.1]))),
        "hull": lw.MeshBody("world", TABLE),
        "surface": lw.MeshBody("world", *walled()),
    }[under]
    cube = lw.MeshBody("cube0", CUBE, FACES if under == "surface" else None)
    contacts = lw.mesh_pairs(cube, table, 8 if under == "surface" else 4, friction=0.5)
    one, other = (simulated(model, c, q, v, 0.3) for c in (box, contacts))
    np.testing.assert_allclose(other.q, one.q, atol=1e-6)  # solved to 1e-8 of velocities, in every step
    assert np.abs(other.v[-1]).max() < 1e-9


def walled() -> tuple[np.ndarray, np.ndarray]:
    """A table with a wall at one side: not convex."""
    outline = [(-0.5, -0.2), (0.5, -0.2), (0.5, 0.0), (-0.4, 0.0), (-0.4, 0.3), (-0.5, 0.3)]
    n, near = len(outline), [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    vertices = np.array([[x, y, z] for y in (-0.5, 0.5) for x, z in outline])
    sides = [t for k in range(n) for t in ((k, n + k, (k + 1) % n), ((k + 1) % n, n + k, n + (k + 1) % n))]
    faces = [*near, *((c + n, b + n, a + n) for a, b, c in near), *sides]
    return vertices, np.array(faces)


def test_a_thrown_mesh_ends_on_a_face() -> None:
    rng = np.random.default_rng(0)
    contacts = lw.mesh_pairs(lw.MeshBody("cube0", CUBE), lw.Ground(), friction=0.5)
    run = simulated(bodies(1.0), contacts, turned(rng, 0, 0, 0.2), np.array([1.0, 0, 0, 1, 2, 3]), 0.8)
    assert run.q[-1, 2] == pytest.approx(SIDE / 2, abs=1e-6)
    assert np.abs(run.v[-1]).max() < 1e-9
    R = lw.forward_kinematics(bodies(1.0), backend="numpy")(run.q).rotations[:, 0]
    assert (np.einsum("nij,cj->nci", R, CUBE)[..., 2] + run.q[:, 2:3]).min() > -1e-3


def test_a_ball_and_a_cube_rest_in_a_bowl() -> None:
    """Neither falls through the shell or comes out; the cube stays where it is."""
    V, F = bowl()
    shell = lw.MeshBody("world", V, F, lw.Placement(p=np.array([0.0, 0.0, 0.3])))
    assert not shell.convex
    model = bodies(1.0)
    ball = lw.mesh_pairs(lw.Ball("cube0", radius=0.05), shell, 3, friction=0.5)
    run = simulated(model, ball, np.r_[0.1, 0, 0.25, 0, 0, 0, 1], np.zeros(6), 1.0, 2e-3)
    inside = np.linalg.norm(run.q[:, :3] - [0, 0, 0.3], axis=1)
    assert inside.max() < 0.25 - 0.05 + 1e-3
    assert (run.q[250:, 2] < 0.25).all()
    cube = lw.mesh_pairs(lw.MeshBody("cube0", CUBE), shell, 6, friction=0.3)
    run = simulated(model, cube, turned(np.random.default_rng(0), 0.05, 0, 0.25), np.zeros(6), 0.6, 2e-3)
    assert np.abs(run.v[-1]).max() < 1e-9
    assert 0.1 < run.q[-1, 2] < 0.12


def test_a_stack_of_meshes_rests() -> None:
    """Three cubes of 1, 10 and 100 kg, each beside the one below by some millimetres."""
    model, cubes = bodies(1.0, 10.0, 100.0), [lw.MeshBody(f"cube{i}", CUBE) for i in range(3)]
    contacts = lw.mesh_pairs(cubes[0], lw.Ground())
    contacts += lw.mesh_pairs(cubes[1], cubes[0]) + lw.mesh_pairs(cubes[2], cubes[1])
    q = np.concatenate([np.r_[p, 0, 0, 0, 1] for p in ((0, 0, 0.05), (0.01, 0.02, 0.15), (0, 0.01, 0.25))])
    run = simulated(model, contacts, q, np.zeros(18), 0.1)
    np.testing.assert_allclose(run.q[-1], q, atol=1e-9)


def test_momentum_is_kept() -> None:
    """Two cubes that hit each other in free space, spinning; kinetic energy never rises."""
    model = bodies(1.0, 3.0, gravity=0.0)
    rng, fk = np.random.default_rng(1), lw.forward_kinematics(model, backend="numpy")
    q = np.r_[turned(rng, -0.2, 0.02, 0.01), turned(rng, 0.1, 0, 0)]
    v, inertia = 3 * rng.standard_normal(12), np.array([1.0, 3.0])
    for i, speed in enumerate((1.0, -0.5)):
        v[6 * i : 6 * i + 3] = fk(q).rotations[i].T @ [speed, 0, 0]
    contacts = lw.mesh_pairs(lw.MeshBody("cube0", CUBE), lw.MeshBody("cube1", CUBE), friction=0.5)
    run = simulated(model, contacts, q, v, 0.4)
    assert run.lam.any()

    def of(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        at, out = fk(q), np.zeros(6)
        for i, m in enumerate(inertia):
            linear, angular = (at.rotations[i] @ v[6 * i + k : 6 * i + k + 3] for k in (0, 3))
            out += np.r_[m * linear, m * np.cross(at.positions[i], linear) + m * SIDE**2 / 6 * angular]
        return out

    np.testing.assert_allclose(of(run.q[-1], run.v[-1]), of(run.q[0], run.v[0]), atol=1e-12)
    weights = np.concatenate([m * np.r_[np.ones(3), np.full(3, SIDE**2 / 6)] for m in inertia])
    assert (np.diff(run.v**2 @ weights) <= 1e-12).all()


def test_batches_and_float32() -> None:
    """Places of many states, and steps of these, are those of one after the other."""
    model, rng = bodies(1.0), np.random.default_rng(2)
    contacts = lw.mesh_pairs(lw.MeshBody("cube0", CUBE), lw.Ground())
    find, step = lw.find_contacts(model, contacts), lw.step(model, contacts)
    q, zero = np.array([turned(rng, 0, 0, 0.05) for _ in range(5)]), np.zeros((5, 6))
    places = find(q)
    np.testing.assert_array_equal(places, [find(each) for each in q])
    after = step(q, zero, zero, 1e-3, places)
    for k in range(5):
        np.testing.assert_allclose(step(q[k], zero[k], zero[k], 1e-3, find(q[k])).v, after.v[k], atol=1e-10)
    single = lw.step(model, contacts, dtype="float32")(q[0], zero[0], zero[0], 1e-3, find(q[0]))
    np.testing.assert_allclose(single.v, after.v[0], atol=1e-3)


def test_other_loops_say_what_to_use() -> None:
    model, contacts = bodies(1.0), lw.mesh_pairs(lw.MeshBody("cube0", CUBE), lw.Ground())
    with pytest.raises(UnsupportedError, match=r"use lw.simulate, or lw.step with lw.find_contacts"):
        lw.rollout(model, contacts=contacts)
    with pytest.raises(UnsupportedError, match=r"`places`, which lw.find_contacts"):
        contacts[0].evaluate(Motion(model, model.neutral()[:, None], np.zeros((6, 1)), NUMPY), Ground())
    step = lw.step(model, contacts, backend="numpy")
    with pytest.raises(InputError, match="places"):
        step(model.neutral(), np.zeros(6), np.zeros(6), 1e-3)
    with pytest.raises(InputError, match="places"):
        step(model.neutral(), np.zeros(6), np.zeros(6), 1e-3, np.full(28, np.nan))
    with pytest.raises(InputError, match="none of these contacts is of a mesh"):
        lw.find_contacts(model, [lw.Contact("cube0")])
    with pytest.raises(InputError, match="flat"):
        lw.find_contacts(model, lw.mesh_pairs(lw.Block("cube0", (1, 1, 0)), lw.MeshBody("world", CUBE)))
    with pytest.raises(InputError, match="no joint moves these bodies"):
        lw.step(model, lw.mesh_pairs(lw.MeshBody("cube0", CUBE), lw.Ball("cube0")))


def test_without_coal(missing) -> None:
    """The error names the extra."""
    model, contacts = bodies(1.0), lw.mesh_pairs(lw.MeshBody("cube0", CUBE), lw.Ground())
    missing("coal")
    with pytest.raises(MissingExtra, match=r"contact of meshes needs the package 'coal'.*linkwork\[meshes\]"):
        lw.find_contacts(model, contacts)


@pytest.mark.parametrize(
    ("vertices", "faces", "said"),
    [
        ([], None, "at least four"),
        (CUBE[:3], None, "at least four"),
        (CUBE[:, :2], None, "at least four"),
        (CUBE * [1, 1, 0], None, "flat"),
        (CUBE * [1, 1, 1e-8], None, "flat"),
        (CUBE + np.nan, None, "finite"),
        (CUBE, FACES[:-1], "no closed surface: 3 of its edges"),
        (CUBE, np.vstack([FACES, FACES[:1]]), "no closed surface"),
        (CUBE, FACES + 1, "name vertices 1 to 8; it has 8"),
        (CUBE, FACES - 1, "name vertices -1"),
        (CUBE, FACES + 0.5, "indices of corners"),
        (CUBE, FACES[:, :2], "indices of corners"),
        (CUBE, np.zeros((0, 3)), "indices of corners"),
        ("cube", None, "array of finite numbers"),
    ],
)
def test_what_is_no_mesh(vertices: object, faces: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        lw.MeshBody("cube0", vertices, faces)


def test_surfaces_are_mended_where_that_is_certain() -> None:
    """Vertices that occur twice, faces that are all turned inwards, triangles without an area."""
    twice = CUBE[FACES].reshape(-1, 3)
    faces = np.vstack([np.arange(36).reshape(-1, 3), [[0, 0, 1]]])
    for given in (faces, faces[:, ::-1]):
        body = lw.MeshBody("cube0", twice, given)
        assert body.vertices.shape == (8, 3)
        assert body.convex
        corners = body.vertices[body.faces]
        assert np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6 == pytest.approx(1e-3)
    assert lw.MeshBody("cube0", twice, faces) == lw.MeshBody("cube0", twice, faces)


def test_faces_of_fine_and_distant_hulls() -> None:
    """A cube with points on its faces and edges, a kilometre from its frame, has six faces of four corners."""
    s = np.linspace(-0.5, 0.5, 5)
    grid = np.array([x for x in product(s, s, s) if max(map(abs, x)) == 0.5]) * SIDE
    there = np.array([1000.0, 0.0, 0.0])
    model, there_body = bodies(1.0), lw.MeshBody("cube0", grid + there)
    find = lw.find_contacts(model, lw.mesh_pairs(there_body, lw.Block("world", (4000, 1, 0.1))), backend="numpy")
    (solid,) = (x for body, x in find.solids.items() if body is there_body)
    assert sorted(len(corners) for corners in solid.faces.corners) == sorted([len(solid.faces.corners[0])] * 6)
    q = np.r_[0, 0, 0.2, 0, 0, 0, 1]
    places = find(q).reshape(-1, 7)
    np.testing.assert_allclose(places[:, 6], 0.1, atol=1e-9)
    assert np.ptp(places[:, 0]) == pytest.approx(SIDE, abs=1e-9)


def test_meshes_of_a_model() -> None:
    """Hulls by default, surfaces if asked for: these have to be closed."""
    b = lw.Builder("two")
    for name, faces in (("whole", FACES), ("open", FACES[1:])):
        b.link(name, joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3) / 600))
        b.collider(name, Collider(Mesh(CUBE, faces), lw.Placement(p=np.array([0.0, 0.0, 0.1]))))
    model = b.build()
    assert [(body.frame, body.faces) for body in lw.mesh_bodies(model)] == [("whole", None), ("open", None)]
    (whole,) = lw.mesh_bodies(model, ["whole"], hull=False)
    assert len(whole.faces) == 12
    with pytest.raises(InputError, match="no closed surface"):
        lw.mesh_bodies(model, hull=False)
    find = lw.find_contacts(model, lw.mesh_pairs(whole, lw.Ground()), backend="numpy")
    np.testing.assert_allclose(find(model.neutral()).reshape(-1, 7)[:, 6], 0.05, atol=1e-15)


def test_a_replay_shows_them(tmp_path: Path) -> None:
    model, contacts = bodies(1.0), lw.mesh_pairs(lw.MeshBody("cube0", CUBE), lw.Ground())
    how = {"duration": 0.01, "backend": "numpy", "progress": False}
    run = lw.simulate(model, np.r_[0, 0, 0.05, 0, 0, 0, 1], contacts=contacts, **how)
    lw.write_html(tmp_path / "run.html", model, run, contacts=contacts)
    assert "cube0-ground/3" in (tmp_path / "run.html").read_text()


def test_nearest_points_of_triangles() -> None:
    """Against a search over each triangle."""
    rng = np.random.default_rng(0)
    corners, x = rng.standard_normal((40, 3, 3)), rng.standard_normal(3)
    s = np.array([(a, b) for a in np.linspace(0, 1, 201) for b in np.linspace(0, 1, 201) if a + b <= 1 + 1e-12])
    for triangle, y in zip(corners, nearest_on_triangles(x, corners), strict=True):
        points = triangle[0] + s @ (triangle[1:] - triangle[0])
        searched = np.linalg.norm(points - x, axis=1).min()
        assert searched - 0.03 <= np.linalg.norm(y - x) <= searched + 1e-12


@pytest.mark.parametrize("count", [25_000, 200_001])
def test_outsized_hulls_are_refused(count: int) -> None:
    """Points on a sphere, all of them corners: 100 000 took half a minute, deaf to Ctrl-C for much of it."""
    x = np.random.default_rng(0).normal(size=(count, 3))
    ball = lw.MeshBody("cube0", x / np.linalg.norm(x, axis=1, keepdims=True))
    with pytest.raises(UnsupportedError, match="vertices, more than"):
        lw.find_contacts(bodies(1.0), lw.mesh_pairs(ball, lw.Ground()), backend="numpy")
