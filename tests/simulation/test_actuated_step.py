"""`lw.discrete_step(actuators=True)`: steps of rollouts, linearised by the controls of motors and servos."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots import mechanisms as mech

H = 5e-3
DRIVES = {
    "motors": lambda a, b: (lw.Motor(a, gear=3.0), lw.Motor({a: 1.0, b: -0.5}, name="tendon")),
    "servos": lambda a, b: (lw.PositionServo(a, kp=40.0, kd=2.0), lw.VelocityServo(b, kd=3.0)),
    "saturated": lambda a, b: (lw.PositionServo(a, kp=900.0, kd=2.0, force_range=(-1.0, 1.0)), lw.Motor(b)),
}


def driven(kind: str, loop: bool) -> lw.Model:
    model = mech.four_bar() if loop else mech.chain(3)
    names = model.joint_names
    return model.with_damping(names[1], 0.2).with_actuators(*DRIVES[kind](names[0], names[2]))


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("kind", DRIVES)
def test_steps_are_those_of_rollouts_and_have_exact_derivatives(kind: str, loop: bool) -> None:
    model = driven(kind, loop)
    q, v = lw.random_state(model, 1) if loop else (model.random_q(1), np.array([0.3, -0.2, 0.4]))
    u = np.array([0.4, -0.3])
    step = lw.discrete_step(model, dt=H, actuators=True, method="prox_ltl" if loop else None)
    there = step(q, v, u)
    run = lw.rollout(model, dt=H, actuators=True, backend="numpy", method="kkt" if loop else "aba")(q, v, u=u, steps=1)
    np.testing.assert_allclose(there.q, run.q[-1], atol=1e-9)
    np.testing.assert_allclose(there.v, run.v[-1], atol=1e-7)
    found = step.linearize(q, v, u)
    assert found.A.shape == (6, 6)
    assert found.B.shape == (6, 2)
    h = 1e-6
    for k, e in enumerate(np.eye(2)):
        ends = [step(q, v, u + s * h * e) for s in (1, -1)]
        slope = np.concatenate([ends[0].q - ends[1].q, ends[0].v - ends[1].v]) / (2 * h)
        np.testing.assert_allclose(found.B[:, k], slope, atol=1e-6 * (1 + np.abs(found.B).max()))
    for k, e in enumerate(np.eye(3)):
        ends = [step(q, v + s * h * e, u) for s in (1, -1)]
        slope = np.concatenate([ends[0].q - ends[1].q, ends[0].v - ends[1].v]) / (2 * h)
        np.testing.assert_allclose(found.A[:, 3 + k], slope, atol=1e-5 * (1 + np.abs(found.A).max()))
        if not loop:
            ends = [step(q + s * h * e, v, u) for s in (1, -1)]
            slope = np.concatenate([ends[0].q - ends[1].q, ends[0].v - ends[1].v]) / (2 * h)
            np.testing.assert_allclose(found.A[:, k], slope, atol=1e-5 * (1 + np.abs(found.A).max()))
    w = np.arange(1.0, 7.0)
    g = step.vjp(q, v, u, w[:3], w[3:])
    np.testing.assert_allclose(g.u, w @ found.B, atol=1e-9 * (1 + np.abs(found.B).max()))
    np.testing.assert_allclose(np.concatenate([g.q, g.v]), w @ found.A, atol=1e-8 * (1 + np.abs(found.A).max()))


def test_horizons_and_copies() -> None:
    model = driven("servos", False)
    step = lw.discrete_step(model, dt=H, actuators=True)
    u = np.random.default_rng(0).normal(size=(4, 2, 2))
    run = pickle.loads(pickle.dumps(step)).rollout(np.zeros(3), np.zeros(3), u)
    assert run.q.shape == (5, 2, 3)
    expected = lw.rollout(model, dt=H, actuators=True)(np.zeros((2, 3)), np.zeros(3), u=np.swapaxes(u, 0, 1), steps=4)
    np.testing.assert_allclose(run.q[-1], expected.q[:, -1], atol=1e-12)
    weights = np.zeros((5, 2, 3)), np.ones((5, 2, 3))
    assert step.rollout_vjp(np.zeros(3), np.zeros(3), u, *weights).u.shape == u.shape
    with pytest.raises(lw.LinkworkError, match="u has shape"):
        step(np.zeros(3), np.zeros(3), np.zeros(3))
    with pytest.raises(lw.LinkworkError, match="actuators"):
        lw.discrete_step(mech.chain(2), actuators=True)
