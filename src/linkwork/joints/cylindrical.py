"""Cylindrical joint: q = [length, angle] along and about one axis, independent of each other."""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import checked
from linkwork.joints.base import AXIS, Joint, selection, spatial_columns, unit_axis
from linkwork.joints.revolute import turn_about
from linkwork.spatial.transforms import Move, Translate


class Cylindrical(Joint):
    kind, nq, nv = "cylindrical", 2, 2

    @checked(axis=AXIS)
    def __init__(self, axis: object = "z") -> None:
        self.axis = unit_axis(axis)
        self._S = spatial_columns((self.axis, None), (None, self.axis))
        self.selects = selection(self._S)

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return (Translate(xp.constant(self.axis) * q[0, 0], xp), turn_about(self.axis, q[1, 0], xp))

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.constant(self._S)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.array([rng.uniform(-1, 1), rng.uniform(-np.pi, np.pi)])
