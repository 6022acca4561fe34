"""Configurations moved and compared by compiled functions: as the model does, with derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import FIVE_POINT, assert_close, derivative, random_model, random_state
from linkwork.errors import InputError

MODEL = random_model(5, 5, ("spherical", "planar", "revolute", "helical", "universal"), base="free")


def test_they_do_what_the_model_does():
    q, v, _ = random_state(MODEL, 1)
    batch, moves = np.tile(q, (5, 1)), np.linspace(-0.5, 0.5, 5)[:, None] * v
    there = lw.integrate(MODEL)(batch, moves).q_next
    assert_close(there, MODEL.integrate(batch, moves), 1e2)
    assert_close(lw.difference(MODEL)(batch, there).v, moves, 1e2)
    assert_close(lw.difference(MODEL, backend="numpy")(q, there[0]).v, moves[0], 1e2)


@pytest.mark.parametrize("far", [0.0, 0.7])
def test_the_derivative_of_a_difference(far):
    """By the second configuration, in its tangent space; where both are the same it is the identity."""
    q, v, _ = random_state(MODEL, 2)
    there, n = MODEL.integrate(q, far * v), MODEL.nv
    found = lw.difference(MODEL).derivatives(wrt=("q",))(q, there).dv_dq
    steps = [lambda h, e=e: MODEL.difference(q, MODEL.integrate(there, h * e)) for e in np.eye(n)]
    expected = np.array([derivative(f) for f in steps]).T
    assert_close(found, expected, 1e3, scale=10, eps=FIVE_POINT)


def test_quaternions_that_are_not_of_length_one():
    q, _, _ = random_state(MODEL, 3)
    wrong = q.copy()
    wrong[3:7] *= 2
    for given in ((wrong, q), (q, wrong)):
        with pytest.raises(InputError):
            lw.difference(MODEL)(*given)
