"""Delassus matrix from the sparse factorisation of the KKT matrix.

    [[-R, J], [J^T, M]] = U D U^T,      Lambda^-1 + R = -(upper left block of U) D (the same)^T

carpentier2021_proximal_sparse, IV-E. O(n d^2 + m d^2 + m^2 d). Any rows. Departs from the paper: it multiplies the
factors out again, while the block is there before it is factorised, and without R needs no independent rows.
"""

from __future__ import annotations

from linkwork.algorithms.constrained.kkt_factor import kkt_factor
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def kkt_cholesky(motion: Motion, damping: Array | float = 0.0) -> Array:
    """J M^-1 J^T + damping, m x m."""
    rows = constraint_rows(motion)
    undamped = [motion.xp.zeros(r.k.shape[0]) for r in rows]
    return kkt_factor(motion, rows, [R + damping for R in undamped]).delassus
