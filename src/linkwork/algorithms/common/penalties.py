"""Penalties, least pivots and weights of errors, in units of effective inertia of rows."""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.backends.ops import Array, threshold
from linkwork.constraints.row_inertia import row_inertias, units
from linkwork.model import Motion

ROUNDING = 1e-20
"""The share of the largest pivot that is rounding: rows are right to ten digits, and pivots are their squares."""


def penalties(motion: Motion, mu: Array, which: Sequence[int] | None = None) -> list[Array]:
    """The penalty on the rows of each constraint, or of some, if the others are not penalised."""
    return [mu * unit for unit in units(motion.model, which)]


def inertias(motion: Motion, which: Sequence[int] | None = None) -> Array | None:
    """The inertias of rows of some constraints (all), relative to the least, as a column.

    None if all are alike, and in float32, where rounding of the heavier rows alone is more than the tolerance.
    """
    found = None if motion.xp.single else row_inertias(motion.model, which)
    return None if found is None else motion.xp.constant(found[:, None])


def least_pivots(motion: Motion, which: Sequence[int] | None = None) -> Array:
    """The least pivots of the rows of some constraints (all), a column: smaller ones are rounding."""
    xp, constraints, unit = motion.xp, motion.model.constraints, units(motion.model)
    chosen = range(len(constraints)) if which is None else which
    least = [xp.constant([threshold(xp, ROUNDING) / unit[c]] * constraints[c].rows) for c in chosen]
    return xp.vstack([xp.zeros(0), *least])
