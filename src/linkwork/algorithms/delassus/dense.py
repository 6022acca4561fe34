"""Delassus matrix by dense linear algebra: the reference implementation.

    Lambda^-1 = J M^-1 J^T = W W^T,   W = J L^-T,   M = L L^T

Any rows, redundant ones included. O(n^3 + n^2 m + n m^2). Where joints lose their inertia to rounding it has more
digits, as `kkt` has (constrained/kkt.py).
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.common.least_inertia import is_lost
from linkwork.algorithms.constrained.kkt import from_last, resolved, tips_first
from linkwork.backends.ops import Array
from linkwork.constraints.rows import jacobian
from linkwork.model import Motion


def dense(motion: Motion) -> Array:
    """J M^-1 J^T, m x m."""
    precise, M = resolved(motion)
    if precise is not motion and is_lost(M):
        raise np.linalg.LinAlgError
    xp, (L, guard) = precise.xp, tips_first(precise, M)
    WT = xp.solve_lower(L, from_last(jacobian(precise).T, xp))
    found = xp.symmetric(WT.T @ WT) + guard
    return found if precise is motion else found.astype(float)
