"""Checks of what a cluster assumes, at run time: NaN instead of numbers where it does not hold.

Which joints of a cluster depend on others is decided once, for a model. In a posture in which its rows have a larger
rank than in all that were sampled, or in which loops are open and redundant rows in conflict, the accelerations do not
meet all of them. And a constraint that is embedded cannot be switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwork.algorithms.common.activation import accelerates
from linkwork.algorithms.common.embedding import embedding
from linkwork.algorithms.common.iteration import largest
from linkwork.backends.ops import Array, threshold
from linkwork.constraints.local import local_rows, supported_rows
from linkwork.constraints.rows import constraint_rows, evaluated
from linkwork.model import Motion
from linkwork.structure.clusters import Cluster, ClusterTree
from linkwork.structure.local_loops import never_singular

MOVED = 3e-8
"""Accelerations that missing forces would cause, relative to all, that count as none. Each joint counts with its own
inertia; by M^-1 they are up to ten times as large, as forces up to thirty times, and 1e-6 is promised."""

DOUBTED = 5e-9
"""The same in float64 for methods that iterate, which then only say that they have not converged: by M^-1 it was 130
times as much once."""

MET = 1e-6
"""Errors of embedded rows, relative to their terms, that count as none."""

FOLLOWING = 1e-9
"""Entries of K G, relative to their terms, that count as zero: rounding leaves 1e-11, with the least pivots allowed."""

ROUNDING = 1e-12
"""Rounding errors of gravity, or of levers, in rows that are zero."""

NAN = float("nan")


def kept(motion: Motion, tree: ClusterTree, vdot: Array, active: Array | None = None, dense: bool = False) -> Array:
    """0, or NaN if an embedded row does not hold for these accelerations, or is switched off.

    `dense` methods have J of all constraints.
    """
    guard = motion.xp.zeros(1)
    for c in tree.clusters:
        if spare := _spare(motion, c):
            guard = guard + _met(motion, c, spare, vdot, dense)
    return guard + _locked(motion, tree.outer, active)


def _spare(motion: Motion, c: Cluster) -> list[int]:
    """The rows that do not hold by construction: of gears, those beyond the number of dependent joints."""
    rows = sum(motion.model.constraints[n].rows for n in c.constraints)
    if _linkage(motion, c):
        return list(range(rows))
    square = {r for block, columns in c.blocks if len(block) == len(columns) for r in block}
    return [r for r in range(rows) if r not in square]


def balanced(
    motion: Motion,
    tree: ClusterTree,
    tau: Array,
    needed: Callable[[], Array],
    lam: Array,
    vdot: Array,
    dense: bool = False,
    most: float = MOVED,
) -> Array:
    """1, or 0 if the equation of motion does not hold; `needed` gives M vdot + c.

    Digits are lost near singular postures of linkages, and of light links that a heavy one has to follow. Gears have no
    such postures, and are not checked. `dense` methods have J of all constraints, others of those in clusters that are
    relative.
    """
    if not any(_linkage(motion, c) for c in tree.clusters):
        return motion.xp.eye(1)
    inside = {n for c in tree.clusters for n in c.constraints if evaluated(motion, n).relative}
    known = range(len(motion.model.constraints)) if dense else inside
    return accelerates(motion, tau, needed(), vdot, lam, most, known)


def trusted(motion: Motion, flag: Array) -> Array:
    """0, or NaN where a flag is 0."""
    return motion.xp.where(flag > 0, 0.0, NAN)


def _linkage(motion: Motion, c: Cluster) -> bool:
    return not all(never_singular(motion.model.constraints[n]) for n in c.constraints)


def determined(motion: Motion, tree: ClusterTree) -> Array:
    """0, or NaN if vdot = G yddot is not all that a cluster's rows allow.

    For results without forces. Dependent joints must follow from the rows (P has numbers), the rows must not restrict
    ydot (K G = 0), nor depend on the motion of a body that carries all of their links, as those of two points that are
    apart do. Zeros are looked for along one direction in general position, which other matrices map to zero by chance
    only: one product instead of one for each column.
    """
    xp, guard = motion.xp, motion.xp.zeros(1)
    for c in tree.clusters:
        e = embedding(motion, c)
        for rows, columns in c.blocks:
            # a factor without numbers leaves none in any column; cofactors have zeros, which stay
            some = rows if len(rows) == len(columns) <= 3 else rows[:1]
            P = xp.vstack([e.P[d : d + 1, r : r + 1] for d in columns for r in some])
            guard = guard + xp.where(P.T @ P >= 0, 0.0, NAN)
        if c.independent and (spare := _spare(motion, c)):
            every = local_rows(motion, c.bodies, c.constraints)[0]
            K = xp.vstack([every[r : r + 1, :] for r in spare])
            lost, w = threshold(xp, ROUNDING) * c.size, _direction(len(c.independent))
            squares = (e.G * e.G) @ xp.constant(w * w)
            size = (threshold(xp, FOLLOWING) ** 2 * (K * K) + xp.constant(np.full(K.shape, lost**2))) @ squares
            guard = guard + _zero(motion, K @ (e.G @ xp.constant(w)), size)
        guard = guard + _relative(motion, c)
    return guard


def _relative(motion: Motion, c: Cluster) -> Array:
    """0, or NaN if the forces K^T of a cluster's rows have a sum at the last body that carries them."""
    xp, t, guard = motion.xp, motion.model.topology, motion.xp.zeros(1)
    for rows in (evaluated(motion, n) for n in c.constraints):
        root, parent = t.common_ancestor(*rows.links) if rows.links else 0, t.parent
        if rows.relative or not any(motion.model.links[i].joint.nv for i in t.supports[root]):
            continue
        w = _direction(rows.drift.shape[0])
        force = {l: K.T @ xp.constant(w) for l, K in rows.links.items()}
        for i in (i for i in reversed(c.bodies) if i in force and i != root):
            force[parent[i]] = motion.X[i].T @ force[i] + (force[parent[i]] if parent[i] in force else xp.zeros(6))
        arm = threshold(xp, FOLLOWING) * sum(motion.model.reach[l] for l in (c.output, *c.bodies))
        turning = (K[:, 0:3].T for K in rows.links.values())
        squares = sum(((K * K) @ xp.constant(w * w) for K in turning), xp.zeros(3))
        guard = guard + _zero(motion, force[root][3:6, :], xp.constant(np.full((3, 3), arm**2)) @ squares)
    return guard


