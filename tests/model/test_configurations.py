"""Configurations: batches are rows of single states, maps invert each other, names find entries."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, random_model
from linkwork.model import Limits

MODEL = random_model(4, 9)
"""Every joint type."""


@pytest.fixture
def states():
    rng = np.random.default_rng(0)
    return MODEL.random_q(1, batch=6), MODEL.random_q(2, batch=6), rng.normal(size=(6, MODEL.nv))


def test_batches_are_rows_of_single_states(states):
    q, p, v = states
    for f, x, y in (
        (MODEL.integrate, q, v),
        (MODEL.difference, q, p),
        (MODEL.rate, q, v),
        (MODEL.velocity, q, MODEL.rate(q, v)),
    ):
        assert_close(f(x, y), [f(a, b) for a, b in zip(x, y, strict=True)], c=0)
        assert_close(f(x[0], y), [f(x[0], b) for b in y], c=0)
        assert f(x[:0], y[:0]).shape == (0, f(x[0], y[0]).size)
    assert_close(MODEL.normalised(2 * q)[3], MODEL.normalised(2 * q[3]), c=0)
    assert MODEL.neutral(batch=2).shape == (2, MODEL.nq)
    with pytest.raises(lw.LinkworkError, match="batch sizes"):
        MODEL.integrate(q, v[:3])


def test_velocity_inverts_rate(states):
    q, _, v = states
    assert_close(MODEL.velocity(q, MODEL.rate(q, v)), v)


def test_interpolation_starts_here_ends_there_and_is_even(states):
    q, p, _ = states
    ends = MODEL.interpolate(q[0], p[0], [0.0, 0.25, 1.0])
    assert_close(ends[0], q[0])
    assert_close(MODEL.difference(ends[2], p[0]), np.zeros(MODEL.nv))
    assert_close(MODEL.difference(q[0], ends[1]), MODEL.difference(q[0], p[0]) / 4)
    assert_close(MODEL.interpolate(q, p, 0.5)[2], MODEL.interpolate(q[2], p[2], 0.5))


def test_limits_and_names():
    b = lw.Builder()
    body = lw.BodyInertia(1.0)
    b.link("base", joint="free", inertia=body)
    b.link("arm", "base", "revolute", inertia=body, limits=Limits(4.0, 5.0, effort=7.0, velocity=3.0))
    model = b.build()
    limits = model.limits
    assert limits.lower[7] == 4.0
    assert limits.upper[7] == 5.0
    assert np.isinf(limits.upper[:7]).all()
    assert limits.effort[6] == 7.0
    assert limits.velocity[6] == 3.0
    assert np.isinf(limits.effort[:6]).all()
    assert model.q_slice("arm_joint") == slice(7, 8)
    assert model.v_slice("arm_joint") == slice(6, 7)
    assert model.joint_names == ("base_joint", "arm_joint")
    assert 4 <= model.random_q(0)[7] <= 5
    with pytest.raises(lw.LinkworkError, match="arm_joint"):
        model.q_slice("arm_join")
