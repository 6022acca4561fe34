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


def by_constraint(motion: Motion, which: Sequence[int], x: Array) -> dict[int, Array]:
    """A column over the rows of some of the model's constraints, by constraint."""
    out: dict[int, Array] = {}
    for n in which:
        rows = motion.model.constraints[n].rows
        out[n], x = x[0:rows, :], x[rows:, :]
    return out


def stacked(motion: Motion, parts: Sequence[Array]) -> Array:
    """Parts by constraint as one column."""
    return motion.xp.vstack([motion.xp.zeros(0), *parts])


def in_order(motion: Motion, parts: Mapping[int, Array]) -> Array:
    """Parts by constraint as one column, in the order of constraints."""
    return stacked(motion, [parts[c] for c in sorted(parts)])
