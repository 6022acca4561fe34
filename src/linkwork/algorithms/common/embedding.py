"""The joint accelerations of a cluster as functions of its independent ones.

    K vdot = k  over the cluster's joints,      vdot = G yddot + g,      G = [1; -K_D^-1 K_I],   g = [0; K_D^-1 k]

with K cut into columns of independent (I) and dependent (D) joints (structure/clusters.py says which are which).
chignoli2023_clusters, sections II-B and IV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwork.backends.ops import SINGULAR, Array, Ops, threshold
from linkwork.constraints.local import local_rows
from linkwork.model import Motion
from linkwork.structure.clusters import Cluster, ClusterTree


@dataclass(frozen=True)
class Embedding:
    """vdot = G yddot + g of a cluster's joints, and P = K_D^+: lam = P^T (forces on dependent joints)."""

    G: Array
    g: Array
    P: Array


def embedding(motion: Motion, cluster: Cluster) -> Embedding:
    """G, g and P of a cluster in this state; NaN where dependent joints are not determined."""
    xp, n = motion.xp, len(cluster.independent)
    if not cluster.constraints:
        return Embedding(xp.eye(n), xp.zeros(n), xp.zeros(0, 0))
    K, k = local_rows(motion, cluster.bodies, cluster.constraints)
    pick = [K[:, j : j + 1] for j in range(len(cluster.dofs))]
    G = {j: xp.eye(n)[i : i + 1, :] for i, j in enumerate(cluster.independent)}
    g = {j: xp.zeros(1) for j in cluster.independent}
    P = [xp.zeros(1, K.shape[0])] * len(cluster.dependent)
    free = xp.hstack([xp.zeros(K.shape[0], 0), *(pick[j] for j in cluster.independent)])
    for rows, columns in cluster.blocks:
        KD = xp.hstack([pick[cluster.dependent[d]] for d in columns])
        inverse = left_inverse(some_rows(KD, rows, xp), xp, cluster.size)
        GD, gD = -(inverse @ some_rows(free, rows, xp)), inverse @ some_rows(k, rows, xp)
        place = np.eye(K.shape[0])[list(rows)]
        for m, d in enumerate(columns):
            j = cluster.dependent[d]
            G[j], g[j] = GD[m : m + 1, :], gD[m : m + 1, :]
            P[d] = inverse[m : m + 1, :] @ xp.constant(place)
    order = range(len(cluster.dofs))
    return Embedding(
        xp.vstack([G[j] for j in order]), xp.vstack([g[j] for j in order]), xp.vstack([xp.zeros(0, K.shape[0]), *P])
    )


def embeddings(motion: Motion, tree: ClusterTree) -> tuple[Array, Array]:
    """G (nv x ny) and g (nv x 1) of all joints: v = G ydot, vdot = G yddot + g."""
    xp, nv = motion.xp, tree.model.nv
    column = {int(v): n for n, v in enumerate(tree.velocities)}
    G, g = [xp.zeros(1, len(column))] * nv, [xp.zeros(1)] * nv
    for c in tree.clusters:
        e = embedding(motion, c)
        spread = np.zeros((len(c.independent), len(column)))
        for n, k in enumerate(c.independent):
            spread[n, column[c.dofs[k]]] = 1.0
        wide = e.G @ xp.constant(spread)
        for n, v in enumerate(c.dofs):
            G[v], g[v] = wide[n : n + 1, :], e.g[n : n + 1, :]
    return xp.vstack([xp.zeros(0, len(column)), *G]), xp.vstack([xp.zeros(0), *g])


def some_rows(A: Array, rows: Sequence[int], xp: Ops) -> Array:
    """Some rows of a matrix."""
    return xp.vstack([A[r : r + 1, :] for r in rows])


def left_inverse(A: Array, xp: Ops, size: float) -> Array:
    """P with P A = 1 for independent columns: by cofactors up to 3 x 3, else by least squares.

    Cofactors need no pivots. NaN where columns depend on each other but for rounding, or are rounding of entries that
    can be as large as `size`.
    """
    n, least = A.shape[1], threshold(xp, SINGULAR)
    if A.shape[0] != n or n > 3:
        return xp.factor_spd(xp.symmetric(A.T @ A), xp.constant([(least * size) ** 2] * n)).solve(A.T)
    if n == 1:
        return 1 / xp.where((least * size) ** 2 >= A * A, float("nan"), A)
    if n == 2:
        adjugate = xp.matrix([[A[1, 1], -A[0, 1]], [-A[1, 0], A[0, 0]]])
    else:
        columns = [A[:, j : j + 1] for j in range(3)]
        adjugate = xp.vstack([xp.cross(columns[(j + 1) % 3], columns[(j + 2) % 3]).T for j in range(3)])
    determinant, lengths = (adjugate[0:1, :] @ A[:, 0:1])[0, 0], 1.0
    for j in range(n):
        square = (A[:, j : j + 1].T @ A[:, j : j + 1])[0, 0]
        lengths = lengths * xp.where(square > (least * size) ** 2, square, float("nan"))
    return adjugate / xp.where(determinant * determinant > least**2 * lengths, determinant, float("nan"))
