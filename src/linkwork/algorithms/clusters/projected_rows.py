"""Rows over joints projected onto the independent joints of local loops, cluster by cluster.

    Y_ind = G^T Y        v = G ydot of each cluster (algorithms/common/embedding.py)

for any columns Y over joints that are joint forces or momenta: regressors, say. chignoli2023_clusters, section II-C.
"""

from __future__ import annotations

from linkwork.algorithms.common.embedding import embedding
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import clusters


def projected_rows(motion: Motion, Y: Array) -> Array:
    """G^T Y in the rows of independent joints, zeros in those of the dependent ones; nv x k, as Y."""
    xp, rows = motion.xp, [Y[k : k + 1, :] for k in range(motion.model.nv)]
    for c in clusters(motion.model).clusters:
        if not c.constraints:
            continue
        projected = embedding(motion, c).G.T @ xp.vstack([rows[k] for k in c.dofs])
        for n in c.dependent:
            rows[c.dofs[n]] = xp.zeros(1, Y.shape[1])
        for m, n in enumerate(c.independent):
            rows[c.dofs[n]] = projected[m : m + 1, :]
    return xp.vstack([Y[0:0, :], *rows])
