"""Prismatic joint: one length along a fixed axis."""

from __future__ import annotations

from linkwork.backends.ops import Array, Ops
from linkwork.checks import checked
from linkwork.joints.base import AXIS, Joint, selection, spatial_columns, unit_axis
from linkwork.spatial.transforms import Move, Translate


class Prismatic(Joint):
    kind, nq, nv = "prismatic", 1, 1

    @checked(axis=AXIS)
    def __init__(self, axis: object = "z") -> None:
        self.axis = unit_axis(axis)
        self._S = spatial_columns((self.axis, None))
        self.selects = selection(self._S)

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return (Translate(xp.constant(self.axis) * q[0, 0], xp),)

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.constant(self._S)
