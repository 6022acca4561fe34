"""Which constraints hold, and how firmly: one weight per constraint, spread over its rows."""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows
from linkwork.model import Motion


def per_constraint(motion: Motion, rows: list[ConstraintRows], active: Array | None) -> list[Array]:
    """The scalar weight of each constraint: 1, or the entry of `active` (0 removes it exactly)."""
    return [1.0 if active is None else active[c, 0] for c in range(len(rows))]


def weigh(
    motion: Motion, rows: list[ConstraintRows], active: Array | None, which: Sequence[int] | None = None
) -> tuple[list[ConstraintRows], Array]:
    """Rows times the square roots of their constraints' weights, which scales penalties by the weights themselves.

    The rows are those of all constraints, or of `which`. The roots come as a column over the rows of all: a multiplier
    times its root is the force.
    """
    xp, constraints = motion.xp, motion.model.constraints
    out, by_constraint = [], {n: xp.constant([1.0] * c.rows) for n, c in enumerate(constraints)}
    for n, r in zip(range(len(rows)) if which is None else which, rows, strict=True):
        root = 1.0 if active is None else xp.sqrt(active[n, 0])
        by_constraint[n] = by_constraint[n] * root
        links, joints = {i: root * K for i, K in r.links.items()}, {i: root * G for i, G in r.joints.items()}
        out.append(ConstraintRows(links, joints, root * r.k, r.relative))
    return out, xp.vstack([xp.zeros(0), *by_constraint.values()])


def embedded(motion: Motion, outer: Sequence[int], active: Array | None) -> Array:
    """0, or NaN if a weight of a constraint that is not in `outer` is not 1: what is embedded cannot be switched."""
    guard = motion.xp.zeros(1)
    if active is not None:
        for n in sorted(set(range(len(motion.model.constraints))).difference(outer)):
            off = active[n : n + 1, :] - 1
            guard = guard + motion.xp.where(off * off <= 0, 0.0, float("nan"))
    return guard


def part(motion: Motion, n: int) -> slice:
    """The rows of constraint n in a column over all."""
    constraints = motion.model.constraints
    start = sum(c.rows for c in constraints[:n])
    return slice(start, start + constraints[n].rows)


def largest(motion: Motion, errors: list[Array]) -> Array:
    """The largest absolute entry of some columns, 1 x 1."""
    xp = motion.xp
    worst = xp.zeros(1)
    for e in errors:
        for i in range(e.shape[0]):
            square = e[i : i + 1, :] * e[i : i + 1, :]
            # written so that NaN wins: a solution that is none must not look converged
            worst = xp.where(square <= worst, worst, square)
    return xp.sqrt(worst)


def settled(motion: Motion, errors: list[Array], vdot: Array, before: Array) -> Array:
    """The largest row error, or the largest change of an acceleration if that is smaller: rows in conflict keep errors.

    sathya2025_lcaba_proxbbo, algorithm 3, line 9.
    """
    left, change = largest(motion, errors), largest(motion, [vdot - before])
    return motion.xp.where(change < left, change, left)


def over_links(motion: Motion, r: ConstraintRows) -> ConstraintRows:
    """Rows over joints written over links: vdot_i = S^+ (a_i - X a_p - c_i)."""
    links, k = dict(r.links), r.k
    for i, G in r.joints.items():
        S, p = motion.S[i], motion.model.topology.parent[i]
        K = motion.xp.factor_spd(S.T @ S).solve(S.T)
        K = G @ K
        at_parent = -(motion.X[i].T @ K.T).T
        k = k + K @ motion.c[i] - (at_parent @ motion.a0 if p == 0 else 0 * k)
        for l, Kl in ((i, K), (p, at_parent)):
            if l:
                links[l] = links[l] + Kl if l in links else Kl
    return ConstraintRows(links, {}, k)
