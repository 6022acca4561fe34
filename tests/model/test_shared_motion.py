"""Functions of one state on NumPy share what is evaluated of it, and never what belongs to another state."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.base import Constraint, Rows
from linkwork.model.motion import motion_of
from linkwork.robots import mechanisms as mech
from linkwork.spatial import Transform
from linkwork.spatial.transforms import Rotate, Translate, Turn, turn_matrix


def test_functions_of_one_state_share_its_motion():
    model = mech.chain(3)
    q, v = np.full((3, 1), 0.3), np.ones((3, 1))
    first = motion_of(model, q, v, NUMPY)
    assert motion_of(model, q.copy(), v.copy(), NUMPY) is first
    assert motion_of(model, q + 1e-15, v, NUMPY) is not first


def test_arrays_that_users_write_to_are_another_state():
    model = mech.chain(3)
    q, v, tau = np.full(3, 0.3), np.ones(3), np.zeros(3)
    fd = lw.forward_dynamics(model, method="aba", backend="numpy")
    before = fd(q, v, tau).a
    q[1] = 1.0
    after = fd(q, v, tau).a
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_array_equal(after, lw.forward_dynamics(mech.chain(3), method="aba", backend="numpy")(q, v, tau).a)


def test_results_that_users_write_to_are_their_own():
    model, q = mech.four_bar(), mech.four_bar().neutral()
    jacobian = lw.constraint_jacobian(model, backend="numpy")
    first = jacobian(q).J
    kept = first.copy()
    first[:] = 0.0
    np.testing.assert_array_equal(jacobian(q).J, kept)


class Moody(Constraint):
    """A user's row over the first joint, whose target is in a list that the user changes."""

    rows, name, stabilisation = 1, "moody", None

    def __init__(self, target: list[float]) -> None:
        self.target = target

    def check(self, model):
        pass

    def touches(self, model):
        return (1,)

    def evaluate(self, motion):
        return Rows({}, {1: np.ones((1, 1))}, np.array([[-self.target[0]]]))


@pytest.mark.parametrize("method", ["kkt", "prox_ltl"])
def test_rows_of_users_are_evaluated_in_every_call(method):
    target = [1.0]
    model = mech.chain(2).with_constraints(Moody(target))
    fd = lw.forward_dynamics(model, method=method, backend="numpy")
    q, v, tau = np.full(2, 0.3), np.zeros(2), np.zeros(2)
    assert fd(q, v, tau).a[0] == pytest.approx(1.0)
    target[0] = 5.0
    assert fd(q, v, tau).a[0] == pytest.approx(5.0)


def test_a_product_of_moves_is_these_moves():
    rng = np.random.default_rng(0)
    moves = (
        Translate(rng.normal(size=(3, 1)), NUMPY),
        Turn.by(1, np.float64(0.7), NUMPY),
        Rotate(turn_matrix(0, 0.6, 0.8) @ turn_matrix(2, 0.8, 0.6), NUMPY),
        Translate(rng.normal(size=(3, 1)), NUMPY),
    )
    one, each = Transform.of(moves, NUMPY), Transform(moves, NUMPY)
    assert len(one.moves) == 1
    v, x = rng.normal(size=(6, 4)), rng.normal(size=(3, 1))
    inertia = motion_of(mech.chain(1), np.zeros((1, 1)), np.zeros((1, 1)), NUMPY).I[1].articulated()
    for a, b in (
        (one @ v, each @ v),
        (one.T @ v, each.T @ v),
        (one.rotate(x), each.rotate(x)),
        (one.congruence(inertia).matrix(), each.congruence(inertia).matrix()),
        *zip(one.after(np.eye(3), x), each.after(np.eye(3), x), strict=True),
    ):
        np.testing.assert_allclose(a, b, atol=1e-14)
