"""Which constraints hold, and how firmly: one weight per constraint, spread over its rows."""

from __future__ import annotations

from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows
from linkwork.model import Motion


def per_constraint(motion: Motion, rows: list[ConstraintRows], active: Array | None) -> list[Array]:
    """The scalar weight of each constraint: 1, or the entry of `active` (0 removes it exactly)."""
    return [1.0 if active is None else active[c, 0] for c in range(len(rows))]


def largest(motion: Motion, errors: list[Array]) -> Array:
    """The largest absolute entry of some columns, 1 x 1."""
    xp = motion.xp
    worst = xp.zeros(1)
    for e in errors:
        for i in range(e.shape[0]):
            size = xp.sqrt(e[i : i + 1, :] * e[i : i + 1, :])
            worst = xp.where(size > worst, size, worst)
    return worst
