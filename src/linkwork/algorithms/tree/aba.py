"""Forward dynamics: the articulated body algorithm.

    vdot = M(q)^-1 (tau - c(q, v) + sum J_l^T fext_l),   without forming M

Featherstone, Rigid Body Dynamics Algorithms, table 7.1, on classical accelerations (see model/motion.py). O(n).
A joint with several degrees of freedom is eliminated one at a time, the last first (see common/articulated.py).
"""

from __future__ import annotations

from linkwork.algorithms.common.articulated import Dof, degree_of_freedom
from linkwork.backends.ops import Array
from linkwork.model import Motion


def aba(motion: Motion, tau: Array, fext: Array | None = None) -> Array:
    """Joint accelerations (nv x 1) for joint forces `tau` (nv x 1) and link forces `fext` (6 n x 1)."""
    t, X, c = motion.model.topology, motion.X, motion.c

    # pass 1, base to tips: velocities, and the forces that they need
    IA, pA = [I.articulated() for I in motion.I], motion.bias(fext)

    # pass 2, tips to base: articulated inertias and bias forces;  U = IA s,  d = s^T U + armature,  u = tau - s^T pA
    eliminated: dict[int, list[tuple[Dof, Array]]] = {}
    for i in reversed(t.links):
        Ia, pa, eliminated[i] = IA[i], pA[i], []
        for k in reversed(range(motion.model.links[i].joint.nv)):
            dof, row = degree_of_freedom(motion, i, k, Ia), t.v_slices[i].start + k
            u = tau[row : row + 1, :] - dof.s.T @ pa
            Ia = Ia.minus(dof.U, dof.V)
            pa = pa + dof.V @ u
            eliminated[i].insert(0, (dof, u))
        if p := t.parent[i]:
            IA[p] = IA[p] + X[i].congruence(Ia)
            pA[p] = pA[p] + X[i].T @ (pa + Ia @ c[i])

    # pass 3, base to tips: accelerations;  vdot = (u - U^T a) / d
    a, vdot = [motion.a0] * len(IA), [motion.xp.zeros(0)]
    for i in t.links:
        a[i] = X[i] @ a[t.parent[i]] + c[i]
        for dof, u in eliminated[i]:
            vdot.append(dof.d_inv * (u - dof.U.T @ a[i]))
            a[i] = a[i] + dof.s @ vdot[-1]
    return motion.xp.vstack(vdot)
