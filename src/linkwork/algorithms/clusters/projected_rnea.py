"""Inverse dynamics with local loops by projection: RNEA of the whole tree, then G^T.

    tau_ind = G^T RNEA(q, v, vdot)

chignoli2023_clusters, section II-C: compared with `c_rnea` there. O(n), and O(n^2) where G is a dense matrix.
"""

from __future__ import annotations

from linkwork.algorithms.clusters.c_rnea import spread
from linkwork.algorithms.common.embedding import embeddings
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import clusters


def projected_rnea(
    motion: Motion, vdot: Array | None, fext: Array | None = None, applied: Array | None = None
) -> Array:
    """Joint forces, nv x 1: those of independent joints, and zeros for the dependent ones."""
    tree = clusters(motion.model)
    G, _ = embeddings(motion, tree)
    return spread(motion, tree, G.T @ rnea(motion, vdot, fext, applied))
