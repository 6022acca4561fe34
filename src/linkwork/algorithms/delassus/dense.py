"""Delassus matrix by dense linear algebra: the reference implementation.

    Lambda^-1 = J M^-1 J^T = W W^T,   W = J L^-T,   M = L L^T

Any rows, redundant ones included. O(n^3 + n^2 m + n m^2).
"""

from __future__ import annotations

from linkwork.algorithms.tree.crba import crba
from linkwork.backends.ops import Array
from linkwork.constraints.rows import jacobian
from linkwork.model import Motion


def dense(motion: Motion) -> Array:
    """J M^-1 J^T, m x m."""
    xp = motion.xp
    WT = xp.solve_lower(xp.cholesky(crba(motion)), jacobian(motion).T)
    return xp.symmetric(WT.T @ WT)
