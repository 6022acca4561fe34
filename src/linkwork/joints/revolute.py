"""Revolute joint: one angle about a fixed axis.

Continuous joints are the same: one angle, not a cosine and a sine.
"""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import checked
from linkwork.joints.base import AXIS, Joint, coordinate_axis, selection, spatial_columns, unit_axis
from linkwork.spatial.rotations import rotation_about
from linkwork.spatial.transforms import Move, Rotate, Turn


def turn_about(axis: np.ndarray, angle: Array, xp: Ops) -> Move:
    """The move of turning about a unit axis: a `Turn` where the axis lies along a coordinate."""
    aligned = coordinate_axis(axis)
    if aligned is None:
        return Rotate(rotation_about(axis, xp.cos(angle), xp.sin(angle), xp), xp)
    k, sign = aligned
    return Turn.by(k, angle if sign > 0 else -angle, xp)


class Revolute(Joint):
    kind, nq, nv = "revolute", 1, 1

    @checked(axis=AXIS)
    def __init__(self, axis: object = "z") -> None:
        self.axis = unit_axis(axis)
        self._S = spatial_columns((None, self.axis))
        self.selects = selection(self._S)

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return (turn_about(self.axis, q[0, 0], xp),)

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.constant(self._S)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-np.pi, np.pi, 1)
