"""Delassus matrix of contacts with local loops resolved, by projection onto the independent velocities.

    Lambda^-1 = (J G) (G^T M G)^-1 (J G)^T = W^T D^-1 W,    G^T M G = L^T D L,  W = L^-T (J G)^T

chignoli2023_clusters, sections II-E and IX: the reference for `c_efpa`, with a sparse factor of the projected mass
matrix, whose pattern is the cluster tree's. Any rows. O(n d^2 + m d^2 + m^2 d).
"""

from __future__ import annotations

from linkwork.algorithms.clusters.projection import outer
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.backends.ops import Array
from linkwork.constraints.clusters import ClusterTree, clusters
from linkwork.model import Motion


def projected_efpa(motion: Motion) -> Array:
    """J G (G^T M G)^-1 G^T J^T, m x m over the rows that are in no cluster, in the model's order."""
    xp, tree = motion.xp, clusters(motion.model)
    G, _ = tree.maps(motion)
    J, _ = outer(motion, tree)
    factor = LTL(xp.symmetric(G.T @ (crba(motion) @ G)), freedom_parents(tree), xp)
    W = factor.solve_LT((J @ G).T)
    return xp.symmetric(W.T @ factor.solve_D(W))


def freedom_parents(tree: ClusterTree) -> list[int]:
    """For each independent velocity the one before it on the way to the base, or -1: the cluster tree's pattern."""
    place = {int(v): n for n, v in enumerate(tree.velocities)}
    chains: dict[int, list[int]] = {0: []}
    parent = [-1] * len(place)
    for c in tree.clusters:
        chain = list(chains[c.output])
        for n in sorted(place[c.dofs[k]] for k in c.independent):
            parent[n] = chain[-1] if chain else -1
            chain.append(n)
        chains |= dict.fromkeys(c.bodies, chain)
    return parent
