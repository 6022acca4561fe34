"""Forward dynamics with local loops by projection onto the independent velocities, dense.

    (G^T M G) yddot = G^T (tau - c - M g) + (J G)^T lam,    J G yddot = k - J g,      vdot = G yddot + g

chignoli2023_clusters, section II-D: reference implementation for `c_aba`. O(n^3). Constraints that are in no cluster
(J, k) are solved by their Schur complement; the forces of local loops are those that the dependent joints need.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import met, squared
from linkwork.algorithms.common.certificates import balanced, kept, trusted
from linkwork.algorithms.common.embedding import embedding, embeddings
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.algorithms.common.recursion import outer_rows
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import rows_jacobian
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, clusters


def projection(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    xp, tree = motion.xp, clusters(motion.model)
    G, g = embeddings(motion, tree)
    M, bias = crba(motion), rnea(motion, None, fext)

    # independent accelerations, and forces of the constraints that are in no cluster
    factor = xp.factor_spd(xp.symmetric(G.T @ (M @ G)))
    y = factor.solve(G.T @ (tau - bias - M @ g))
    J, k = outer(motion, tree)
    lam = xp.zeros(0)
    if tree.outer:
        JG = J @ G
        W = factor.solve(JG.T)
        lam = xp.factor_spd(xp.symmetric(JG @ W), least_pivots(motion, tree.outer)).solve(k - J @ g - JG @ y)
        y = y + W @ lam
    vdot = G @ y + g
    guard = kept(motion, tree, vdot) + dense_met(motion, J, k, vdot)
    needed = M @ vdot + bias
    forces = all_forces(motion, tree, needed - tau - J.T @ lam, lam)
    guard = guard + trusted(motion, balanced(motion, tree, tau, lambda: needed, forces, vdot, dense=True))
    return vdot + guard[0, 0], forces


def dense_met(motion: Motion, J: Array, k: Array, vdot: Array) -> Array:
    """0, or NaN if J vdot = k does not hold but for rounding."""
    terms = [k, *(J[:, j : j + 1] * vdot[j, 0] for j in range(motion.model.nv))]
    return met(motion, [J @ vdot - k], squared(terms))


def outer(motion: Motion, tree: ClusterTree) -> tuple[Array, Array]:
    """J and k of the constraints that are in no cluster."""
    xp, at_rest = motion.xp, motion.accelerations(None)
    J, k = [xp.zeros(0, motion.model.nv)], [xp.zeros(0)]
    for rows in outer_rows(motion, tree):
        J.append(rows_jacobian(motion, rows.links, rows.joints))
        k.append(rows.k - sum((K @ at_rest[l] for l, K in rows.links.items()), xp.zeros(rows.k.shape[0])))
    return xp.vstack(J), xp.vstack(k)


def all_forces(motion: Motion, tree: ClusterTree, missing: Array, lam: Array) -> Array:
    """Forces of all constraints in the model's order: those known, and K_D^T lam = S^T f - tau."""
    xp, out, constraints = motion.xp, dict[int, Array](), motion.model.constraints
    for n in tree.outer:
        out[n], lam = lam[0 : constraints[n].rows, :], lam[constraints[n].rows :, :]
    for c in tree.clusters:
        left = xp.zeros(0)
        if c.constraints:
            force = [missing[c.dofs[d] : c.dofs[d] + 1, :] for d in c.dependent]
            left = embedding(motion, c).P.T @ xp.vstack([xp.zeros(0), *force])
        for n in c.constraints:
            out[n], left = left[0 : constraints[n].rows, :], left[constraints[n].rows :, :]
    return xp.vstack([xp.zeros(0), *(out[n] for n in sorted(out))])
