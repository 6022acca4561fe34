"""What the calls have in common: their form, small mechanisms, options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import linkwork as lw
from linkwork.robots import mechanisms

NUMPY_BACKEND = {"backend": "numpy"}


OPTIONS = {"backend": "numpy", "dtype": "float64", "threads": 1}
"""Of every factory; nothing is compiled."""


@dataclass(frozen=True)
class Call:
    """A function and arguments with which it works, those in `several` by their places."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    several: tuple[str, ...] = ()

    def __call__(self, **changed: Any) -> Any:
        given = {**self.arguments, **changed}
        first = [given.pop(n) for n in self.several]
        return self.function(*first, **given)


def key(x: Any) -> Any:
    """What can be a key at all."""
    try:
        hash(x)
    except TypeError:
        return None
    return x


@cache
def robot() -> lw.Model:
    """A free base with an arm, and a contact."""
    b = lw.Builder("robot")
    body = lw.BodyInertia(1.0, np.array([0.0, 0.1, 0.2]), 0.1 * np.eye(3))
    b.link("base", joint="free", inertia=body, actuated=False)
    b.link("arm", "base", "revolute", axis="y", inertia=body)
    b.link("hand", "arm", "revolute", axis="x", inertia=body, placement=lw.Placement.at((0, 0, 0.3)))
    b.frame("tip", "hand", lw.Placement.at((0, 0, 0.2)))
    return b.build().with_constraints(lw.point("tip"))


@cache
def loop() -> lw.Model:
    return mechanisms.four_bar()


@cache
def arm() -> lw.Model:
    """Two joints and nothing else."""
    return mechanisms.chain(2)


@cache
def run() -> lw.Trajectory:
    return lw.simulate(arm(), arm().neutral(), duration=0.003, backend="numpy", method="aba")


URDF = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
    'ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
    '<limit effort="1" velocity="1" lower="-1" upper="1"/></joint></robot>'
)
