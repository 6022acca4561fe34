"""Transmissions of URDF files become motors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwork as lw
from linkwork.io.load import LoadWarning

BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def robot(*transmissions: str) -> str:
    """Two hinges, effort limits 5 and none."""
    links = "".join(f'<link name="{n}">{BODY}</link>' for n in "abc")
    limit = '<limit effort="5" velocity="1" lower="-1" upper="1"/>'
    joints = (
        f'<joint name="one" type="revolute"><parent link="a"/><child link="b"/>{limit}</joint>'
        '<joint name="two" type="continuous"><parent link="b"/><child link="c"/></joint>'
        '<joint name="none" type="fixed"><parent link="c"/><child link="d"/></joint>'
    )
    return f'<robot name="r">{links}<link name="d"/>{joints}{"".join(transmissions)}</robot>'


def transmission(kind: str, joints: dict[str, float], actuators: dict[str, float]) -> str:
    ratio = "<mechanicalReduction>{}</mechanicalReduction>"
    inside = "".join(f'<joint name="{n}">{ratio.format(r)}</joint>' for n, r in joints.items())
    inside += "".join(f'<actuator name="{n}">{ratio.format(r)}</actuator>' for n, r in actuators.items())
    return f'<transmission name="t"><type>transmission_interface/{kind}</type>{inside}</transmission>'


def test_simple_ones_have_their_reduction_and_joints_their_limit() -> None:
    model = lw.load(robot(transmission("SimpleTransmission", {"two": 1}, {"m": 50})))
    assert [(a.name, dict(a.joints)) for a in model.actuators] == [("m", {"two": (50.0,)})]
    limited = lw.load(robot(transmission("SimpleTransmission", {"one": 1}, {"m": -50})))
    tau = lw.actuation(limited, backend="numpy")(np.zeros((2, 2)), np.zeros((2, 2)), [[0.05], [2.0]]).tau
    np.testing.assert_allclose(tau[:, 0], [-2.5, -5.0])


def test_a_differential_is_that_of_ros() -> None:
    model = lw.load(robot(transmission("DifferentialTransmission", {"one": 2, "two": 3}, {"l": 5, "r": 7})))
    tau = lw.actuation(model, backend="numpy")(np.zeros(2), np.zeros(2), [0.1, 0.02]).tau
    np.testing.assert_allclose(tau, [2 * (0.5 + 0.14), 3 * (0.5 - 0.14)])


def test_what_is_not_read_is_counted_and_what_does_not_move_is_not_driven() -> None:
    strange = transmission("FourBarLinkageTransmission", {"one": 1, "two": 1}, {"x": 1, "y": 1})
    fixed = transmission("SimpleTransmission", {"none": 1}, {"z": 1})
    with pytest.warns(LoadWarning, match="1 x 'FourBarLinkageTransmission'"):
        assert not lw.load(robot(strange, fixed)).actuators
    twice = transmission("SimpleTransmission", {"one": 1}, {"m": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = [a.name for a in lw.load(robot(twice, twice)).actuators]
    assert names == ["m", "m_"]
