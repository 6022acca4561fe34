"""Exact operation counts of traced algorithms, so that a change that costs operations is seen.

The bounds are today's counts with one per cent of slack at most: lower them when they fall.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import LinkworkError

# algorithms as the papers have them: in the frames of the model
forward_dynamics = partial(lw.forward_dynamics, frames="given")
inverse_dynamics = partial(lw.inverse_dynamics, frames="given")
mass_matrix = partial(lw.mass_matrix, frames="given")


@pytest.fixture(scope="module")
def talos():
    try:
        return lw.load("talos_reduced", base="free", passive=False)
    except LinkworkError as problem:
        pytest.skip(f"talos_reduced is in example-robot-data, which is not installed: {problem}")


BOUNDS = {"aba": 9100, "rnea": 5150, "crba": 3600, "crba_ltl": 13500}


@pytest.mark.parametrize("name", ["aba", "rnea", "crba", "crba_ltl"])
def test_talos(talos, name):
    assert (talos.nlinks, talos.nv) == (33, 38)
    function = {
        "aba": lambda: forward_dynamics(talos, method="aba"),
        "crba_ltl": lambda: forward_dynamics(talos, method="crba_ltl"),
        "rnea": lambda: inverse_dynamics(talos, method="rnea"),
        "crba": lambda: mass_matrix(talos),
    }[name]()
    assert function.operations <= BOUNDS[name]
    assert function.operations > 0.9 * BOUNDS[name], "well below the bound: lower it"


FEET_AND_HANDS = ("leg_left_6_link", "leg_right_6_link", "arm_left_7_link", "arm_right_7_link")
TERM_BOUNDS = {
    "J": 982, "Jdot_v": 1542, "velocities": 541, "com": 371, "com_J": 1343, "h": 2480, "A": 3496, "hdot": 4585,
    "kinetic_energy": 1833, "Minv": 17749, "C": 13191, "g": 630, "c": 4105,
}  # fmt: skip


@pytest.mark.parametrize("name", TERM_BOUNDS)
def test_terms_of_talos(talos, name):
    """Each term alone; frames are feet and hands, in their own axes."""
    frames = FEET_AND_HANDS if name in ("J", "Jdot_v", "velocities") else ()
    assert lw.terms(talos, name, frames).operations <= TERM_BOUNDS[name]


@pytest.mark.parametrize(("robot", "bound"), [("icub_reduced", 18715), ("talos_reduced", 17887)])
def test_regressors(robot, bound):
    """From link to link where axes are along those of links, else in common axes (35 862 for iCub otherwise)."""
    try:
        model = lw.load(robot, base="free", passive=False)
    except LinkworkError as problem:
        pytest.skip(f"{robot} is in example-robot-data, which is not installed: {problem}")
    assert lw.regressor(model).operations <= bound


def test_terms_share_what_they_have_in_common(talos):
    """Alone these take 11 295 operations."""
    names = ("M", "c", "com_J", "J", "Jdot_v")
    assert lw.terms(talos, names, FEET_AND_HANDS).operations <= 9749


def test_a_pendulum_costs_no_more_than_its_formula():
    """a = (tau - m g l sin q) / (m l^2): a sine, two products and a difference."""
    b = lw.Builder()
    b.link("bob", "world", "revolute", axis="y", inertia=lw.BodyInertia(2.0, np.array([0, 0, -0.5])))
    model = b.build()
    assert forward_dynamics(model, method="aba").operations <= 4
    assert inverse_dynamics(model).operations <= 4
    assert mass_matrix(model).operations == 0


def test_zeros_of_the_structure_fold_away():
    """Parallel axes cost least, then quarter turns, turns about one axis, any placement, and joints about any axis."""
    I = lw.BodyInertia(1.0, np.array([0.1, 0.2, 0.3]), np.diag([0.3, 0.2, 0.25]))

    def cost(axis, rpy):
        b = lw.Builder()
        for i in range(4):
            place = lw.Placement.at((0.1, 0, 0.3), rpy)
            b.link(f"l{i}", f"l{i - 1}" if i else "world", "revolute", axis=axis, placement=place, inertia=I)
        return forward_dynamics(b.build(), method="aba").operations

    parallel, quarter, turned = (cost("z", (roll, 0, 0)) for roll in (0, np.pi / 2, 0.3))
    skew, oblique = (cost(axis, (0.3, 0.2, 0.1)) for axis in ("z", [0.6, 0.48, 0.64]))
    assert parallel < quarter < turned < skew < oblique
