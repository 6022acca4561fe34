"""URDF+: loops, couplings and independent joints."""

from __future__ import annotations

import numpy as np
import pytest
from loaded import EPS, NO_ROBOTS, State, quiet_load

from linkwork.errors import LinkworkError
from linkwork.io import zoo
from linkwork.model import Model


def robot(name: str) -> Model:
    try:
        return quiet_load(zoo.find(name).path)
    except LinkworkError:
        pytest.skip(f"{name}: {NO_ROBOTS}")


def test_four_bar_closes() -> None:
    """Links of 0.5, 1.0, 0.5 m on a ground of 1.0 m: a parallelogram, closed at q1 = q3, q2 = -q1."""
    model = robot("four_bar")
    (loop,) = model.constraints
    assert (loop.joint, loop.rows, loop.name) == ("revolute", 5, "loop1")
    assert model.independent == ("joint1",)
    for angle in (0.3, 1.2, -2.0):
        q = np.array([angle, -angle, angle])
        error = loop.position_error(State(model, q, np.zeros(3)).motion)
        assert np.abs(error).max() < 10 * EPS
    off = loop.position_error(State(model, np.array([0.3, 0.1, 0.2]), np.zeros(3)).motion)
    assert np.abs(off).max() > 1e-2


def test_six_bar() -> None:
    model = robot("six_bar")
    assert [c.name for c in model.constraints] == ["constraint1"]
    assert model.independent == ("joint1", "joint2", "joint3")


@pytest.mark.parametrize(
    ("name", "couplings", "dependent"),
    [
        ("mini_cheetah", 12, 12),
        ("mit_humanoid", 18, 18),
        ("mit_humanoid_leg", 5, 5),
        ("jvrc1_humanoid", 25, 25),
        ("revolute_rotor_chain", 3, 3),
        ("tello_humanoid", 0, 18),
        ("mini_cheetah_approximate", 0, 0),
    ],
)
def test_couplings(name: str, couplings: int, dependent: int) -> None:
    model = robot(name)
    assert len(model.constraints) == couplings
    if dependent:
        assert len(model.independent) == model.nlinks - dependent
    else:
        assert model.independent == ()
    for c in model.constraints:
        assert c.joint not in model.independent


def test_gear_and_belt() -> None:
    """A rotor turns `ratio` times its joint; a belt's rotor turns with all joints from the common link on."""
    cheetah = {c.name: c for c in robot("mini_cheetah").constraints}
    gear = cheetah["FR_knee_tranmission"]
    assert dict(gear.terms) == {"FR_hip_to_knee_j": (9.33,)}
    assert any(len(c.terms) > 1 for c in robot("mit_humanoid").constraints)
