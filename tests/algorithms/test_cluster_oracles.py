"""Equations of motion derived by hand, and energy over simulated time."""

from __future__ import annotations

import numpy as np
import pytest

import cluster_cases as cases
import linkwork as lw
from helpers import FIVE_POINT, assert_close, derivative, motion
from linkwork.algorithms.tree.energy import kinetic_energy, potential_energy
from linkwork.robots import mechanisms as mech

L1, C1, C2, R, N1, N2 = 0.5, 0.2, 0.3, 0.35, 7.0, 5.0
"""Two-link arm: length, centres of mass, place of the second motor on the first link, gear ratios."""
M1, I1, M2, I2, MR, J1, J2 = 1.5, 0.04, 0.8, 0.02, 0.4, 1e-3, 6e-4
"""Masses and moments of inertia of the links, mass of the second rotor, inertias of both."""


def arm() -> lw.Model:
    b = lw.Builder("two-link arm with rotors")
    body = lambda m, c, I: lw.BodyInertia(m, np.array([c, 0, 0]), np.diag([0.01, I, I]))  # noqa: E731
    wheel = lambda m, J: lw.BodyInertia(m, np.zeros(3), np.diag([0.7 * J, 0.7 * J, J]))  # noqa: E731
    b.link("upper", "world", "revolute", inertia=body(M1, C1, I1), joint_name="shoulder")
    b.link(
        "lower",
        "upper",
        "revolute",
        placement=lw.Placement.at((L1, 0, 0)),
        inertia=body(M2, C2, I2),
        joint_name="elbow",
    )
    b.link("rotor1", "world", "revolute", inertia=wheel(MR, J1), joint_name="motor1")
    b.link(
        "rotor2", "upper", "revolute", placement=lw.Placement.at((R, 0, 0)), inertia=wheel(MR, J2), joint_name="motor2"
    )
    b.constraints += [lw.Coupling("motor1", {"shoulder": [N1]}), lw.Coupling("motor2", {"elbow": [N2]})]
    b.independent += ["shoulder", "elbow"]
    return b.build().with_gravity((0, -9.81, 0))


@pytest.mark.parametrize("seed", range(3))
def test_two_link_arm_with_rotors(seed) -> None:
    """The second rotor turns with qdot_1 + N2 qdot_2: terms in M_11, M_12 that no armature has."""
    rng = np.random.default_rng(seed)
    (q1, q2), (v1, v2), tau = rng.uniform(-3, 3, 2), rng.normal(size=2), rng.normal(size=2) * 4
    M11 = I1 + M1 * C1**2 + N1**2 * J1 + MR * R**2 + J2 + I2 + M2 * (L1**2 + C2**2 + 2 * L1 * C2 * np.cos(q2))
    M12 = N2 * J2 + I2 + M2 * (C2**2 + L1 * C2 * np.cos(q2))
    M22 = N2**2 * J2 + I2 + M2 * C2**2
    h, g = M2 * L1 * C2 * np.sin(q2), 9.81
    bias = np.array([-h * (2 * v1 * v2 + v2**2), h * v1**2])
    weight = g * np.array(
        [(M1 * C1 + MR * R + M2 * L1) * np.cos(q1) + M2 * C2 * np.cos(q1 + q2), M2 * C2 * np.cos(q1 + q2)]
    )
    M = np.array([[M11, M12], [M12, M22]])
    expected = np.linalg.solve(M, tau - bias - weight)

    model = arm()
    q, v = lw.expand(model, [q1, q2], [v1, v2])
    at = lw.clusters(model).velocities
    full = np.zeros(4)
    full[at] = tau
    a, _ = lw.forward_dynamics(model, method="c_aba", backend="numpy")(q, v, full)
    kappa = float(np.linalg.cond(M))
    assert_close(a[at], expected, kappa)
    found = lw.inverse_dynamics(model, method="c_rnea", backend="numpy")(q, v, a).tau
    assert_close(found, full, kappa, scale=20.0)


