"""What each law of contact is off, apart: zero for solutions, and each sees what breaks its own law."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots.mechanisms import quadruped, standing

MU = 0.6


def thrown(shape: str) -> tuple[lw.Model, list[lw.Contact]]:
    if shape == "quadruped":
        model = quadruped()
        return model, [lw.Contact(name, friction=MU) for name in model.frames if name.endswith("foot")]
    builder = lw.Builder("egg")
    builder.link("egg", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.diag([2e-3, 3e-3, 4e-3])))
    radii = (0.1, 0.08, 0.05)
    return builder.build(), [lw.EllipsoidContact("egg", radii=radii, further=k, friction=MU) for k in range(3)]


@pytest.mark.parametrize("shape", ["quadruped", "egg"])
def test_solutions_leave_nothing(shape: str) -> None:
    model, contacts = thrown(shape)
    rng, steps = np.random.default_rng(0), lw.step(model, contacts)
    q = np.tile(standing(model) if shape == "quadruped" else [0, 0, 0.05, 0, 0, 0, 1.0], (40, 1))
    q[:, 2] -= 1e-3
    v, tau = 3 * rng.normal(size=(40, model.nv)), np.zeros((40, model.nv))
    after = steps(q, v, tau, 1e-3)
    assert after.converged.all()
    assert (after.impulses.reshape(40, -1)[:, 2] > 0).any(), "some push"
    left = steps.residuals()(q, v, tau, 1e-3, impulses=after.impulses)
    for x in left:
        assert x.shape == (40, len(contacts))
        assert x.max() <= 2 * after.residual.max() + 1e-12
    alone = lw.step(model, contacts, backend="numpy").residuals()(q[3], v[3], tau[3], 1e-3, impulses=after.impulses[3])
    for x, one in zip(left, alone, strict=True):
        np.testing.assert_allclose(x[3], one, atol=1e-12)


def test_each_sees_its_own_law() -> None:
    """A block of 2 kg on a point that moves in all directions alike: A = 1 / m, and velocities follow."""
    builder = lw.Builder("point")
    builder.link("point", joint="translation", inertia=lw.BodyInertia(2.0, np.zeros(3), np.eye(3)))
    model, h, A = builder.build(), 1e-3, 0.5
    step = lw.step(model, [lw.Contact("point", friction=MU)], backend="numpy")
    residuals = step.residuals()
    q, v, tau = np.zeros(3), np.array([1.0, 0.0, -1.0]), np.array([0.0, 0.0, 2 * 9.81])

    def left(impulse: list[float]) -> np.ndarray:
        padded = np.zeros(step.inputs["impulses"])
        padded[:3] = impulse
        return np.array(residuals(q, v, tau, h, impulses=padded)).ravel()

    N = 2.0  # stops it; friction of mu N leaves 0.4 m/s
    after = step(q, v, tau, h)
    assert np.abs(after.v - [1 - A * MU * N, 0, 0]).max() < 1e-12
    t1, t2 = ([1.0, 0.0], [0.0, 1.0])
    along = after.impulses[:2] / np.linalg.norm(after.impulses[:2])
    assert np.abs(left([*after.impulses[:2], N])).max() < 1e-12
    weak = left([*(MU * 1.8 * along), 1.8])  # still sinks with A 0.2
    np.testing.assert_allclose(weak, [0.1, 0, 0], atol=1e-12)
    strong = left([*(MU * N * along), 2.2])  # lifts and pushes: within its cone, it ought to stop what slides
    np.testing.assert_allclose(strong, [0.1, 0, A * MU * 0.2], atol=1e-12)
    over = left([*((MU * N + 0.1) * along), N])
    np.testing.assert_allclose(over, [0, 0.05, 0.05], atol=1e-12)
    aside = left([*(MU * N * np.array(t2 if abs(along[0]) > 0.5 else t1)), N])
    assert aside[0] < 1e-12
    assert aside[1] < 1e-12
    assert aside[2] > 0.3
    pulls = left([0.0, 0.0, -0.3])
    np.testing.assert_allclose(pulls[0], 1.15, atol=1e-12)


def test_impulses_are_asked_for() -> None:
    model, contacts = thrown("egg")
    with pytest.raises(lw.LinkworkError, match="impulses"):
        lw.step(model, contacts, backend="numpy").residuals()(model.neutral(), np.zeros(6), np.zeros(6), 1e-3)
