"""Torsional and rolling friction of contacts: balls that spin and roll lose speed as mechanics says."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw

G, R, I = 9.81, 0.1, 0.4 * 0.1**2


def ball() -> lw.Model:
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3) * I))
    return b.build()


START = np.array([0, 0, R, 0, 0, 0, 1.0])


@pytest.mark.parametrize("method", ["gauss_seidel", "active_set", "admm"])
def test_a_spinning_ball(method: str) -> None:
    """w' = -torsion m g / I, and then it stands still."""
    c = lw.Contact("ball", radius=R, torsion=0.01)
    run = lw.rollout(ball(), contacts=[c], threads=1, backend="numpy", method=method)
    slower = 0.01 * G / I
    after = run(START, [0, 0, 0, 0, 0, 1.0], steps=50, every=10)
    t = np.arange(1, 6) * 0.01
    assert after.v[:, 5] == pytest.approx(np.maximum(1.0 - slower * t, 0.0), abs=1e-7)
    assert np.abs(after.v[:, :5]).max() < 1e-7
    assert after.residual < 1e-6


def test_a_rolling_ball_stops() -> None:
    """v' = -rolling g / (r + I / (m r)): along an axis of the contact, in kernels too."""
    rho, v0, steps = 2e-3, 0.5, 500
    model, contacts = ball(), [lw.Contact("ball", radius=R, rolling=rho)]
    for backend in ("kernel", "numpy"):
        run = lw.rollout(model, contacts=contacts, threads=1, backend=backend)
        count = steps if backend == "kernel" else 50
        after = run(START, [v0, 0, 0, 0, v0 / R, 0], steps=count, every=count)
        expected = v0 - rho * G / (R + I / R) * count * 1e-3
        assert np.linalg.norm(after.v[-1, :3]) == pytest.approx(expected, rel=1e-6)
    rest = lw.rollout(model, contacts=contacts, threads=1)(START, [v0, 0, 0, 0, v0 / R, 0], steps=5000, every=5000)
    assert np.abs(rest.v[-1]).max() < 1e-8
    assert rest.q[-1, 0] == pytest.approx(v0**2 / 2 * (R + I / R) / (rho * G), rel=5e-3)


def test_a_heavy_spin_does_not_gain_energy() -> None:
    c = lw.Contact("ball", radius=R, torsion=0.02, rolling=1e-3, friction=0.3)
    rng = np.random.default_rng(0)
    v = rng.standard_normal((16, 6)) * [1, 1, 1, 20, 20, 20]
    run = lw.rollout(ball(), contacts=[c], threads=1)(
        np.tile([0, 0, 0.3, 0, 0, 0, 1], (16, 1)), v, steps=1000, every=10
    )
    energy = 0.5 * (run.v[..., :3] ** 2).sum(-1) + 0.5 * I * (run.v[..., 3:] ** 2).sum(-1) + G * run.q[..., 2]
    assert np.diff(energy, axis=1).max() < 1e-4 * energy.max()
    assert run.converged.all()


def test_files_give_it() -> None:
    pytest.importorskip("mujoco")
    model = lw.load(
        """<mujoco><worldbody><body><freejoint/><geom size="0.1" condim="6" friction="0.7 0.01 0.002"/>
        <geom size="0.1" pos="0 0 1" condim="4" friction="0.7 0.01 0.002"/></body></worldbody></mujoco>"""
    )
    assert [(c.torsion, c.rolling) for c in lw.contacts(model)] == [(0.01, 0.002), (0.01, 0.0)]


def test_two_balls_spin_against_each_other() -> None:
    """A pair resists their relative spin by up to torsion N: both lose what the torque takes, and end together."""
    b = lw.Builder("axle")
    for name, z in (("low", 0.0), ("high", 0.3)):
        place = lw.Placement(p=np.array([0.0, 0.0, z]))
        b.link(name, joint="revolute", axis="z", placement=place, inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    b.link("top", parent="high", joint="prismatic", axis="z", inertia=lw.BodyInertia(2.0, np.zeros(3), np.eye(3)))
    low, top = lw.Ball("low", radius=0.15), lw.Ball("top", radius=0.15)
    run = lw.rollout(b.build(), contacts=lw.touching(low, top, torsion=0.05), dt=1e-3, backend="numpy")
    after = run(np.zeros(3), [0.0, 1.0, 0.0], steps=20, every=20)
    torque = 0.05 * 2.0 * G
    assert after.v[-1] == pytest.approx([torque * 0.02, 1.0 - torque * 0.02 / 2, 0.0], abs=1e-7)
    rest = run(np.zeros(3), [0.0, 0.01, 0.0], steps=20, every=20)
    assert rest.v[-1, 0] == pytest.approx(rest.v[-1, 1], abs=1e-9)
