"""Contacts from shapes and between bodies, and the method for many of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.contact import Ground
from linkwork.errors import InputError
from linkwork.model import Motion
from linkwork.robots.mechanisms import chain, quadruped

SIDE = 0.1


def bodies(count: int, ratio: float = 1.0) -> lw.Model:
    """Free cubes, the last one `ratio` times as heavy as the first."""
    b = lw.Builder("cubes")
    for i in range(count):
        mass = ratio ** (i / max(count - 1, 1))
        b.link(f"cube{i}", joint="free", inertia=lw.BodyInertia(mass, np.zeros(3), np.eye(3) * mass * SIDE**2 / 6))
    return b.build()


def turned(rng: np.random.Generator, count: int = 1) -> np.ndarray:
    """Random placements of free bodies."""
    q = rng.standard_normal((count, 7))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    return q.ravel()


def touched(model: lw.Model, contact: lw.Contact | lw.Pair, q: np.ndarray, v: np.ndarray):
    motion = Motion(model, q[:, None], v[:, None], NUMPY)
    touch = contact.evaluate(motion, Ground())
    u = sum(K @ motion.v[model.topology.v_slices[i], :] for i, K in touch.K.items())
    return float(touch.gap), np.asarray(u)[:, 0], np.asarray(touch.axes)


@pytest.mark.parametrize("seed", range(4))
def test_the_points_that_touch_are_the_lowest(seed: int) -> None:
    """Against a search over the surface of each shape."""
    rng, model = np.random.default_rng(seed), bodies(1)
    q, size = turned(rng), rng.uniform(0.2, 1.0, 3)
    R = lw.forward_kinematics(model)(q).rotations[0]
    X = lw.Placement.from_quaternion(rng.standard_normal(3), turned(rng)[3:])
    a = rng.standard_normal((200_000, 3))
    a /= np.linalg.norm(a, axis=1)[:, None]

    def lowest(points: np.ndarray) -> float:
        return float((q[:3] + (points @ X.R.T + X.p) @ R.T)[:, 2].min())

    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2
    box = [lw.BoxContact("cube0", size=size, corner=k, placement=X) for k in range(4)]
    assert min(touched(model, c, q, np.zeros(6))[0] for c in box) == pytest.approx(lowest(corners), abs=1e-12)
    egg = lw.EllipsoidContact("cube0", radii=size, placement=X)
    assert touched(model, egg, q, np.zeros(6))[0] == pytest.approx(lowest(a * size), abs=1e-3)
    circle = np.linspace(0, 2 * np.pi, 20_000)
    disc = size[0] * np.column_stack([np.cos(circle), np.sin(circle), 0 * circle])
    rim = lw.RimContact("cube0", X.p, axis=X.R[:, 2], rim=size[0])
    assert touched(model, rim, q, np.zeros(6))[0] == pytest.approx(lowest(disc), abs=1e-6)


PAIRS = {
    "balls": lambda: lw.touching(lw.Ball("cube0", (0.1, 0, 0), 0.2), lw.Ball("cube1", radius=0.3)),
    "ball and rod": lambda: lw.touching(lw.Rod("cube1", radius=0.1), lw.Ball("cube0", radius=0.3)),
    "rods": lambda: lw.touching(lw.Rod("cube0", (-1, 0, 0), (1, 0, 0), 0.1), lw.Rod("cube1", radius=0.2)),
    "ball and block": lambda: lw.touching(lw.Ball("cube0", radius=0.1), lw.Block("cube1", (1, 2, 0.5))),
    "rod and block": lambda: lw.touching(lw.Rod("cube0", radius=0.1), lw.Block("cube1", (1, 2, 0.5))),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_the_gap_changes_with_the_normal_velocity(kind: str) -> None:
    """d gap / dt = n^T (velocity of one - velocity of the other), by differences."""
    rng, model, h = np.random.default_rng(1), bodies(2), 1e-6
    for pair in PAIRS[kind]():
        q, v = turned(rng, 2), rng.standard_normal(12)
        gaps = [touched(model, pair, model.integrate(q, t * v), v)[0] for t in (-h, h)]
        _, u, C = touched(model, pair, q, v)
        assert u[2] == pytest.approx((gaps[1] - gaps[0]) / (2 * h), rel=1e-5, abs=1e-7)
        assert pytest.approx(np.eye(3), abs=1e-12) == C.T @ C
        assert np.linalg.det(C) == pytest.approx(1)


def test_nearest_points_of_rods() -> None:
    rng, model = np.random.default_rng(0), bodies(2)
    for _ in range(20):
        q = turned(rng, 2)
        pair = lw.touching(lw.Rod("cube0", radius=0.1), lw.Rod("cube1", radius=0.2))[0]
        R, p = (getattr(lw.forward_kinematics(model)(q), n) for n in ("rotations", "positions"))
        s = np.linspace(0, 1, 400)
        one, other = (p[i] + s[:, None] * R[i][:, 2] for i in range(2))
        apart = np.linalg.norm(one[:, None] - other[None], axis=2).min()
        assert touched(model, pair, q, np.zeros(12))[0] == pytest.approx(apart - 0.3, abs=1e-4)


STACKS = [("numpy", 2, 1e3), ("numpy", 2, 1e-3), ("numpy", 4, 1e3), ("numpy", 10, 1e3), ("kernel", 2, 1e3)]


@pytest.mark.parametrize("method", [None, "active_set"])
@pytest.mark.parametrize(("backend", "count", "ratio"), STACKS)
def test_stacks_rest(backend: str, count: int, ratio: float, method: str | None) -> None:
    """Cubes on each other, each a little aside, the upper ones up to 1000 times as heavy or light as the lowest."""
    model = bodies(count, ratio)
    blocks = [lw.Block(f"cube{i}", (SIDE,) * 3) for i in range(count)]
    contacts: list[lw.Contact | lw.Pair] = [
        lw.BoxContact("cube0", friction=0.5, size=(SIDE,) * 3, corner=k) for k in range(4)
    ]
    for low, high in pairwise(blocks):
        contacts += lw.touching(low, high, 0.5)
    step = lw.step(model, contacts, backend=backend, method=method)
    assert step.method == (method or "newton")
    q = np.concatenate([[0.01 * (i % 2), 0, SIDE * (i + 0.5), 0, 0, 0, 1] for i in range(count)])
    after = step(q, np.zeros(model.nv), np.zeros(model.nv), [1e-3])
    for most in (3 if method else 10, 2, 1):
        assert after.converged
        assert after.iterations <= most
        assert np.abs(after.v).max() < 1e-9
        after = step(after.q, after.v, np.zeros(model.nv), [1e-3], impulses=after.impulses)
    carried = np.asarray(after.forces).reshape(-1, 3)[:4, 2].sum()
    assert carried == pytest.approx(9.81 * model.mass, rel=1e-6)


@pytest.mark.parametrize("slip", [1e17, 1e40])
def test_steps_start_from_any_slip_that_steps_return(slip: float) -> None:
    """A contact that slips and hardly pushes remembers a huge ratio: the next step was told to be singular."""
    box = [lw.BoxContact("cube0", friction=0.5, size=(SIDE,) * 3, corner=k) for k in range(4)]
    q, v = np.array([0, 0, SIDE / 2, 0, 0, 0, 1]), np.array([1.0, 0, 0, 0, 0, 0])
    step = lw.step(bodies(1), box, method="active_set")
    start = np.r_[np.zeros(12), slip, np.ones(3)]
    after = step(q, v, np.zeros(6), 1e-3, impulses=start)
    assert after.converged
    assert after.v[0] == pytest.approx(1 - 0.5 * 9.81e-3, rel=1e-9)


def test_both_methods_agree() -> None:
    model, rng = quadruped(), np.random.default_rng(0)
    feet = [n for n in model.frames if n.endswith("foot")]
    contacts = [lw.Contact(n, friction=0.6) for n in feet]
    q = np.array([model.integrate(model.neutral(), 0.2 * rng.standard_normal(model.nv)) for _ in range(8)])
    q[:, 2] -= np.array([lw.forward_kinematics(model, feet)(x).positions[:, 2].min() for x in q])
    v = rng.standard_normal((8, model.nv))
    a, b = (
        lw.step(model, contacts, method=m, backend=backend)(q, v, np.zeros(model.nv), [1e-3])
        for m, backend in (("gauss_seidel", "numpy"), ("active_set", "kernel"))
    )
    assert a.converged.all()
    assert b.converged.all()
    assert b.iterations.max() < 10
    assert np.abs(a.v - b.v).max() < 1e-6 * np.abs(a.v).max()


URDF = """<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
 iyz="0"/></inertial>{}</link></robot>"""


def collision(shape: str) -> str:
    return f'<collision><origin xyz="0 0 1"/><geometry><{shape}/></geometry></collision>'


@pytest.mark.parametrize(
    ("shape", "kind", "count"),
    [
        ('sphere radius="0.2"', lw.Contact, 1),
        ('capsule radius="0.2" length="1"', lw.Contact, 2),
        ('box size="1 2 3"', lw.BoxContact, 4),
        ('cylinder radius="0.2" length="1"', lw.RimContact, 6),
    ],
)
def test_contacts_of_a_urdf(shape: str, kind: type, count: int) -> None:
    model = lw.load(URDF.format(collision(shape)), base="free")
    found = lw.contacts(model, friction=0.3)
    assert [type(c) for c in found] == [kind] * count
    assert {c.friction for c in found} == {0.3}
    assert len({c.name for c in found}) == count
    lowest = {"sphere": 0.8, "capsule": 0.3, "box": -0.5, "cylinder": 0.5}[shape.split()[0]]
    assert min(touched(model, c, model.neutral(), np.zeros(6))[0] for c in found) == pytest.approx(lowest)
    assert lw.contacts(model, ["base"]) == lw.contacts(model)


def test_contacts_of_an_mjcf() -> None:
    pytest.importorskip("mujoco")
    model = lw.load(
        """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="b"><freejoint/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" friction="0.4"/><geom name="ball" size="0.1" condim="1"/>
        <geom type="box" size="1 1 1" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    )
    egg, *further, ball = lw.contacts(model)
    assert isinstance(egg, lw.EllipsoidContact)
    assert [c.further for c in (egg, *further)] == [0, 1, 2]
    assert (egg.friction, ball.friction) == (0.4, 0.0)
    assert ball.name == "b/ball"


