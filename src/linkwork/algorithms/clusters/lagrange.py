"""Forward dynamics with loops by Lagrange multipliers: all joints and all rows in one linear system.

    [ M  J^T ] [ vdot ]   [ tau - c ]
    [ J   0  ] [ -lam ] = [ k       ]       by the sparse factor of M, then L = J M^-1 J^T, dense

chignoli2023_clusters, section II-D, after Featherstone 2010: reference implementation for `c_aba`.
O(n d^2 + m d^2 + m^2 d + m^3). Rows of local loops that are zero (a planar linkage out of its plane) are left out; the
others must be independent.
"""

from __future__ import annotations

from linkwork.algorithms.clusters.projection import dense_met, outer
from linkwork.algorithms.common.certificates import kept
from linkwork.algorithms.common.embedding import some_rows
from linkwork.algorithms.common.least_inertia import holding
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.local import supported_rows
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, clusters


def lagrange(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    xp, tree = motion.xp, clusters(motion.model)
    factor = LTL(crba(motion), motion.model.topology.dof_parent, xp, held=holding(motion))
    free = factor.solve(tau - rnea(motion, None, fext))
    if not motion.model.constraints:
        return free, xp.zeros(0)

    # Y = L^-T J^T has the rows' sparsity, and D^-1 lies between it and its transpose
    J, k, places = every_row(motion, tree)
    Y = factor.solve_LT(J.T)
    L = xp.symmetric(Y.T @ factor.solve_D(Y))
    least = some_rows(least_pivots(motion), places, xp) if places else xp.zeros(0)
    lam = xp.factor_spd(L, least).solve(k - J @ free)
    vdot = free + factor.solve_L(factor.solve_D(Y @ lam))
    rows = {p: lam[n : n + 1, :] for n, p in enumerate(places)}
    guard = kept(motion, tree, vdot, dense=True) + dense_met(motion, J, k, vdot)
    return vdot + guard[0, 0], xp.vstack([rows.get(p, xp.zeros(1)) for p in range(motion.model.rows)])


def every_row(motion: Motion, tree: ClusterTree) -> tuple[Array, Array, list[int]]:
    """J, k of all rows that are not zero, and their places among the rows of the model."""
    xp, nv, constraints = motion.xp, motion.model.nv, motion.model.constraints
    start = [sum(c.rows for c in constraints[:n]) for n in range(len(constraints))]
    J, k = outer(motion, tree)
    Js, ks = [J], [k]
    places = [start[n] + r for n in tree.outer for r in range(constraints[n].rows)]
    for c in tree.clusters:
        if c.constraints:
            dofs, K, right = supported_rows(motion, c.bodies, c.constraints)
            local = [start[n] + r for n in c.constraints for r in range(constraints[n].rows)]
            for r in sorted(r for rows, _ in c.blocks for r in rows):
                columns = {v: K[r : r + 1, j : j + 1] for j, v in enumerate(dofs)}
                Js.append(xp.hstack([columns.get(v, xp.zeros(1)) for v in range(nv)]))
                ks.append(right[r : r + 1, :])
                places.append(local[r])
    return xp.vstack(Js), xp.vstack(ks), places
