"""Columns over the rows of all constraints, cut into the constraints' parts and stacked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows
from linkwork.model import Motion


def split(x: Array, rows: Sequence[ConstraintRows]) -> list[Array]:
    """A column over some rows, cut into the constraints' parts."""
    out, start = [], 0
    for r in rows:
        stop = start + r.k.shape[0]
        out.append(x[start:stop, :])
        start = stop
    return out


def in_order(motion: Motion, parts: Mapping[int, Array]) -> Array:
    """Parts by constraint as one column, in the order of constraints."""
    return motion.xp.vstack([motion.xp.zeros(0), *(parts[c] for c in sorted(parts))])
