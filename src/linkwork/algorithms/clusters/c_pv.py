"""Delassus matrix of contacts with local loops resolved, by the PV recursion over clusters.

    K_p = K_i P^T  through each cluster,      L <- L + e d^-1 e^T  for each independent velocity,     Lambda^-1 = L_0

PV-OSIM (sathya2023_pv_lqr, algorithm 2) on the cluster tree of chignoli2023_clusters, which neither paper has: two
sweeps instead of the three of `c_efpa`, and any rows. O(N l^3 + m^2 d).
"""

from __future__ import annotations

from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.common.certificates import determined
from linkwork.algorithms.common.recursion import hold, outer_rows, recursion
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import clusters


def c_pv(motion: Motion) -> Array:
    """J G (G^T M G)^-1 G^T J^T, m x m over the rows that are in no cluster, in the model's order."""
    r = recursion(motion, clusters(motion.model))
    rows = outer_rows(r.motion, r.tree)
    at_rest = [[motion.xp.zeros(1)] * len(node.pivots) for node in r.nodes]
    matrix = Blocks([x.k.shape[0] for x in rows], hold(r, rows, at_rest).L, motion.xp).matrix()
    return matrix + determined(motion, r.tree)[0, 0]
