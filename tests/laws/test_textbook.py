"""Numbers and closed forms from textbooks."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close
from linkwork.joints import Revolute
from linkwork.model import BodyInertia, Builder, Placement

G = 9.81


def forward(model, q, v, tau, method=None):
    return lw.forward_dynamics(model, method=method, backend="numpy")(np.array(q, float), np.array(v, float), tau)


def bob(mass, at, inertia=(0, 0, 0)):
    """A point mass, or a body with principal moments about its centre."""
    return BodyInertia(mass, np.array(at, float), np.diag(inertia).astype(float))


@pytest.mark.parametrize("angle", [0.0, 0.3, -2.0, np.pi])
@pytest.mark.parametrize("method", ["aba", "crba_ltl", "kkt"])
def test_pendulum(angle, method):
    """m l^2 a = tau - m g l sin q."""
    m, l, tau = 1.7, 0.6, 0.4
    b = Builder()
    b.link("bob", "world", Revolute("y"), inertia=bob(m, (0, 0, -l)))
    a = forward(b.build(), [angle], [2.0], [tau], method).a
    assert_close(a, [(tau - m * G * l * np.sin(angle)) / (m * l * l)], scale=G)


def test_physical_pendulum_period():
    """A uniform rod swinging about its end: omega^2 = 3 g / (2 L)."""
    L, m = 1.2, 0.8
    b = Builder()
    b.link("rod", "world", Revolute("y"), inertia=bob(m, (0, 0, -L / 2), (m * L**2 / 12, m * L**2 / 12, 0)))
    model = b.build()
    slope = forward(model, [1e-6], [0.0], [0.0]).a[0] / 1e-6
    assert_close(slope, -3 * G / (2 * L), kappa=1e6)


@pytest.mark.parametrize("q", [(0.3, 0.5), (-1.2, 2.0), (0.0, np.pi / 2)])
@pytest.mark.parametrize("v", [(0.0, 0.0), (1.5, -0.7)])
@pytest.mark.parametrize("tau", [(0.0, 0.0), (0.3, -0.2)])
def test_double_pendulum(q, v, tau):
    """Point masses, relative angles: the manipulator equations of Murray, Li and Sastry, section 4.2."""
    m1, m2, l1, l2 = 1.3, 0.7, 0.5, 0.8
    b = Builder(gravity=np.array([0, -G, 0]))
    b.link("upper", "world", Revolute("z"), inertia=bob(m1, (0, -l1, 0)))
    b.link("lower", "upper", Revolute("z"), placement=Placement.at((0, -l1, 0)), inertia=bob(m2, (0, -l2, 0)))
    (q1, q2), (w1, w2) = q, v
    c2, s2 = np.cos(q2), np.sin(q2)
    M = np.array(
        [
            [m1 * l1**2 + m2 * (l1**2 + 2 * l1 * l2 * c2 + l2**2), m2 * (l1 * l2 * c2 + l2**2)],
            [m2 * (l1 * l2 * c2 + l2**2), m2 * l2**2],
        ]
    )
    h = np.array([-m2 * l1 * l2 * s2 * (2 * w1 * w2 + w2**2), m2 * l1 * l2 * s2 * w1**2])
    g = np.array([(m1 + m2) * l1 * G * np.sin(q1) + m2 * G * l2 * np.sin(q1 + q2), m2 * G * l2 * np.sin(q1 + q2)])
    model = b.build()
    assert_close(lw.mass_matrix(model, backend="numpy")(q).M, M)
    assert_close(lw.inverse_dynamics(model, backend="numpy")(q, v, [0, 0]).tau, h + g, scale=10.0)
    kappa = np.linalg.cond(M)
    assert_close(forward(model, q, v, tau).a, np.linalg.solve(M, np.array(tau) - h - g), kappa, scale=100.0)


def test_free_rigid_body_obeys_eulers_equations():
    """I dw/dt = -w x I w, and dv/dt + w x v = R^T g in the body."""
    I, w = np.diag([0.3, 0.2, 0.12]), np.array([0.4, -1.1, 2.0])
    b = Builder()
    b.link("body", "world", "free", inertia=BodyInertia(2.0, np.zeros(3), I))
    model = b.build()
    q = model.random_q(1)
    v = np.array([1.0, -0.5, 0.3])
    a = forward(model, q, [*v, *w], np.zeros(6)).a
    R = Placement.from_quaternion(q[:3], q[3:]).R
    assert_close(a[3:], np.linalg.solve(I, -np.cross(w, I @ w)))
    assert_close(a[:3], R.T @ [0, 0, -G] - np.cross(w, v))


def test_intermediate_axis_is_unstable_and_the_others_are_not():
    """Spin about each principal axis with a small error: its growth has the sign of (I2 - I1)(I3 - I1)."""
    I = np.array([0.1, 0.2, 0.3])
    b = Builder(gravity=np.zeros(3))
    b.link("body", "world", "free", inertia=BodyInertia(1.0, np.zeros(3), np.diag(I)))
    model = b.build()
    for axis in range(3):
        j, k = (axis + 1) % 3, (axis + 2) % 3
        A = np.zeros((2, 2))
        for c, other in enumerate((j, k)):
            w = np.zeros(3)
            w[axis], w[other] = 1.0, 1e-7
            a = forward(model, model.neutral(), [0, 0, 0, *w], np.zeros(6)).a[3:]
            A[:, c] = a[[j, k]] / 1e-7
        growth = np.linalg.det(-A)
        assert (growth < 0) == (axis == 1)


def test_projectile_flies_a_parabola():
    """A point carried by three slides: constant acceleration g, whatever its velocity."""
    b = Builder()
    b.link("x", "world", "prismatic", axis="x")
    b.link("y", "x", "prismatic", axis="y")
    b.link("ball", "y", "prismatic", axis="z", inertia=bob(0.45, (0, 0, 0)))
    assert_close(forward(b.build(), [1, 2, 3], [10, 0, 12], np.zeros(3)).a, [0, 0, -G])


@pytest.mark.parametrize("spin", [30.0, 200.0])
def test_heavy_top_precesses_steadily(spin):
    """Euler angles with the fast top's exact steady precession: no angular acceleration of nutation.

    cos(t) (I1 - I3) W^2 - I3 W s + m g l = 0 for spin s (of the third Euler angle's rate w3 = s + W cos t, in I3 w3).
    """
    m, l, I1, I3, tilt = 1.0, 0.2, 0.06, 0.03, 0.7  # I1 about the tip
    A, B, C = (I1 - I3) * np.cos(tilt), -I3 * spin, m * G * l
    W = (-B - np.sqrt(B * B - 4 * A * C)) / (2 * A)
    b = Builder()
    b.link("precession", "world", Revolute("z"))
    b.link("nutation", "precession", Revolute("x"))
    b.link("top", "nutation", Revolute("z"), inertia=bob(m, (0, 0, l), (I1 - m * l * l, I1 - m * l * l, I3)))
    model = b.build()
    a = forward(model, [0.4, tilt, 1.0], [W, 0.0, spin], np.zeros(3)).a
    M = lw.mass_matrix(model, backend="numpy")([0.4, tilt, 1.0]).M
    assert_close(a, np.zeros(3), np.linalg.cond(M), scale=I3 * spin * W / I1)


def test_gyroscope_precesses_about_the_vertical():
    """A fast wheel on a horizontal axle carried by a spherical joint: it falls nowhere, W = m g l / (I3 s)."""
    m, l, I3, I1, spin = 2.0, 0.3, 0.05, 0.2, 100.0
    b = Builder()
    b.link("wheel", "world", "spherical", inertia=bob(m, (l, 0, 0), (I3, I1, I1)))
    model = b.build()
    W = m * G * l / (I3 * spin)  # exact: the axle is horizontal, so W^2 terms vanish
    w = np.array([spin, 0.0, W])
    a = forward(model, model.neutral(), w, np.zeros(3)).a
    # steady: w turns about the vertical with W, and d/dt in body axes is that in the world (w x w = 0)
    assert_close(a, np.cross([0, 0, W], w), scale=spin * W)


def test_atwood_machine():
    """Two masses over a pulley without inertia: a coupling z2 = -z1, a = g (m2 - m1) / (m1 + m2)."""
    m1, m2 = 1.0, 3.0
    b = Builder()
    b.link("light", "world", "prismatic", axis="z", inertia=bob(m1, (0, 0, 0)))
    b.link("heavy", "world", "prismatic", axis="z", inertia=bob(m2, (0, 0, 0)))
    model = b.build().with_constraints(lw.Coupling("heavy_joint", {"light_joint": [-1.0]}))
    a, lam = forward(model, [0, 0], [0, 0], np.zeros(2), "kkt")
    assert_close(a, G * (m2 - m1) / (m1 + m2) * np.array([1, -1]))
    assert_close(lam, [2 * m1 * m2 * G / (m1 + m2)])  # the tension, upwards on the heavy mass


def test_geared_motor_feels_the_square_of_the_ratio():
    """A rotor of inertia J behind a gear of ratio n adds n^2 J to the arm, as an armature of that size does."""
    n, J = 6.0, 0.002
    arm = bob(1.0, (0.3, 0, 0), (0.01, 0.02, 0.03))
    b = Builder(gravity=np.zeros(3))
    b.link("arm", "world", Revolute("z"), inertia=arm)
    b.link("rotor", "world", Revolute("z"), inertia=bob(0.1, (0, 0, 0), (J, J, J)))
    geared = b.build().with_constraints(lw.Coupling("rotor_joint", {"arm_joint": [n]}))
    b = Builder(gravity=np.zeros(3))
    b.link("arm", "world", Revolute("z"), inertia=arm, armature=n * n * J)
    a = forward(geared, [0, 0], [1, n], [0.5, 0.1], "kkt").a
    reflected = forward(b.build(), [0], [1], [0.5 + n * 0.1]).a
    assert_close(a, [reflected[0], n * reflected[0]], kappa=n * n)


@pytest.mark.parametrize("theta", [0.4, 1.9, -2.5])
@pytest.mark.parametrize("speed", [0.0, 7.0])
def test_slider_crank_by_lagrange(theta, speed):
    """Crank r, massless rod l, slider m on x: m x' (x' w' + x'' w^2) + J w' = tau with x(theta) in closed form."""
    r, l, m, J, tau = 0.1, 0.35, 1.2, 0.02, 3.0
    b = Builder(gravity=np.zeros(3))
    b.link("crank", "world", Revolute("z"), inertia=bob(0.5, (0, 0, 0), (J, J, J)))
    b.link("slider", "world", "prismatic", axis="x", inertia=bob(m, (0, 0, 0)))
    b.frame("pin", "crank", Placement.at((r, 0, 0)))
    model = b.build().with_constraints(lw.Distance("pin", "slider", l))
    s, c = np.sin(theta), np.cos(theta)
    root = np.sqrt(l * l - r * r * s * s)
    x = r * c + root
    x1 = -r * s - r * r * s * c / root
    x2 = -r * c - r * r * (c * c - s * s) / root - r**4 * s * s * c * c / root**3
    expected = (tau - m * x1 * x2 * speed**2) / (J + m * x1**2)
    a, _ = forward(model, [theta, x], [speed, x1 * speed], [tau, 0.0], "kkt")
    assert_close(a, [expected, x1 * expected + x2 * speed**2], kappa=m / J, scale=speed**2)


def test_parallelogram_linkage_is_one_pendulum():
    """Four-bar with equal cranks: the coupler only translates; I a = tau - m g l cos q with I = 2 Jc + m l^2."""
    l, d, m, Jc, theta, tau = 0.4, 0.9, 1.5, 0.05, 0.6, 2.0
    b = Builder(gravity=np.array([0, -G, 0]))
    b.link("left", "world", Revolute("z"), inertia=bob(0.2, (0, 0, 0), (Jc, Jc, Jc)))
    b.link(
        "coupler",
        "left",
        Revolute("z"),
        placement=Placement.at((l, 0, 0)),
        inertia=bob(m, (d / 2, 0.1, 0), (1, 1, 0.07)),
    )
    b.link(
        "right", "world", Revolute("z"), placement=Placement.at((d, 0, 0)), inertia=bob(0.2, (0, 0, 0), (Jc, Jc, Jc))
    )
    b.frame("end", "coupler", Placement.at((d, 0, 0)))
    b.frame("pin", "right", Placement.at((l, 0, 0)))
    model = b.build().with_constraints(lw.Hinge("end", "pin", axis="z"))
    w = 1.3
    a, _ = forward(model, [theta, -theta, theta], [w, -w, w], [tau, 0, 0], "kkt")
    expected = (tau - m * G * l * np.cos(theta)) / (2 * Jc + m * l * l)
    assert_close(a, expected * np.array([1, -1, 1]), kappa=100.0, scale=G / l)


def test_two_points_on_a_rod_are_a_dumbbell():
    """Points held apart by a massless rod, spinning: tension m w^2 d / 2, the centre in free fall."""
    m, d, w = 0.7, 1.4, 3.0
    b = Builder()
    for name in "ab":
        b.link(f"{name}x", "world", "prismatic", axis="x")
        b.link(f"{name}y", f"{name}x", "prismatic", axis="y")
        b.link(name, f"{name}y", "prismatic", axis="z", inertia=bob(m, (0, 0, 0)))
    model = b.build().with_constraints(lw.Distance("a", "b", d))
    q = np.array([d / 2, 0, 0, -d / 2, 0, 0])
    v = np.array([0, w * d / 2, 0, 0, -w * d / 2, 0])
    a, lam = forward(model, q, v, np.zeros(6), "kkt")
    assert_close(lam, [-m * w * w * d / 2])
    assert_close(a, [-w * w * d / 2, 0, -G, w * w * d / 2, 0, -G], scale=G)


def test_rolling_down_an_incline_as_a_rack_and_pinion():
    """A cylinder on a slope of 30 degrees, x = -r phi: a = (2/3) g sin(alpha)."""
    r, m, alpha = 0.2, 2.0, np.pi / 6
    b = Builder(gravity=G * np.array([np.sin(alpha), 0, -np.cos(alpha)]))
    b.link("slide", "world", "prismatic", axis="x")
    b.link("wheel", "slide", Revolute("y"), inertia=bob(m, (0, 0, 0), (0.02, m * r * r / 2, 0.02)))
    model = b.build().with_constraints(lw.Coupling("slide_joint", {"wheel_joint": [r]}))
    a, _ = forward(model, [0, 0], [0, 0], np.zeros(2), "kkt")
    assert_close(a, [2 / 3 * G * np.sin(alpha), 2 / 3 * G * np.sin(alpha) / r], kappa=1 / r**2)


def test_coriolis_on_a_turntable():
    """A bead on a slide on a table turning at w: outward acceleration w^2 x, and the table needs 2 m x w xdot."""
    m, x, w, xdot = 0.5, 0.8, 2.0, 1.1
    b = Builder(gravity=np.zeros(3))
    b.link("table", "world", Revolute("z"), inertia=bob(1.0, (0, 0, 0), (1, 1, 1)))
    b.link("bead", "table", "prismatic", axis="x", inertia=bob(m, (0, 0, 0)))
    model = b.build()
    tau = lw.inverse_dynamics(model, backend="numpy")([0.3, x], [w, xdot], [0, 0]).tau
    assert_close(tau, [2 * m * x * w * xdot, -m * w * w * x])


def test_reaction_wheel_conserves_angular_momentum():
    """A floating body with a wheel: torque tau on the wheel turns the body the other way."""
    I, Jw, tau = 2.0, 0.1, 0.3
    b = Builder(gravity=np.zeros(3))
    b.link("body", "world", "free", inertia=bob(5.0, (0, 0, 0), (I, I, I)))
    b.link("wheel", "body", Revolute("z"), inertia=bob(0.5, (0, 0, 0), (Jw, Jw, Jw)))
    model = b.build()
    a = forward(model, model.neutral(), np.zeros(7), [0, 0, 0, 0, 0, 0, tau]).a
    assert_close(a, [0, 0, 0, 0, 0, -tau / I, tau / Jw + tau / I])