def _direction(n: int) -> np.ndarray:
    """A direction in general position, n x 1, with entries of about 1."""
    return np.random.default_rng(n).uniform(0.5, 1.5, (n, 1))


def _zero(motion: Motion, x: Array, squares: Array) -> Array:
    """0, or NaN if the square of an entry of x is above its bound."""
    return motion.xp.where(squares >= x * x, 0.0, NAN).T @ motion.xp.constant(np.ones((x.shape[0], 1)))


def unmet(motion: Motion, tree: ClusterTree, vdot: Array) -> tuple[Array, Array]:
    """The largest error of embedded rows that do not hold by construction, and the size of their terms."""
    xp, worst, size = motion.xp, motion.xp.zeros(0), motion.xp.zeros(1)
    for c in tree.clusters:
        if spare := _spare(motion, c):
            left, squares = _errors(motion, c, vdot)
            worst = xp.vstack([worst, *(left[r : r + 1, :] for r in spare)])
            size = sum((squares[r : r + 1, :] for r in range(squares.shape[0])), size)
    return largest(xp, worst), xp.sqrt(size + motion.a0.T @ motion.a0)


def _met(motion: Motion, c: Cluster, which: Sequence[int], vdot: Array, dense: bool) -> Array:
    """0, or NaN if some rows do not hold, compared with the terms of all of the cluster's."""
    xp, (left, squares) = motion.xp, _errors(motion, c, vdot, dense)
    size = sum((squares[r : r + 1, :] for r in range(squares.shape[0])), xp.zeros(1))
    error = sum((left[r : r + 1, :] * left[r : r + 1, :] for r in which), xp.zeros(1))
    bound = threshold(xp, MET) ** 2 * size + threshold(xp, ROUNDING) ** 2 * (motion.a0.T @ motion.a0)
    return xp.where(error <= bound, 0.0, NAN)


def _errors(motion: Motion, c: Cluster, vdot: Array, dense: bool = False) -> tuple[Array, Array]:
    """The errors of a cluster's rows, m x 1, and the sums of the squares of their terms but gravity.

    Relative rows are over the cluster's joints. Others, because two points are apart, move with all that carries them:
    over the joints these have a column for each of the model's, so they are taken over links, unless J is there.
    Gravity is in the acceleration of every link there, and would hide an error that is large beside what moves.
    """
    t, left, squares = motion.model.topology, list[Array](), list[Array]()
    if dense or all(evaluated(motion, n).relative for n in c.constraints):
        dofs, K, k = supported_rows(motion, c.bodies, c.constraints)
        each = [[-k, *(K[:, n : n + 1] * vdot[d, 0] for n, d in enumerate(dofs))]]
    else:
        a, each = motion.accelerations(vdot), []
        for r in constraint_rows(motion, c.constraints):
            weights = {l: K[:, 0:3] @ motion.gravity[l] for l, K in r.links.items()}
            terms = [K @ a[l] + weights[l] for l, K in r.links.items()]
            terms += [G @ vdot[t.v_slices[i], :] for i, G in r.joints.items()]
            each.append([-sum(weights.values(), r.k), *terms])
    for terms in each:
        left.append(sum(terms[1:], terms[0]))
        squares.append(sum((x * x for x in terms[1:]), terms[0] * terms[0]))
    return motion.xp.vstack(left), motion.xp.vstack(squares)


def _locked(motion: Motion, outer: Sequence[int], active: Array | None) -> Array:
    guard = motion.xp.zeros(1)
    if active is not None:
        for n in sorted(set(range(len(motion.model.constraints))).difference(outer)):
            off = active[n : n + 1, :] - 1
            guard = guard + motion.xp.where(off * off <= 0, 0.0, NAN)
    return guard
