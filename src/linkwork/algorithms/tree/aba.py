"""Forward dynamics: the articulated body algorithm.

    vdot = M(q)^-1 (tau - c(q, v) + sum J_l^T fext_l),   without forming M

Featherstone, Rigid Body Dynamics Algorithms, table 7.1, on classical accelerations (see model/motion.py). O(n).
"""

from __future__ import annotations

from linkwork.model.motion import Motion
from linkwork.backends.ops import Array, Factor
from linkwork.model import Link


def aba(motion: Motion, tau: Array, fext: Array | None = None) -> Array:
    """Joint accelerations for the joint forces `tau`."""
    model, t, xp = motion.model, motion.model.topology, motion.xp
    X, S, c = motion.X, motion.S, motion.c
    n = len(X)
    IA = [I.articulated() for I in motion.I]
    pA = motion.bias(fext)
    U: list[Array] = [None] * n
    D: list[Factor] = [None] * n  # type: ignore[list-item]
    u: list[Array] = [None] * n

    # pass 2, tips to base: what a link and all behind it weigh when their joints are free to move
    for i in reversed(t.links):
        U[i] = IA[i] @ S[i]
        D[i] = xp.factor_spd(xp.symmetric(S[i].T @ U[i]) + motion.armature(i))
        u[i] = tau[t.v_slices[i], :] - S[i].T @ pA[i]
        p = t.parent[i]
        if p:
            V = D[i].solve(U[i].T).T
            Ia = IA[i].minus(U[i], V, vanishing(model.links[i]))
            pa = pA[i] + Ia @ c[i] + V @ u[i]
            IA[p] = IA[p] + X[i].congruence(Ia)
            pA[p] = pA[p] + X[i].T @ pa

    # pass 3, base to tips: accelerations
    a = [motion.a0] * n
    vdot = [xp.zeros(0)] * n
    for i in t.links:
        a[i] = X[i] @ a[t.parent[i]] + c[i]
        vdot[i] = D[i].solve(u[i] - U[i].T @ a[i])
        a[i] = a[i] + S[i] @ vdot[i]
    return xp.vstack(vdot)


def vanishing(link: Link) -> tuple[int, ...]:
    """The rows of Ia = IA - U D^-1 U^T that are exactly zero: Ia S = 0 where no rotor adds to D."""
    return () if link.armature.any() else link.joint.selects