def test_a_simulation_with_friction() -> None:
    """A cube slides, and its trajectory has contact forces and events."""
    model = bodies(1)
    box = [lw.BoxContact("cube0", friction=0.5, size=(SIDE,) * 3, corner=k) for k in range(4)]
    start = np.array([0, 0, SIDE / 2 + 1e-3, 0, 0, 0, 1])
    run = lw.simulate(model, start, np.array([1.0, 0, 0, 0, 0, 0]), contacts=box, duration=0.4)
    assert run.q[-1, 0] == pytest.approx(1 / (2 * 0.5 * 9.81), rel=0.1)
    assert np.abs(run.v[-1]).max() < 1e-9
    assert run.lam[-1].reshape(4, 3)[:, 2].sum() == pytest.approx(9.81, rel=1e-6)
    assert {e.kind for e in run.events} >= {"touchdown"}
    assert run.names["active"] == tuple(c.name for c in box)


def test_what_cannot_touch_is_refused() -> None:
    model = bodies(2)
    for make in (
        lambda: lw.Block("cube0", (1, -1, 1)),
        lambda: lw.BoxContact("cube0", size=(-1, 1, 1)),
        lambda: lw.EllipsoidContact("cube0", radii=(1, 1, -1)),
    ):
        with pytest.raises(InputError, match="negative"):
            make()
    with pytest.raises(InputError, match="on one link"):
        lw.step(model, lw.touching(lw.Ball("cube0"), lw.Ball("cube0")))
    with pytest.raises(InputError, match="ball before a rod"):
        lw.Pair(lw.Block("cube0"), lw.Ball("cube1"))
    with pytest.raises(InputError, match="takes no 'integrator'"):
        lw.simulate(model, model.neutral(), contacts=[], integrator="rk4")
    with pytest.raises(InputError, match="needs contacts"):
        lw.simulate(model, model.neutral(), ground=lw.Ground())


def test_pairs_whose_distance_no_joint_changes_are_refused() -> None:
    """Balls at both ends of a link: in every posture as far apart."""
    model = chain(3)
    with pytest.raises(InputError, match="no joint changes the distance of 'link1' and 'link2'"):
        lw.step(model, contacts=[lw.Pair(lw.Ball("link1"), lw.Ball("link2"))])
    assert lw.step(model, contacts=[lw.Pair(lw.Ball("link1"), lw.Ball("link3"))]) is not None
