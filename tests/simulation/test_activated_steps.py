"""Activations of actuators are part of the state of every step: `lw.step`, `lw.discrete_step`, rollouts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import LinkworkError
from linkwork.robots import mechanisms as mech

H = 0.02
LAGGING = mech.chain(2).with_actuators(
    lw.PositionServo("link1_joint", kp=30.0, kd=1.0, state="filterexact", time_constant=0.05),
    lw.Motor("link2_joint", gear=2.0, state="integrator", state_range=(-0.3, 0.3)),
    lw.Motor({"link1_joint": 1.0, "link2_joint": -0.5}, name="direct"),
)
Q, V, ACT = np.array([0.3, -0.4]), np.array([0.2, 0.1]), np.array([0.1, -0.2])
U = np.random.default_rng(0).normal(size=(5, 3))


def test_steps_by_one_are_those_of_a_rollout() -> None:
    run = lw.rollout(LAGGING, dt=H, actuators=True)(Q, V, u=U, act=ACT)
    for backend in ("kernel", "numpy"):
        step, q, v, act = lw.step(LAGGING, actuators=True, backend=backend), Q, V, ACT
        for k in range(len(U)):
            after = step(q, v, U[k], H, act=act)
            q, v, act = after.q, after.v, after.act
            np.testing.assert_allclose(act, run.act[k], atol=1e-14)
            np.testing.assert_allclose(q, run.q[k], atol=1e-12)
    again = pickle.loads(pickle.dumps(after))
    np.testing.assert_array_equal(again.act, after.act)
    assert len([*after]) == 5


def test_discrete_steps_have_activations_in_their_state() -> None:
    step = lw.discrete_step(LAGGING, dt=H, actuators=True)
    run = lw.rollout(LAGGING, dt=H, actuators=True)(Q, V, u=U, act=ACT)
    made = step.rollout(Q, V, U, act=ACT)
    for name in ("q", "v", "act"):
        np.testing.assert_allclose(getattr(made, name)[1:], getattr(run, name), atol=1e-13)
    found, h = step.linearize(Q, V, U[0], act=ACT), 1e-6
    assert (found.A.shape, found.B.shape) == ((6, 6), (6, 3))

    def after(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.concatenate(step(x[..., :2], x[..., 2:4], u, act=x[..., 4:]), axis=-1)

    x = np.concatenate([Q, V, ACT])
    A = (after(x + h * np.eye(6), U[0]) - after(x - h * np.eye(6), U[0])) / (2 * h)
    B = (after(x, U[0] + h * np.eye(3)) - after(x, U[0] - h * np.eye(3))) / (2 * h)
    np.testing.assert_allclose(found.A, A.T, atol=1e-8)
    np.testing.assert_allclose(found.B, B.T, atol=1e-8)
    assert found.A[4, 4] == pytest.approx(np.exp(-H / 0.05))
    held = step.linearize(Q, V, [0.0, 50.0, 0.0], act=ACT)  # the second is at the end of its range
    assert not held.A[5].any()
    assert not held.B[5].any()


def test_gradients_through_activations() -> None:
    step, rng = lw.discrete_step(LAGGING, dt=H, actuators=True), np.random.default_rng(1)
    w = {"w_q": rng.normal(size=(6, 2)), "w_v": rng.normal(size=(6, 2)), "w_act": rng.normal(size=(6, 2))}
    g = step.rollout_vjp(Q, V, U, **w, act=ACT)
    total, h = lambda s: sum((w["w_" + n] * getattr(s, n)).sum() for n in ("q", "v", "act")), 1e-6
    for k, e in enumerate(np.eye(2)):
        ends = [total(step.rollout(Q, V, U, act=ACT + s * h * e)) for s in (1, -1)]
        assert g.act[k] == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=1e-7)
    ends = [total(step.rollout(Q, V, U + s * h * np.eye(5)[0][:, None] * [0, 1, 0], act=ACT)) for s in (1, -1)]
    assert g.u[0, 1] == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=1e-7)
    w0 = {n: x[0] for n, x in w.items()}
    assert step.vjp(Q, V, U[0], w0["w_q"], w0["w_v"]).act.shape == (2,)


def test_what_has_no_activations_says_so() -> None:
    plain = lw.discrete_step(mech.chain(2), dt=H)
    with pytest.raises(LinkworkError, match="no activations"):
        plain(Q, V, V, act=ACT)
    with pytest.raises(LinkworkError, match="no activations"):
        plain.vjp(Q, V, V, Q, Q, w_act=ACT)
    with pytest.raises(LinkworkError, match="have a state"):
        lw.discrete_step(LAGGING, dt=H, actuators=True).casadi_external()
    with pytest.raises(LinkworkError, match="act has shape"):
        lw.discrete_step(LAGGING, dt=H, actuators=True)(Q, V, U[0], act=np.zeros(3))
