"""Projections start from zero: what is left of an error is rounding of it, so that no start could be better."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots import mechanisms as mech
from linkwork.simulation.steps.projection import Correction

FEET = [f for f in mech.quadruped().frames if "foot" in f]
MODELS = {
    "four-bar": mech.four_bar,
    "ring": lambda: mech.ring(6),
    "quadruped": lambda: mech.quadruped().with_constraints(*map(lw.point, FEET)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1e-9, 1e-5, 1e-1])
def test_errors_of_any_size_are_removed_to_rounding_of_them(name: str, size: float) -> None:
    model, rng = MODELS[name](), np.random.default_rng(1)
    q = model.integrate(lw.random_state(model, 1)[0], 1e-4 * rng.normal(size=model.nv))
    J = lw.constraint_jacobian(model, backend="numpy")(q).J
    target = size * J @ rng.normal(size=model.nv)
    _, d, _ = Correction(model, backend="numpy")(q, target, np.ones(len(model.constraints)))
    assert np.abs(J @ d - target).max() < 1e-11 * np.abs(target).max()
