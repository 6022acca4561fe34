"""Helical joint: a screw of one angle about an axis, advancing `pitch` metres per radian along it."""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import NUMBER, checked
from linkwork.joints.base import AXIS, Joint, spatial_columns, unit_axis
from linkwork.joints.revolute import turn_about
from linkwork.spatial.transforms import Move, Translate


class Helical(Joint):
    kind, nq, nv = "helical", 1, 1

    @checked(axis=AXIS, pitch=NUMBER)
    def __init__(self, axis: object = "z", pitch: float = 0.0) -> None:
        self.axis, self.pitch = unit_axis(axis), float(pitch)
        self._S = spatial_columns((self.pitch * self.axis, self.axis))

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        advance = Translate(xp.constant(self.pitch * self.axis) * q[0, 0], xp)
        return (advance, turn_about(self.axis, q[0, 0], xp))

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.constant(self._S)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-np.pi, np.pi, 1)
