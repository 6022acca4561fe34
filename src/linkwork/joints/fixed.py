"""Fixed joint: no degree of freedom. The builder merges links behind it into their parents by default."""

from __future__ import annotations

from linkwork.backends.ops import Array, Ops
from linkwork.joints.base import Joint
from linkwork.spatial.transforms import Move


class Fixed(Joint):
    kind, nq, nv = "fixed", 0, 0

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return ()

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.zeros(6, 0)
