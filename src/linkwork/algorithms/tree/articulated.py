"""Articulated bodies: what a link and all behind it weigh when their joints are free to move.

    IA_i = I_i + sum over children j of X_j^T (IA_j - U_j D_j^-1 U_j^T) X_j,    U = IA S,  D = S^T U + armature

Featherstone, Rigid Body Dynamics Algorithms, section 7.2. `carry` and `bring` are the force and motion propagators of
the papers on constrained dynamics, P_i and P_i^T, with the change of coordinates included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linkwork.backends.ops import Array, Factor
from linkwork.model import Link, Motion
from linkwork.spatial import ArticulatedInertia


@dataclass(frozen=True)
class Articulated:
    """Articulated inertias IA, and Ia = IA - U D^-1 U^T that remains behind each joint; V = U D^-1. Indexed by link."""

    motion: Motion
    IA: list[ArticulatedInertia]
    U: list[Array]
    D: list[Factor]
    V: list[Array]
    Ia: list[ArticulatedInertia]

    def carry(self, i: int, F: Array) -> Array:
        """Forces on link i (6 x k) as its parent feels them: X^T (F - U D^-1 S^T F)."""
        return self.motion.X[i].T @ (F - self.V[i] @ (self.motion.S[i].T @ F))

    def bring(self, i: int, A: Array) -> Array:
        """Accelerations of link i's parent (6 x k) as link i follows them: (1 - S D^-1 U^T) X A."""
        A = self.motion.X[i] @ A
        return A - self.motion.S[i] @ (self.V[i].T @ A)

    def drive(self, tau: Array, pA: list[Array]) -> list[Array]:
        """Tips to base: the force left to move each joint, for joint forces `tau` and link bias forces `pA`."""
        motion, t = self.motion, self.motion.model.topology
        pA, u = list(pA), [motion.xp.zeros(0)] * len(pA)
        for i in reversed(t.links):
            u[i] = tau[t.v_slices[i], :] - motion.S[i].T @ pA[i]
            p = t.parent[i]
            if p:
                pA[p] = pA[p] + motion.X[i].T @ (pA[i] + self.Ia[i] @ motion.c[i] + self.V[i] @ u[i])
        return u

    def accelerate(self, u: list[Array]) -> tuple[Array, list[Array]]:
        """Base to tips: joint accelerations, and accelerations of all links."""
        motion, t = self.motion, self.motion.model.topology
        a, vdot = [motion.a0] * len(u), [motion.xp.zeros(0)] * len(u)
        for i in t.links:
            a[i] = motion.X[i] @ a[t.parent[i]] + motion.c[i]
            vdot[i] = self.D[i].solve(u[i] - self.U[i].T @ a[i])
            a[i] = a[i] + motion.S[i] @ vdot[i]
        return motion.xp.vstack(vdot), a


def articulated(motion: Motion, added: Mapping[int, ArticulatedInertia] | None = None) -> Articulated:
    """Tips to base: articulated inertias of all links, with inertias `added` to some of them."""
    t, xp = motion.model.topology, motion.xp
    X, S = motion.X, motion.S
    IA = [I.articulated() for I in motion.I]
    for i, extra in (added or {}).items():
        IA[i] = IA[i] + extra
    U: list[Array] = [None] * len(IA)
    V: list[Array] = [None] * len(IA)
    D: list[Factor] = [None] * len(IA)  # type: ignore[list-item]
    Ia = list(IA)
    for i in reversed(t.links):
        U[i] = IA[i] @ S[i]
        D[i] = xp.factor_spd(xp.symmetric(S[i].T @ U[i]) + motion.armature(i))
        V[i] = D[i].solve(U[i].T).T
        Ia[i] = IA[i].minus(U[i], V[i], vanishing(motion.model.links[i]))
        p = t.parent[i]
        if p:
            IA[p] = IA[p] + X[i].congruence(Ia[i])
    return Articulated(motion, IA, U, D, V, Ia)


def vanishing(link: Link) -> tuple[int, ...]:
    """The rows of Ia = IA - U D^-1 U^T that are exactly zero: Ia S = 0 where no rotor adds to D."""
    return () if link.armature.any() else link.joint.selects
