"""Ground that is not a plane: slopes as functions and as grids, bowls, fields of heights."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import InputError
from linkwork.model import Motion

G = 9.81


def ball(radius: float = 0.1, mass: float = 1.0) -> lw.Model:
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=lw.BodyInertia(mass, np.zeros(3), np.eye(3) * 0.4 * mass * radius**2))
    return b.build()


def touched(contact: lw.Contact, ground: object, q: np.ndarray, v: np.ndarray) -> tuple[float, np.ndarray]:
    model = ball()
    motion = Motion(model, q[:, None], v[:, None], NUMPY)
    touch = contact.evaluate(motion, ground)
    return float(touch.gap), np.asarray(touch.K[1] @ motion.v)[:, 0]


HILLS = lw.Terrain(lambda x, y: 0.3 * np.sin(2 * x) * np.cos(y) + 0.1 * x)
FIELD = lw.HeightField(np.random.default_rng(0).uniform(0, 0.5, (5, 7)), (3.0, 2.0), (0.2, -0.1))


@pytest.mark.parametrize("ground", [HILLS, FIELD], ids=["function", "grid"])
def test_gaps_of_points_close_with_their_normal_velocities(ground: object) -> None:
    rng, model, h, c = np.random.default_rng(1), ball(), 1e-6, lw.Contact("ball", (0.1, 0.2, 0.3))
    for _ in range(5):
        q, v = np.r_[rng.uniform(-0.5, 0.5, 3), rng.standard_normal(4)], rng.standard_normal(6)
        q[3:] /= np.linalg.norm(q[3:])
        q[2] -= touched(c, ground, q, v)[0]  # nearer
        for _ in range(60):
            q[2] -= touched(c, ground, q, v)[0]
        assert abs(touched(c, ground, q, v)[0]) < 1e-12
        gaps = [touched(c, ground, model.integrate(q, t * v), v)[0] for t in (-h, h)]
        assert (gaps[1] - gaps[0]) / (2 * h) == pytest.approx(touched(c, ground, q, v)[1][2], abs=1e-6)


def test_heights_of_a_field_are_those_between_its_points() -> None:
    """Bilinear, against sums written out; level outside."""
    z, c = np.asarray(FIELD.heights), lw.Contact("ball")
    x, y = np.linspace(-1.3, 1.7, 7), np.linspace(-1.1, 0.9, 5)
    for px, py in ((0.31, 0.22), (-1.2, -1.05), (1.6, 0.1), (2.5, 0.3)):
        inside = min(max(px, -1.3), 1.7)
        i, j = min(int(np.searchsorted(x, inside, "right")) - 1, 5), int(np.searchsorted(y, py, "right")) - 1
        a, b = (inside - x[i]) / 0.5, (py - y[j]) / 0.5
        right = (1 - b) * ((1 - a) * z[j, i] + a * z[j, i + 1]) + b * ((1 - a) * z[j + 1, i] + a * z[j + 1, i + 1])
        q = np.array([px, py, right, 0, 0, 0, 1.0])
        assert abs(touched(c, FIELD, q, np.zeros(6))[0]) < 1e-12


@pytest.mark.parametrize("kind", ["function", "grid"])
def test_a_ball_rolls_down_a_slope(kind: str) -> None:
    """With 5/7 g sin(b), as on the plane of that slope."""
    b, r = 0.2, 0.1
    heights = -np.tan(b) * np.linspace(-2, 2, 3)[None, :].repeat(2, axis=0)
    ground = lw.Terrain(lambda x, y: -np.tan(b) * x) if kind == "function" else lw.HeightField(heights, (4.0, 4.0))
    q = np.array([r * np.sin(b), 0, r * np.cos(b), 0, 0, 0, 1])
    backend = "kernel" if kind == "function" else "numpy"
    run = lw.rollout(ball(r), contacts=[lw.Contact("ball", radius=r)], ground=ground, threads=1, backend=backend)
    after = run(q, np.zeros(6), steps=100, every=100)
    assert np.linalg.norm(after.v[-1, :3]) == pytest.approx(0.1 * 5 / 7 * G * np.sin(b), rel=1e-9)
    assert after.residual < 1e-8


def test_a_ball_swings_in_a_bowl() -> None:
    """A sphere without friction in a paraboloid z = x^2 / (2 R): small swings like a pendulum of R - r."""
    R, r, dt = 1.0, 0.1, 1e-3
    bowl = lw.Terrain(lambda x, y: (x * x + y * y) / (2 * R))
    run = lw.rollout(ball(r), contacts=[lw.Contact("ball", radius=r, friction=0.0)], ground=bowl, threads=1, dt=dt)
    x0 = 0.01
    after = run(np.array([x0, 0, r + x0**2 / (2 * (R - r)), 0, 0, 0, 1]), np.zeros(6), steps=4000)
    x = after.q[:, 0]
    crossings = dt * np.flatnonzero(np.diff(np.sign(x)))
    assert np.diff(crossings).mean() == pytest.approx(np.pi * np.sqrt((R - r) / G), rel=5e-3)
    assert np.abs(x).max() < 1.02 * x0
    assert np.abs(x[2000:]).max() > 0.9 * x0


def test_what_is_no_terrain_is_refused() -> None:
    with pytest.raises(InputError, match="two numbers"):
        lw.Terrain(lambda x: x)
    with pytest.raises(InputError, match="returns 2 numbers"):
        lw.Terrain(lambda x, y: [x, y])
    with pytest.raises(InputError, match="at least 2 x 2"):
        lw.HeightField(np.zeros((1, 5)), (1, 1))
    with pytest.raises(InputError, match="above 0"):
        lw.HeightField(np.zeros((3, 5)), (1, 0))


def test_eggs_touch_hills_where_they_are_nearest() -> None:
    """Against a search over their surface: the place is looked for with the slope there, not below the centre."""
    rng, radii = np.random.default_rng(2), np.array([0.1, 0.05, 0.07])
    hills, egg = lw.Terrain(lambda x, y: 0.1 * np.sin(3 * x) * np.cos(2 * y)), lw.EllipsoidContact("ball", radii=radii)
    a = rng.standard_normal((40_000, 3))
    a /= np.linalg.norm(a, axis=1)[:, None]
    for _ in range(5):
        q = np.r_[rng.uniform(-0.5, 0.5, 2), 0.1, rng.standard_normal(4)]
        q[3:] /= np.linalg.norm(q[3:])
        for _ in range(10):
            q[2] -= touched(egg, hills, q, np.zeros(6))[0]
        x = q[:3] + (a * radii) @ np.asarray(lw.forward_kinematics(ball())(q).rotations[0]).T
        height, dx = 0.1 * np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]), 0.3 * np.cos(3 * x[:, 0]) * np.cos(2 * x[:, 1])
        dy = -0.2 * np.sin(3 * x[:, 0]) * np.sin(2 * x[:, 1])
        nearest = ((x[:, 2] - height) / np.sqrt(1 + dx**2 + dy**2)).min()
        assert abs(nearest) < 3e-6


def test_flat_ellipsoids_touch_hills_wherever_they_are_nearest() -> None:
    """Against a search over their surface: in a valley they lie on their edges, at places apart from each other."""
    rng, radii, seconds = np.random.default_rng(6), np.array([0.1, 0.1, 0.004]), 0
    hills = lw.Terrain(lambda x, y: 0.1 * np.sin(3 * x) * np.cos(2 * y))
    plates = [lw.EllipsoidContact("ball", radii=radii, further=k) for k in range(3)]
    up, around = (a.ravel() for a in np.meshgrid(np.linspace(-1, 1, 401), np.linspace(0, 2 * np.pi, 361)))
    a = np.column_stack([np.sqrt(1 - up**2) * np.cos(around), np.sqrt(1 - up**2) * np.sin(around), up])
    for _ in range(8):
        q = np.r_[0.005 * rng.standard_normal(2) + [0, np.pi / 4], 0.1, 0.002 * rng.standard_normal(3), 1.0]
        q[3:] /= np.linalg.norm(q[3:])
        for _ in range(10):
            q[2] -= min(touched(plate, hills, q, np.zeros(6))[0] for plate in plates)
        x = q[:3] + (a * radii) @ np.asarray(lw.forward_kinematics(ball())(q).rotations[0]).T
        height, dx = 0.1 * np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]), 0.3 * np.cos(3 * x[:, 0]) * np.cos(2 * x[:, 1])
        dy = -0.2 * np.sin(3 * x[:, 0]) * np.sin(2 * x[:, 1])
        gaps = (x[:, 2] - height) / np.sqrt(1 + dx**2 + dy**2)
        assert gaps.min() == pytest.approx(0, abs=1e-5)
        across = a @ a[gaps.argmin()] < -0.5  # the other side of the edge
        second = gaps[across].min()
        if second < 1e-3:
            others = [touched(plate, hills, q, np.zeros(6))[0] for plate in plates]
            assert sorted(others)[1] < second + 1e-5
            seconds += 1
    assert seconds > 2


@pytest.mark.parametrize("lies", [True, False])
def test_rims_touch_hills_where_they_are_nearest(lies: bool) -> None:
    """Against a search all around. One that lies on a saddle has two minima, of which another third has the second."""
    rng, r, seconds = np.random.default_rng(3), 0.1, 0
    hills = lw.Terrain(lambda x, y: 0.1 * np.sin(3 * x) * np.cos(2 * y))
    rims = [lw.RimContact("ball", rim=r, turn=2 * np.pi * k / 3) for k in range(3)]
    angle = np.linspace(0, 2 * np.pi, 3600, endpoint=False)
    circle = r * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    for _ in range(12):
        q = np.r_[rng.uniform(-0.5, 0.5, 2), 0.1, rng.standard_normal(4)]
        if lies:
            q[:2], q[3:5] = (0.0, np.pi / 4) + 0.01 * rng.standard_normal(2), 0.01 * q[3:5]
        q[3:] /= np.linalg.norm(q[3:])
        for _ in range(10):
            q[2] -= touched(rims[0], hills, q, np.zeros(6))[0]
        x = q[:3] + circle @ np.asarray(lw.forward_kinematics(ball())(q).rotations[0]).T
        height, dx = 0.1 * np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]), 0.3 * np.cos(3 * x[:, 0]) * np.cos(2 * x[:, 1])
        dy = -0.2 * np.sin(3 * x[:, 0]) * np.sin(2 * x[:, 1])
        gaps = (x[:, 2] - height) / np.sqrt(1 + dx**2 + dy**2)
        assert gaps.min() == pytest.approx(0, abs=3e-6)
        lowest = np.flatnonzero((gaps < np.roll(gaps, 1)) & (gaps < np.roll(gaps, -1)))
        second = [k for k in lowest if abs(np.angle(np.exp(1j * (angle[k] - angle[gaps.argmin()])))) > np.pi / 3]
        if second:
            others = [touched(rim, hills, q, np.zeros(6))[0] for rim in rims[1:]]
            assert min(others) == pytest.approx(gaps[second].min(), abs=3e-6)
            seconds += 1
    assert seconds > 3 or not lies


def test_a_disc_lies_on_level_terrain_as_on_a_plane() -> None:
    """Everything around it is as near: three places a third of a turn apart carry it and brake it."""
    r, mu = 0.1, 0.2
    builder = lw.Builder("disc")
    builder.link("ball", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), r**2 * np.diag([0.25, 0.25, 0.5])))
    rims = [lw.RimContact("ball", friction=mu, rim=r, turn=2 * np.pi * k / 3) for k in range(3)]
    level = lw.Terrain(lambda x, y: 0 * x + 0.25)
    run = lw.rollout(builder.build(), contacts=rims, ground=level, threads=1)
    after = run([0.3, 0.1, 0.25, 0, 0, 0, 1.0], [0, 0, 0, 0, 0, 20.0], steps=100, every=100)
    assert after.v[-1] == pytest.approx([0, 0, 0, 0, 0, 20 - 0.1 * 2 * mu * G / r], abs=1e-8)
    assert after.converged
