"""What a cluster takes for granted, checked where it is used: NaN instead of numbers where it does not hold.

Which joints of a cluster depend on others is decided once, for a model. In a posture in which its rows say more than that
(their rank is larger than anywhere it was looked for, or loops are not closed so that redundant rows contradict each other),
the accelerations do not meet all of them. And a constraint that is embedded cannot be switched off.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.backends.ops import Array
from linkwork.constraints.clusters import Cluster, ClusterTree, local_rows
from linkwork.model import Motion

MET = 1e-6
"""Errors of embedded rows, relative to their terms, that count as none."""

NAN = float("nan")


def kept(motion: Motion, tree: ClusterTree, vdot: Array, active: Array | None = None) -> Array:
    """0, or NaN if an embedded row does not hold for these accelerations, or was to be switched off."""
    guard = motion.xp.zeros(1)
    for c in tree.clusters:
        if spare := _spare(motion, c):
            guard = guard + _met(motion, c, spare, vdot)
    return guard + _locked(motion, tree.outer, active)


def _spare(motion: Motion, c: Cluster) -> list[int]:
    """The rows that do not hold by construction: those beyond the number of joints that follow from them."""
    rows = sum(motion.model.constraints[n].rows for n in c.constraints)
    square = {r for block, columns in c.blocks if len(block) == len(columns) for r in block}
    return [r for r in range(rows) if r not in square]


def _met(motion: Motion, c: Cluster, which: Sequence[int], vdot: Array) -> Array:
    xp, (K, k) = motion.xp, local_rows(motion, c)
    error, size = xp.zeros(1), xp.zeros(1)
    for r in which:
        terms = [K[r : r + 1, n : n + 1] * vdot[d : d + 1, :] for n, d in enumerate(c.dofs)]
        left = sum(terms, -k[r : r + 1, :])
        error = error + left * left
        size = sum((x * x for x in terms), size + k[r : r + 1, :] * k[r : r + 1, :])
    return xp.where(error <= MET**2 * size, 0.0, NAN)


def _locked(motion: Motion, outer: Sequence[int], active: Array | None) -> Array:
    guard = motion.xp.zeros(1)
    if active is not None:
        for n in sorted(set(range(len(motion.model.constraints))).difference(outer)):
            off = active[n : n + 1, :] - 1
            guard = guard + motion.xp.where(off * off <= 0, 0.0, NAN)
    return guard
