"""Sampled configurations in which loops are closed: each is searched when it is asked for, and not for long."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.closure import actuation
from linkwork.constraints import position_error
from linkwork.model import Model
from linkwork.robots import mechanisms as mech
from linkwork.structure import independent
from linkwork.structure.independent import away_from_neutral, closed_positions, near_neutral

from helpers import motion  # isort: skip


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each step of Gauss-Newton."""
    steps, jacobian = list[int](), independent.jacobian

    def counted(at):
        steps.append(1)
        return jacobian(at)

    monkeypatch.setattr(independent, "jacobian", counted)
    return steps


def too_long() -> Model:
    """A chain of some 3 m whose tip a rod of 100 m ties to the world."""
    return mech.chain(3).with_constraints(lw.Distance("linktip", "world", length=100.0))


@pytest.mark.parametrize("model", [mech.four_bar(), mech.six_bar(), mech.bricard()], ids=lambda m: m.name)
def test_loops_are_closed_and_the_first_is_nearest_to_neutral(model: Model) -> None:
    every = range(len(model.constraints))
    found = closed_positions(model, every)
    assert np.array_equal(found[0], near_neutral(model, every))
    assert len(found) > 1
    for q in found:
        assert np.abs(position_error(motion(model, q))).max() < 1e-10


def test_only_what_is_asked_for_is_searched(searched: list[int]) -> None:
    model = mech.six_bar()
    first = next(away_from_neutral(model, range(len(model.constraints))))
    one = len(searched)
    assert one > 0
    assert np.array_equal(first, closed_positions(model, range(len(model.constraints)))[1])
    assert len(searched) > one


def test_what_cannot_be_closed_is_not_searched_for_long(searched: list[int]) -> None:
    assert len(closed_positions(too_long(), [0])) == 1  # the first is kept although it is open
    assert len(searched) <= 4 * 15  # of 4 x 30


def test_whether_motors_suffice_is_found_without_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of all loops took a tenth of a second and more; one posture takes some steps of NumPy."""

    def traced(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("linkwork.kernels.programs.trace.trace", traced)
    model = mech.four_bar()
    actuation.check_actuation(model, np.array([True, False, False]))
    with pytest.raises(lw.LinkworkError, match="nothing drives"):
        actuation.check_actuation(mech.chain(3), np.array([True, False, True]))
