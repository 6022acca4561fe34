"""The inverse of the mass matrix, from its branch-sparse factorisation.

    M = L^T D L,    W = L^-1,    M^-1 = W D^-1 W^T

W has the pattern of L, so an entry of M^-1 is a sum over the degrees of freedom that support both: for two limbs of a
robot these are the six of its base. Featherstone 2005 (see ltl.py). O(n d^2) for W, O(n^2 b) for the product, b the
mean number of common supports.
"""

from __future__ import annotations

from linkwork.algorithms.common.least_inertia import holding
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.backends.ops import Array
from linkwork.model import Motion


def inverse_mass_matrix(motion: Motion) -> Array:
    """M^-1, nv x nv."""
    xp, parent = motion.xp, motion.model.topology.dof_parent
    n, factor = len(parent), LTL(crba(motion), parent, motion.xp, held=holding(motion))

    # base to tips: rows of W = L^-1, w_i = e_i - sum_j L_ij w_j over the supports j of i
    W: list[dict[int, Array]] = []
    for i in range(n):
        row: dict[int, Array] = {i: 1.0}
        for j, l in factor.L[i].items():
            for k, w in W[j].items():
                row[k] = row[k] - l * w if k in row else -l * w
        W.append(row)

    # entries: sum_k w_ik w_jk / d_k over the common supports k of i and j
    WD = [{k: w * factor.pivots[k] for k, w in row.items()} for row in W]
    zero = 0.0 * factor.pivots[0] if n else 0.0
    full: list[list[Array]] = [[zero] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            full[i][j] = full[j][i] = sum((WD[i][k] * W[j][k] for k in W[j] if k in WD[i]), zero)
    return xp.matrix(full) if n else xp.zeros(0, 0)
