"""Rods on blocks and blocks on blocks: distances against coal, rest, sliding, and throws."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.contact import Ground
from linkwork.constraints.nearest import EDGE, FLAT
from linkwork.errors import InputError
from linkwork.model import Motion

G = 9.81


def free(*names: str, masses: tuple[float, ...] = (1.0, 1.0), side: float = 0.1, gravity: float = G) -> lw.Model:
    """Free bodies with the moments of a cube."""
    b = lw.Builder("free", gravity=(0, 0, -gravity))
    for name, m in zip(names, masses, strict=False):
        b.link(name, joint="free", inertia=lw.BodyInertia(m, np.zeros(3), np.eye(3) * m * side**2 / 6))
    return b.build()


def turn(axis: tuple[float, float, float], angle: float) -> list[float]:
    return [*(np.sin(angle / 2) * np.array(axis)), np.cos(angle / 2)]


def placed(p: tuple[float, float, float], axis: tuple[float, float, float], angle: float) -> lw.Placement:
    return lw.Placement.from_quaternion(p, turn(axis, angle))


def rotation(x: np.ndarray) -> np.ndarray:
    return lw.Placement.from_quaternion((0, 0, 0), x).R


def touches(model: lw.Model, pairs: list[lw.Pair], q: np.ndarray, v: np.ndarray | None = None):
    """Gaps, normal velocities and normals of all slots."""
    v = np.zeros(model.nv) if v is None else v
    motion = Motion(model, q[:, None], v[:, None], NUMPY)
    found = [p.evaluate(motion, Ground()) for p in pairs]
    u = [sum((K @ motion.v[model.topology.v_slices[i], :])[2, 0] for i, K in t.K.items()) for t in found]
    return np.array([float(t.gap) for t in found]), np.array(u), np.array([t.axes[:, 2] for t in found])


NONE = 3.0
"""Gaps of contacts that do not exist are larger, for the bodies here; others are not."""


def random_pose(rng: np.random.Generator, spread: float) -> np.ndarray:
    x = rng.standard_normal(4)
    return np.array([*(spread * rng.standard_normal(3)), *(x / np.linalg.norm(x))])


class Oracle:
    """Distances of two shapes by coal, negative where they overlap."""

    def __init__(self, one: object, other: object) -> None:
        self.coal = pytest.importorskip("coal")
        self.shapes = one, other
        self.request = self.coal.DistanceRequest()
        self.request.enable_signed_distance = True

    def __call__(self, *poses: np.ndarray) -> tuple[float, np.ndarray]:
        """The distance, and the unit vector from the second to the first."""
        X = [self.coal.Transform3s(rotation(q[3:]), q[:3]) for q in poses]
        result = self.coal.DistanceResult()
        distance = self.coal.distance(self.shapes[0], X[0], self.shapes[1], X[1], self.request, result)
        return distance, -np.asarray(result.normal)


def rods_and_blocks(rng: np.random.Generator) -> tuple[list[lw.Pair], Oracle]:
    coal = pytest.importorskip("coal")
    long, r, size = rng.uniform(0.1, 2), rng.choice([1e-9, 0.05, 0.1]), rng.uniform(0.2, 1.2, 3)
    rod = lw.Rod("one", (0, 0, -long / 2), (0, 0, long / 2), r)
    return lw.touching(rod, lw.Block("other", size)), Oracle(coal.Capsule(r, long), coal.Box(*size))


def two_blocks(rng: np.random.Generator) -> tuple[list[lw.Pair], Oracle]:
    coal = pytest.importorskip("coal")
    a, b = rng.uniform(0.2, 1.2, (2, 3))
    return lw.touching(lw.Block("one", a), lw.Block("other", b)), Oracle(coal.Box(*a), coal.Box(*b))


def test_distances_of_rods_from_blocks() -> None:
    """The nearest of the two places is as far as coal says, and deep ones come out along the shortest way."""
    rng, model, deep = np.random.default_rng(0), free("one", "other"), 0
    for _ in range(500):
        (pairs, oracle), q = rods_and_blocks(rng), np.concatenate([random_pose(rng, 0.5), random_pose(rng, 0.2)])
        distance, _ = oracle(q[:7], q[7:])
        gaps, _, _ = touches(model, pairs, q)
        if distance > -pairs[0].a.radius + 1e-6:  # the axis is outside
            assert gaps.min() == pytest.approx(distance, abs=2e-9)
        else:
            deep += 1
            assert distance * (1 + FLAT) - 2e-9 <= gaps.min() <= distance + 2e-9
    assert deep > 50


def test_distances_of_blocks() -> None:
    """Exact where a corner is nearest to a face or an edge to an edge, which is so wherever they overlap."""
    rng, model, deep, exact = np.random.default_rng(1), free("one", "other"), 0, 0
    for _ in range(250):
        (pairs, oracle), q = two_blocks(rng), np.concatenate([random_pose(rng, 0.5), random_pose(rng, 0.2)])
        distance, _ = oracle(q[:7], q[7:])
        gaps, _, normals = touches(model, pairs, q)
        A, B = rotation(q[3:7]), rotation(q[10:14])
        edges = np.cross(A.T[:, None], B.T[None]).reshape(9, 3)
        along = np.concatenate([A.T, B.T, edges / np.linalg.norm(edges, axis=1)[:, None]])
        _, n = oracle(q[:7], q[7:])
        if distance < 0:
            deep += 1
            assert distance * (1 + FLAT) - 2 * EDGE <= gaps.min() <= distance + 1e-9
        elif np.abs(along @ n).max() > 1 - 1e-9 and gaps.min() < NONE:
            exact += 1
            assert gaps.min() == pytest.approx(distance, abs=2 * EDGE, rel=FLAT**2)
            assert abs(normals[gaps.argmin()] @ n) > np.cos(FLAT)
        else:  # two edges or corners that meet nowhere else: farther than the nearest points, or not seen yet
            assert gaps.min() >= distance - 2 * EDGE
    assert deep > 30
    assert exact > 50


@pytest.mark.parametrize("kind", [rods_and_blocks, two_blocks])
def test_the_nearest_gap_changes_with_the_normal_velocity(kind) -> None:
    """d gap / dt = n^T (velocity of one - velocity of the other) in the slot that is nearest, by differences."""
    rng, model, h, checked = np.random.default_rng(2), free("one", "other"), 1e-6, 0
    for _ in range(80):
        (pairs, oracle), q = kind(rng), np.concatenate([random_pose(rng, 0.5), random_pose(rng, 0.1)])
        v = rng.standard_normal(12)
        gaps, u, _ = touches(model, pairs, q, v)
        before, after = (touches(model, pairs, np.asarray(model.integrate(q, t * v)))[0].min() for t in (-h, h))
        if gaps.min() > NONE or abs(gaps.min() - oracle(q[:7], q[7:])[0]) > 1e-8:
            continue  # a face that is inclined by less than FLAT, or edges that do not meet
        checked += 1
        assert u[gaps.argmin()] == pytest.approx((after - before) / (2 * h), rel=1e-4, abs=1e-4)
    assert checked > 30


def test_what_has_come_near_is_found() -> None:
    """Beams across each other, a plate on a small cube, a cube on one turned by 45 degrees: corners of the polygon."""
    model, up = free("one"), np.array([0, 0, 1.0])
    cases = [
        ((0.6, 0.1, 0.1), (0.1, 1.0, 0.1), 0.3, 4),
        ((0.6, 0.6, 0.1), (0.1, 0.1, 0.1), 0.2, 4),
        ((0.1, 0.1, 0.1), (0.6, 0.6, 0.1), 0.2, 4),
        ((0.1, 0.1, 0.1), (0.1, 0.1, 0.1), np.pi / 4, 8),
        ((0.1, 0.1, 0.1), (0.1, 0.1, 0.1), 0.0, 4),
    ]
    for a, b, angle, corners in cases:
        pairs = lw.touching(lw.Block("one", a), lw.Block("world", b))
        gaps, _, normals = touches(model, pairs, np.array([0, 0, 0.1 + 1e-4, *turn((0, 0, 1), angle)]))
        assert (np.abs(gaps - 1e-4) < 1e-12).sum() == corners
        assert (gaps > 1.0).sum() == 8 - corners
        assert np.abs(normals - up).max() < 1e-12


LOG = lw.Rod("one", (-0.3, 0, 0), (0.3, 0, 0), 0.02)
THIN = lw.Rod("one", (-0.3, 0, 0), (0.3, 0, 0), 0.0)
BEAM = lw.Block("one", (0.6, 0.1, 0.1))
CUBE = lw.Block("one", (0.1,) * 3)
ACROSS, TABLE = lw.Block("world", (0.1, 1.0, 0.1)), lw.Block("world", (1.0, 1.0, 0.1))
RIDGES = [lw.Block("world", (0.1, 1.0, 0.1), placed((x, 0, 0), (0, 1, 0), np.pi / 4)) for x in (-0.2, 0.2)]
RIDGE = 0.05 * np.sqrt(2)
REST = {
    "a rod across a beam": (LOG, [ACROSS], 0.07, ((0, 0, 1), 0.5), 2),
    "a rod on a table": (LOG, [TABLE], 0.07, ((0, 0, 1), 0.0), 2),
    "a line on a beam": (THIN, [ACROSS], 0.05, ((0, 0, 1), 0.3), 2),
    "a rod over two ridges": (LOG, RIDGES, RIDGE + 0.02, ((0, 0, 1), 0.2), 2),
    "a line over two ridges": (THIN, RIDGES, RIDGE, ((0, 0, 1), 0.2), 2),
    "a beam across a beam": (BEAM, [ACROSS], 0.1, ((0, 0, 1), 0.4), 4),
    "a beam over two ridges": (BEAM, RIDGES, RIDGE + 0.05, ((0, 0, 1), 0.2), 4),
    "a plate on a cube": (lw.Block("one", (0.6, 0.6, 0.1)), [lw.Block("world", (0.1,) * 3)], 0.1, ((0, 0, 1), 0.4), 4),
    "an edge on an edge": (CUBE, [RIDGES[1]], 2 * RIDGE, ((1, 0, 0), np.pi / 4), 1),
}


@pytest.mark.parametrize("scene", REST)
@pytest.mark.parametrize("scale", [1.0, 1e-2])
def test_what_lies_on_something_rests(scene: str, scale: float) -> None:
    """And weighs on it with its weight, in as many places as it touches."""
    body, on, height, how, places = REST[scene]
    x = 0.2 if scene == "an edge on an edge" else 0.01
    model = free("one", side=0.1 * scale)
    pairs = [p for other in on for p in lw.touching(scaled(body, scale), scaled(other, scale), 0.5)]
    step, q, v = lw.step(model, pairs, backend="numpy"), np.array([x, 0, height, *turn(*how)]), np.zeros(6)
    q[:3] *= scale
    after = step(q, v, v, [1e-3])
    for _ in range(4):
        assert after.converged
        assert after.iterations <= 3
        assert np.abs(after.v * np.repeat([1.0, 0.1 * scale], 3)).max() < 1e-9
        after = step(after.q, after.v, v, [1e-3], impulses=after.impulses)
    forces = np.asarray(after.forces).reshape(-1, 3)
    assert (forces[:, 2] > 1e-6).sum() == places
    assert forces.sum(axis=0) == pytest.approx([0, 0, G], abs=1e-6)


def scaled(body: lw.Rod | lw.Block, by: float) -> lw.Rod | lw.Block:
    if isinstance(body, lw.Rod):
        return lw.Rod(body.frame, by * np.array(body.start), by * np.array(body.end), by * body.radius)
    X = body.placement
    return lw.Block(body.frame, by * np.array(body.size), X and lw.Placement(X.R, by * X.p))


@pytest.mark.parametrize("friction", [0.0, 0.2])
def test_an_edge_slides_down_an_edge(friction: float) -> None:
    """A body that does not turn stands with its edge across the inclined edge of a beam: g (sin a - mu cos a)."""
    a, h, steps = 0.4, 1e-3, 50
    b = lw.Builder("slides")
    none = lw.BodyInertia(0.0, np.zeros(3), np.zeros((3, 3)))
    b.link("across", joint="prismatic", axis="x", inertia=none)
    b.link("one", joint="prismatic", axis="z", parent="across", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    model = b.build()
    ridge = placed((0, 0, 0), (1, 0, 0), np.pi / 4)  # its upper edge is along x
    down = rotation(np.array(turn((0, 1, 0), a)))
    world = lw.Block("world", (2.0, 0.1, 0.1), lw.Placement(down @ ridge.R, np.zeros(3)))
    roof = lw.Block("one", (0.1, 1.0, 0.1), placed((0, 0, 0), (0, 1, 0), np.pi / 4))  # its lower edge is along y
    top = down @ np.array([0, 0, RIDGE])
    q, v = np.array([top[0], top[2] + RIDGE]), np.zeros(2)
    step = lw.step(model, lw.touching(roof, world, friction), backend="numpy")
    for _ in range(steps):
        after = step(q, v, np.zeros(2), [h])
        q, v = after.q, after.v
    rate = G * (np.sin(a) - friction * np.cos(a))
    assert v == pytest.approx(rate * steps * h * np.array([np.cos(a), -np.sin(a)]), rel=1e-6)


def test_thrown_blocks_do_not_pass_through_each_other() -> None:
    """Two blocks without gravity fly at each other: momentum stays, energy falls, and they hardly overlap."""
    coal = pytest.importorskip("coal")
    rng, lanes, steps, dt = np.random.default_rng(3), 32, 150, 2e-3
    a, b = (0.2, 0.1, 0.06), (0.15, 0.15, 0.15)
    model = free("one", "other", masses=(1.0, 2.0), gravity=0.0)
    q, v = np.zeros((lanes, 14)), np.zeros((lanes, 12))
    for k in range(lanes):
        q[k] = np.concatenate([random_pose(rng, 1.0), random_pose(rng, 0.0)])
        q[k, :3] *= 0.35 / np.linalg.norm(q[k, :3])
        v[k, 3:6], v[k, 9:] = 5 * rng.standard_normal((2, 3))
        v[k, :3] = rotation(q[k, 3:7]).T @ (-8 * q[k, :3] + 0.2 * rng.standard_normal(3))
    run = lw.rollout(model, contacts=lw.touching(lw.Block("one", a), lw.Block("other", b), 0.5), dt=dt, threads=1)
    after = run(q, v, steps=steps, every=1)
    assert after.converged.all()
    kinetic = lw.energy(model)(after.q.reshape(-1, 14), after.v.reshape(-1, 12)).kinetic_energy
    energy = np.asarray(kinetic).reshape(lanes, steps)
    assert (energy[:, -1] < 0.9 * energy[:, 0]).sum() > lanes / 2  # they met
    assert np.diff(energy, axis=1).max() < 1e-6
    oracle, depth = Oracle(coal.Box(*a), coal.Box(*b)), np.zeros(lanes)
    for k in range(lanes):
        P = [
            sum(m * rotation(x[7 * i + 3 : 7 * i + 7]) @ u[6 * i : 6 * i + 3] for i, m in ((0, 1.0), (1, 2.0)))
            for x, u in zip(after.q[k, ::10], after.v[k, ::10], strict=True)
        ]
        assert np.ptp(P, axis=0).max() < 1e-10
        depth[k] = max(-oracle(x[:7], x[7:])[0] for x in after.q[k])
    assert np.median(depth) < 1e-4
    assert depth.max() < 3 * dt  # what they fly in a step


@pytest.mark.parametrize("gap", [-1e-9, 2e-4])
def test_methods_agree_and_momentum_is_kept(gap: float) -> None:
    """One step of a block that slides and spins on a free one: by three methods, and moments about the origin.

    With gaps that close at other times there are several solutions, and methods need not find the same.
    """
    model = free("one", "other", masses=(1.0, 2.0), gravity=0.0)
    q = np.array([0.02, 0.01, 0.1 + gap, *turn((0, 0, 1), 0.4), 0, 0, 0, 0, 0, 0, 1])
    v = np.array([0.3, 0.2, -0.5, 0.4, 0.1, 2.0, 0, 0, 0, 0, 0.3, 0])
    pairs = lw.touching(CUBE, lw.Block("other", (0.1,) * 3), friction=0.3)
    methods = "newton", "active_set", "admm"
    found = [lw.step(model, pairs, backend="numpy", method=m)(q, v, np.zeros(12), [1e-3]) for m in methods]
    assert all(x.converged for x in found)
    assert (np.asarray(found[0].forces).reshape(8, 3)[:, 2] > 1e-3).sum() > 1
    for other in found[1:]:
        assert gap > 0 or np.abs(other.v - found[0].v).max() < 1e-7

    def moment(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        total = np.zeros(3)
        for k, m in ((0, 1.0), (1, 2.0)):
            R, w = rotation(x[7 * k + 3 : 7 * k + 7]), u[6 * k : 6 * k + 6]
            total = total + np.cross(q[7 * k : 7 * k + 3], m * R @ w[:3]) + R @ (m * 0.1**2 / 6 * w[3:])
        return total

    assert np.abs(found[0].v - v).max() > 0.1
    for after in found:
        assert moment(after.q, after.v) == pytest.approx(moment(q, v), abs=1e-14)


def test_bodies_may_be_named_twice() -> None:
    """Contacts of one slot share velocities, those of two slots of a rod have axes of their own."""
    step = lw.step(free("one"), 2 * lw.touching(LOG, TABLE, 0.5), backend="numpy")
    after = step(np.array([0, 0, 0.07, 0, 0, 0, 1]), np.zeros(6), np.zeros(6), [1e-3])
    assert after.converged
    assert np.abs(after.v).max() < 1e-9


def test_slots_that_two_bodies_do_not_have_are_refused() -> None:
    with pytest.raises(InputError, match="slots of a Rod and a Block are 0 to 1, not 2"):
        lw.Pair(LOG, TABLE, slot=2)
    with pytest.raises(InputError, match="slots of a Ball and a Block are 0 to 0"):
        lw.Pair(lw.Ball("one"), TABLE, slot=1)
    assert [p.slot for p in lw.touching(TABLE, CUBE)] == list(range(8))
    assert [p.slot for p in lw.touching(TABLE, LOG)] == [0, 1]
