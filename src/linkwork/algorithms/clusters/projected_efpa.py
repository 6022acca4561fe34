"""Delassus matrix of contacts, local loops resolved by projection onto independent velocities.

    Lambda^-1 = (J G) (G^T M G)^-1 (J G)^T = W^T D^-1 W,    G^T M G = L^T D L,  W = L^-T (J G)^T

chignoli2023_clusters, sections II-E and IX: compared with `c_efpa` there, with a sparse factor of the projected mass
matrix, whose pattern is the cluster tree's. Any rows. O(n d^2 + m d^2 + m^2 d). `projected_dense` has a dense factor
instead, from the base on: O(n^3 + m n^2).
"""

from __future__ import annotations

from linkwork.algorithms.clusters.projection import outer
from linkwork.algorithms.common.certificates import determined
from linkwork.algorithms.common.embedding import embeddings
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, clusters


def projected_efpa(motion: Motion) -> Array:
    """J G (G^T M G)^-1 G^T J^T, m x m over the rows that are in no cluster, in the model's order."""
    xp, tree = motion.xp, clusters(motion.model)
    order, parent = freedoms(tree)
    G, _ = embeddings(motion, tree)
    G = xp.hstack([G[:, 0:0], *(G[:, k : k + 1] for k in order)])
    J, _ = outer(motion, tree)
    factor = LTL(xp.symmetric(G.T @ (crba(motion) @ G)), parent, xp)
    W = factor.solve_LT((J @ G).T)
    return xp.symmetric(W.T @ factor.solve_D(W)) + determined(motion, tree)[0, 0]


def projected_dense(motion: Motion) -> Array:
    """The same matrix by a dense factor of G^T M G."""
    xp, tree = motion.xp, clusters(motion.model)
    G, _ = embeddings(motion, tree)
    JG = outer(motion, tree)[0] @ G
    matrix = xp.symmetric(JG @ xp.factor_spd(xp.symmetric(G.T @ (crba(motion) @ G))).solve(JG.T))
    return matrix + determined(motion, tree)[0, 0]


def freedoms(tree: ClusterTree) -> tuple[list[int], list[int]]:
    """The columns of G from the base to the tips, and the parent of each in the tree of columns, or -1."""
    place = {int(v): n for n, v in enumerate(tree.velocities)}
    last, order, parent = {0: -1}, list[int](), list[int]()
    for c in tree.clusters:
        before = last[c.output]
        for k in c.independent:
            parent.append(before)
            before = len(order)
            order.append(place[c.dofs[k]])
        last |= dict.fromkeys(c.bodies, before)
    return order, parent
