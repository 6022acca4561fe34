"""What a cluster takes for granted, checked where it is used: NaN instead of numbers where it does not hold.

Which joints of a cluster depend on others is decided once, for a model. In a posture in which its rows say more than
that (their rank is larger than anywhere it was looked for, or loops are not closed so that redundant rows contradict
each other), the accelerations do not meet all of them. And a constraint that is embedded cannot be switched off.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.algorithms.common.embedding import embedding
from linkwork.algorithms.common.iteration import largest
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array, threshold
from linkwork.constraints.local import local_rows
from linkwork.constraints.rows import constraint_rows, jacobian_blocks
from linkwork.model import Motion
from linkwork.structure.clusters import Cluster, ClusterTree
from linkwork.structure.local_loops import never_singular

BALANCED = 1e-8
"""Forces that are missing, relative to those that act, that count as none."""

MET = 1e-6
"""Errors of embedded rows, relative to their terms, that count as none."""

ROUNDING = 1e-12
"""What rounding leaves of gravity in rows that say nothing."""

NAN = float("nan")


def kept(motion: Motion, tree: ClusterTree, vdot: Array, active: Array | None = None) -> Array:
    """0, or NaN if an embedded row does not hold for these accelerations, or was to be switched off."""
    guard = motion.xp.zeros(1)
    for c in tree.clusters:
        if spare := _spare(motion, c):
            guard = guard + _met(motion, c, spare, vdot)
    return guard + _locked(motion, tree.outer, active)


def _spare(motion: Motion, c: Cluster) -> list[int]:
    """The rows that do not hold by construction: of gears, those beyond the number of joints that follow from them."""
    rows = sum(motion.model.constraints[n].rows for n in c.constraints)
    if _linkage(motion, c):
        return list(range(rows))
    square = {r for block, columns in c.blocks if len(block) == len(columns) for r in block}
    return [r for r in range(rows) if r not in square]


def balanced(motion: Motion, tree: ClusterTree, tau: Array, fext: Array | None, vdot: Array, lam: Array) -> Array:
    """1, or 0 if M vdot + c = tau + J^T lam does not hold: near singular postures of linkages digits are lost there.

    Gears have no such postures, and are not looked at.
    """
    xp, t = motion.xp, motion.model.topology
    if not any(_linkage(motion, c) for c in tree.clusters):
        return xp.eye(1)
    needed, start = rnea(motion, vdot, fext), 0
    held = {i: xp.zeros(t.v_slices[i].stop - t.v_slices[i].start) for i in t.links}
    for r in constraint_rows(motion):
        part, start = lam[start : start + r.k.shape[0], :], start + r.k.shape[0]
        for i, J in jacobian_blocks(motion, r.links, r.joints, r.relative).items():
            held[i] = held[i] + J.T @ part
    forces = xp.vstack([xp.zeros(0), *held.values()])
    left = needed - tau - forces
    size = needed.T @ needed + tau.T @ tau + forces.T @ forces
    return xp.where(left.T @ left <= threshold(xp, BALANCED) ** 2 * size, 1.0, 0.0)


def trusted(motion: Motion, flag: Array) -> Array:
    """0, or NaN where a flag is 0."""
    return motion.xp.where(flag > 0, 0.0, NAN)


def _linkage(motion: Motion, c: Cluster) -> bool:
    return not all(never_singular(motion.model.constraints[n]) for n in c.constraints)


def determined(motion: Motion, tree: ClusterTree) -> Array:
    """0, or NaN if the dependent joints of a cluster do not follow from its rows: for results that have no forces."""
    guard = motion.xp.zeros(1)
    for c in tree.clusters:
        P = embedding(motion, c).P
        for d in range(P.shape[0]):
            guard = guard + motion.xp.where(P[d : d + 1, :] @ P[d : d + 1, :].T >= 0, 0.0, NAN)
    return guard


def unmet(motion: Motion, tree: ClusterTree, vdot: Array) -> tuple[Array, Array]:
    """The largest error of an embedded row that does not hold by construction, and the size of their terms."""
    xp, worst, squares = motion.xp, motion.xp.zeros(0), motion.xp.zeros(1)
    for c in tree.clusters:
        if spare := _spare(motion, c):
            K, k = local_rows(motion, c.bodies, c.constraints)
            terms = [-k, *(K[:, n : n + 1] * vdot[d, 0] for n, d in enumerate(c.dofs))]
            left = sum(terms[1:], terms[0])
            worst = xp.vstack([worst, *(left[r : r + 1, :] for r in spare)])
            squares = sum((x.T @ x for x in terms), squares)
    return largest(xp, worst), xp.sqrt(squares + motion.a0.T @ motion.a0)


def _met(motion: Motion, c: Cluster, which: Sequence[int], vdot: Array) -> Array:
    """0, or NaN if some rows do not hold, compared with the terms of all of the cluster's."""
    xp, (K, k) = motion.xp, local_rows(motion, c.bodies, c.constraints)
    error, size = xp.zeros(1), xp.zeros(1)
    for r in range(k.shape[0]):
        terms = [K[r : r + 1, n : n + 1] * vdot[d : d + 1, :] for n, d in enumerate(c.dofs)]
        size = sum((x * x for x in terms), size + k[r : r + 1, :] * k[r : r + 1, :])
        if r in which:
            left = sum(terms, -k[r : r + 1, :])
            error = error + left * left
    bound = threshold(xp, MET) ** 2 * size + threshold(xp, ROUNDING) ** 2 * (motion.a0.T @ motion.a0)
    return xp.where(error <= bound, 0.0, NAN)


def _locked(motion: Motion, outer: Sequence[int], active: Array | None) -> Array:
    guard = motion.xp.zeros(1)
    if active is not None:
        for n in sorted(set(range(len(motion.model.constraints))).difference(outer)):
            off = active[n : n + 1, :] - 1
            guard = guard + motion.xp.where(off * off <= 0, 0.0, NAN)
    return guard
