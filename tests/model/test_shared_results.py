"""What NumPy computes once in a state, and what it does not compute at rest: the same numbers as without."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import assert_close, motion
from linkwork.algorithms.tree.crba import crba
from linkwork.constraints.rows import constraint_rows, rows_jacobian
from linkwork.model import Model
from linkwork.robots import mechanisms as mech

MODELS = [mech.chain(4), mech.four_bar(), mech.planar_leg(), mech.ring(9), mech.quadruped()]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_jacobians_of_links_are_those_of_rows(model: Model) -> None:
    at = motion(model, model.random_q(0))
    for l in model.topology.links:
        assert_close(at.jacobians[l], rows_jacobian(at, {l: np.eye(6)}, {}))


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_at_rest_is_the_limit_of_slow_motion(model: Model) -> None:
    """Velocities of 1e-9: products of velocities are 1e-18."""
    q, v = model.random_q(1), 1e-9 * np.random.default_rng(0).normal(size=model.nv)
    still, slow = motion(model, q), motion(model, q, v)
    assert still.still
    assert not slow.still
    for mine, other in zip(still.bias(None), slow.bias(None), strict=True):
        assert np.abs(mine - other).max() < 1e-14
    for mine, other in zip(still.accelerations(None), slow.accelerations(None), strict=True):
        assert_close(mine, other)
    for mine, other in zip(constraint_rows(still), constraint_rows(slow), strict=True):
        assert_close(mine.k, other.k, scale=10.0)
        for l, K in mine.links.items():
            assert_close(K, other.links[l])


def test_the_mass_matrix_is_computed_once_in_a_state() -> None:
    model = mech.chain(4)
    here, again, there = (motion(model, np.full(4, x)) for x in (0.1, 0.1, 0.2))
    assert crba(here) is crba(here)
    assert crba(again) is not crba(here)
    assert np.array_equal(crba(again), crba(here))
    assert not np.allclose(crba(there), crba(here))
