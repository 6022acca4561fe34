"""Delassus matrix by the PV recursion: rows propagated to the base, coupled joint by joint.

    K_p = K_i P_i^T,      L <- L + K_i s d^-1 s^T K_i^T,      Lambda^-1 = L_0

PV-OSIM: sathya2023_pv_lqr, algorithm 2 (VII-A); sathya2023_pv_osimr, algorithm 1. O(n + m^2 d), in two sweeps: no
inverse inertia is propagated from link to link. Any rows, redundant ones included. Blocks are stored by constraint;
the joints of a floating base come last, one degree of freedom at a time, which is line 10 of algorithm 2.
"""

from __future__ import annotations

from linkwork.algorithms.common.articulated import articulated
from linkwork.algorithms.common.dual import to_base
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def pv(motion: Motion) -> Array:
    """J M^-1 J^T, m x m."""
    art = articulated(motion)
    at_rest = [[motion.xp.zeros(1)] * len(dofs) for dofs in art.dofs]
    rows = constraint_rows(motion)
    return to_base(art, rows, at_rest).matrix(list(range(len(rows))))