@pytest.mark.parametrize("angle", [0.4, 1.3, 2.6, -1.0])
def test_four_bar_by_lagrange(angle) -> None:
    """One angle theta: m(theta) thetadd + m'(theta) thetad^2 / 2 + V'(theta) = tau, geometry by the law of cosines."""
    ground, a, b, c = 1.0, 0.3, 0.9, 0.6
    model = mech.four_bar(ground, a, b, c, angle=angle)
    bars = [model.links[model.link(n)].inertia for n in ("crank", "coupler", "rocker")]

    def posture(theta: float) -> tuple[float, float]:
        """Angles of coupler and rocker: the triangle over the diagonal from the crank's pin to the rocker's pivot."""
        pin = a * np.array([np.cos(theta), np.sin(theta)])
        d = np.array([ground, 0.0]) - pin
        span, toward = float(np.hypot(*d)), float(np.arctan2(d[1], d[0]))
        phi = toward + np.arccos((b**2 + span**2 - c**2) / (2 * b * span))
        end = pin + b * np.array([np.cos(phi), np.sin(phi)])
        return phi, float(np.arctan2(end[1], end[0] - ground))

    def inertia_and_height(theta: float) -> np.ndarray:
        phi, psi = posture(theta)
        # a e(theta) + b e(phi) = ground + c e(psi), differentiated
        A = np.array([[-b * np.sin(phi), c * np.sin(psi)], [b * np.cos(phi), -c * np.cos(psi)]])
        dphi, dpsi = np.linalg.solve(A, [a * np.sin(theta), -a * np.cos(theta)])
        m1, m2, m3 = (x.mass for x in bars)
        c1, c2, c3 = (x.com[0] for x in bars)
        j1, j2, j3 = (x.I[2, 2] for x in bars)
        v2 = a**2 + (c2 * dphi) ** 2 + 2 * a * c2 * dphi * np.cos(theta - phi)
        m = m1 * c1**2 + j1 + m2 * v2 + j2 * dphi**2 + (m3 * c3**2 + j3) * dpsi**2
        h = m1 * c1 * np.sin(theta) + m2 * (a * np.sin(theta) + c2 * np.sin(phi)) + m3 * c3 * np.sin(psi)
        return np.array([m, 9.81 * h])

    rate, tau = 1.7, 0.9
    slope = derivative(lambda t: inertia_and_height(angle + t))
    expected = (tau - slope[0] * rate**2 / 2 - slope[1]) / inertia_and_height(angle)[0]
    q, v = lw.expand(model, [0.0], [rate])
    acc, _ = lw.forward_dynamics(model, method="c_aba", backend="numpy")(q, v, [tau, 0, 0])
    assert_close(acc[:1], [expected], 1e3, eps=FIVE_POINT)


@pytest.mark.parametrize("name", ["gears", "belts", "four-bar", "leg linkage"])
def test_energy_over_a_second(name) -> None:
    """Runge and Kutta's method in all coordinates: energy stays, and so do the loops, as accelerations respect them."""
    model = cases.ALL[name]() if name != "leg linkage" else mech.planar_leg()
    tree = lw.clusters(model)
    ydot = 0.5 * np.ones(len(tree.velocities))
    q, v = lw.expand(model, model.neutral()[tree.positions], ydot)
    fd = lw.forward_dynamics(model, method="c_aba")
    energy = lambda: float((kinetic_energy(motion(model, q, v)) + potential_energy(motion(model, q, v)))[0, 0])  # noqa: E731
    before, dt, zero = energy(), 2e-3, np.zeros(model.nv)
    moved = float(kinetic_energy(motion(model, q, v))[0, 0])
    for _ in range(500):
        a1 = fd(q, v, zero).a
        a2 = fd(q + dt / 2 * v, v + dt / 2 * a1, zero).a
        a3 = fd(q + dt / 2 * v + dt**2 / 4 * a1, v + dt / 2 * a2, zero).a
        a4 = fd(q + dt * v + dt**2 / 2 * a2, v + dt * a3, zero).a
        q, v = q + dt * v + dt**2 / 6 * (a1 + a2 + a3), v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        moved = max(moved, float(kinetic_energy(motion(model, q, v))[0, 0]) if _ % 50 == 0 else 0.0)
    assert abs(energy() - before) < 1e-6 * max(moved, 0.1)
    again = lw.expand(model, q[tree.positions], v[tree.velocities], guess=q)
    assert np.abs(again.q - q).max() < 1e-7
    assert np.abs(again.v - v).max() < 1e-6 * max(1.0, np.abs(v).max())
