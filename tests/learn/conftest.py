"""What tests of several frameworks share: a small mechanism, its dynamics, states."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw


@pytest.fixture(scope="module")
def model():
    """A ball joint with an arm, whose tip is held at a distance: quaternions, a constraint, few operations."""
    b = lw.Builder("arm")
    body = lw.BodyInertia(1.2, (0.1, 0.05, 0.2), np.diag([0.02, 0.03, 0.025]))
    b.link("upper", "world", "spherical", inertia=body)
    b.link("lower", "upper", "revolute", axis="y", inertia=body, placement=lw.Placement.at((0, 0, 0.3)))
    b.frame("tip", "lower", lw.Placement.at((0, 0, 0.2)))
    return b.build().with_constraints(lw.Distance("tip", "world", length=0.4))


@pytest.fixture(scope="module")
def plain(model):
    return lw.forward_dynamics(model, parameters=("inertia",))


@pytest.fixture(scope="module")
def numbers(model):
    """q, v and tau of twelve states."""
    rng = np.random.default_rng(1)
    q, v = (np.array(x) for x in zip(*(lw.random_state(model, seed=s) for s in range(12)), strict=True))
    return q, v, rng.normal(size=(12, model.nv))
