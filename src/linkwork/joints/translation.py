"""Translation joint: q = [x y z] in the parent's axes, v their rates; the child does not turn."""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.joints.base import Joint, selection, spatial_columns
from linkwork.spatial.transforms import Move, Translate


class Translation(Joint):
    kind, nq, nv = "translation", 3, 3

    def __init__(self) -> None:
        self._S = spatial_columns(*((e, None) for e in np.eye(3)))
        self.selects = selection(self._S)

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return (Translate(q, xp),)

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.constant(self._S)
