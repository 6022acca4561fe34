"""Delassus matrix by recursive inverse inertias.

    Omega_i = P_i^T Omega_p P_i + S_i D_i^-1 S_i^T,      Omega_ij = (P_.. P_i)^T Omega_meet (P_.. P_j),
    Lambda^-1_cd = K_c Omega_ij K_d^T      for constraints c, d on links i, j that meet at the last link supporting both

KJR: Kreutz-Delgado, Jain and Rodriguez 1992, as described in sathya2023_pv_lqr, VII-C. O(n + m^2 d): each pair of
constrained links propagates a 6 x 6 matrix along the path between them. Rows on single links.
"""

from __future__ import annotations

from linkwork.algorithms.common.articulated import Articulated, articulated
from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.common.propagators import single_links
from linkwork.backends.ops import Array
from linkwork.model import Motion


def kjr(motion: Motion) -> Array:
    """J M^-1 J^T, m x m."""
    t, xp = motion.model.topology, motion.xp
    # pass 1, tips to base: articulated inertias
    art = articulated(motion)
    ends = single_links(motion, "kjr")

    # pass 2, base to tips: the inverse inertia of each link that supports a constraint
    Omega = {0: xp.zeros(6, 6)}
    for i in sorted({i for link, _ in ends for i in t.supports[link]}):
        Omega[i] = _behind(art, i, Omega[t.parent[i]])

    # pass 3: the inverse inertia between each pair of constrained links, seen by their constraints
    between: dict[tuple[int, int], Array] = {}
    blocks = {}
    for c, (i, KT) in enumerate(ends):
        for d, (j, KTd) in enumerate(ends[c:], c):
            meet = t.common_ancestor(i, j)
            if meet == 0:
                continue
            if (i, j) not in between:
                between[i, j] = _along(art, meet, j, _along(art, meet, i, Omega[meet]).T).T
                between[j, i] = between[i, j].T
            product = KT.T @ (between[i, j] @ KTd)
            blocks[c, d] = xp.symmetric(product) if c == d else product
    return Blocks([c.rows for c in motion.model.constraints], blocks, xp).matrix()


def _behind(art: Articulated, i: int, Omega: Array) -> Array:
    """The inverse inertia of link i, given its parent's."""
    motion, xp = art.motion, art.motion.xp
    Omega = xp.symmetric(motion.X[i] @ (motion.X[i] @ Omega).T)
    for dof in art.dofs[i]:
        half = Omega - (Omega @ dof.V) @ dof.s.T
        Omega = xp.symmetric(half - dof.s @ (dof.V.T @ half) + dof.d_inv * (dof.s @ dof.s.T))
    return Omega


def _along(art: Articulated, start: int, end: int, A: Array) -> Array:
    """Accelerations of link `start` (columns) as link `end` behind it follows them."""
    t = art.motion.model.topology
    for i in t.supports[end][t.depth[start] :]:
        A = art.propagate_motion(i, A)
    return A
