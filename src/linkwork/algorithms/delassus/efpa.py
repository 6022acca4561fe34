"""Delassus matrix by extended force propagators.

    K_p^T = P_i K_i^T  to the base,      (Omega_i K_i^T) = P_i^T (Omega_p K_p^T) + S_i D_i^-1 S_i^T K_i^T  and back,
    Lambda^-1_cd = K_c (Omega K_d^T)  at the last link that supports both constraints

EFPA: Wensing, Featherstone and Orin 2012, as sathya2023_pv_osimr has it (algorithm 2). O(n + m d + m^2): the coupling
of two constraints costs the same however long their common path is. Rows on single links.
"""

from __future__ import annotations

from linkwork.algorithms.common.articulated import Articulated, articulated
from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.common.propagators import Propagated, propagated, single_links
from linkwork.backends.ops import Array
from linkwork.model import Motion


def efpa(motion: Motion) -> Array:
    """J M^-1 J^T, m x m."""
    # passes 1 and 2, tips to base: articulated inertias, force propagators
    art = articulated(motion)
    forces = [propagated(art, link, KT) for link, KT in single_links(motion, "efpa")]

    # pass 3, base to tips: accelerations of each link that supports a constraint under its unit forces
    accelerations = [_accelerations(art, F) for F in forces]

    # pass 4: each pair of constraints is coupled at the last link that supports both
    blocks = {}
    for c, F in enumerate(forces):
        for d in range(c, len(forces)):
            meet = motion.model.topology.common_ancestor(F.link, forces[d].link)
            if meet:
                product = F.KT[meet].T @ accelerations[d][meet]
                blocks[c, d] = motion.xp.symmetric(product) if c == d else product
    return Blocks([c.rows for c in motion.model.constraints], blocks, motion.xp).matrix()


def _accelerations(art: Articulated, F: Propagated) -> dict[int, Array]:
    """Omega_i K_i^T for each link i that supports the constraint."""
    motion, out = art.motion, {}
    A = motion.xp.zeros(6, F.KT[F.link].shape[1])
    for i in motion.model.topology.supports[F.link]:
        A = motion.X[i] @ A
        for dof, eT in zip(art.dofs[i], F.eT[i], strict=True):
            A = A + dof.s @ (dof.d_inv * eT - dof.V.T @ A)
        out[i] = A
    return out
