"""Articulated inertias: those of a link and all behind it, with their joints free to move.

    IA_i = I_i + sum over children j of X_j^T Ia_j X_j,      Ia = IA - U D^-1 U^T,  U = IA S,  D = S^T U + armature

Featherstone, Rigid Body Dynamics Algorithms, section 7.2. `propagate_motion` is the motion propagator P_i^T of the
papers on constrained dynamics, with the change of coordinates included.

A joint with several degrees of freedom is eliminated one at a time, the last first, as if massless links lay between
them: the same operations as factorising D, but stable where stiff penalties make D ill-conditioned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from linkwork.algorithms.common.least_inertia import held
from linkwork.algorithms.common.supports import Known
from linkwork.backends.ops import Array, Factor
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia


@dataclass(frozen=True)
class Dof:
    """An eliminated degree of freedom: its direction s, U = IA s, 1/d with d = s^T U + rotor, V = U/d."""

    s: Array
    U: Array
    V: Array
    d_inv: Array


@dataclass(frozen=True)
class Articulated:
    """Articulated inertias before (IA) and behind (Ia) each link's joint, and its degrees of freedom."""

    motion: Motion
    IA: list[ArticulatedInertia]
    Ia: list[ArticulatedInertia]
    dofs: list[list[Dof]]

    def propagate_motion(self, i: int, A: Array) -> Array:
        """Propagate accelerations of the parent of link i (6 x k) to it: (1 - S D^-1 U^T) X A."""
        A = self.motion.X[i] @ A
        for dof in self.dofs[i]:
            A = A - dof.s @ (dof.V.T @ A)
        return A

    def D(self, i: int) -> Factor:
        """The inertia S^T IA S + armature of joint i, factorised."""
        S, xp = self.motion.S[i], self.motion.xp
        return xp.factor_spd(xp.symmetric(S.T @ (self.IA[i] @ S)) + self.motion.armature(i))

    def drive(self, tau: Array, p: list[Array]) -> tuple[list[list[Array]], list[Array]]:
        """Tips to base, for joint forces `tau` and link bias forces `p`.

        Gives the force u left to move each degree of freedom, and the bias force pA of each link and all behind it.
        """
        motion, t = self.motion, self.motion.model.topology
        pA, u = list(p), [[motion.xp.zeros(1)] * len(d) for d in self.dofs]
        for i in reversed(t.links):
            first, pa = t.v_slices[i].start, pA[i]
            for k, dof in reversed(list(enumerate(self.dofs[i]))):
                u[i][k] = tau[first + k : first + k + 1, :] - dof.s.T @ pa
                pa = pa + dof.V @ u[i][k]
            if parent := t.parent[i]:
                pA[parent] = pA[parent] + motion.X[i].T @ (pa + self.Ia[i] @ motion.c[i])
        return u, pA

    @property
    def at_rest(self) -> Articulated:
        """The same without velocities and gravity: its sweeps give what forces add."""
        return replace(self, motion=self.motion.at_rest)

    def accelerate(
        self, u: list[list[Array]], base: Array | None = None, known: Known | None = None
    ) -> tuple[Array, list[Array]]:
        """Base to tips: accelerations of joints and of all links.

        That of a free base may be known, or those of some links with their joints (supports.py).
        """
        motion, t = self.motion, self.motion.model.topology
        a, vdot = [motion.a0] * len(self.IA), [motion.xp.zeros(0)]
        for i in t.links:
            if known is not None and i in known:
                found, a[i] = known[i]
                vdot.append(found)
                continue
            a[i] = motion.X[i] @ a[t.parent[i]] + motion.c[i]
            if i == 1 and base is not None:
                vdot.append(base - a[i])
                a[i] = base
                continue
            for dof, uk in zip(self.dofs[i], u[i], strict=True):
                vdot.append(dof.d_inv * (uk - dof.U.T @ a[i]))
                a[i] = a[i] + dof.s @ vdot[-1]
        return motion.xp.vstack(vdot), a


def articulated(motion: Motion, added: Mapping[int, ArticulatedInertia] | None = None) -> Articulated:
    """Tips to base: articulated inertias of all links, with inertias `added` to some of them."""
    t = motion.model.topology
    IA = [I.articulated() for I in motion.I]
    for i, extra in (added or {}).items():
        IA[i] = IA[i] + extra
    Ia, dofs = list(IA), [[] for _ in IA]  # type: tuple[list[ArticulatedInertia], list[list[Dof]]]
    for i in reversed(t.links):
        Ia[i], dofs[i] = eliminate(motion, i, IA[i])
        p = t.parent[i]
        if p:
            IA[p] = IA[p] + motion.X[i].congruence(Ia[i])
    return Articulated(motion, IA, Ia, dofs)


def eliminate(motion: Motion, i: int, IA: ArticulatedInertia) -> tuple[ArticulatedInertia, list[Dof]]:
    """What remains of an inertia behind joint i, and the degrees of freedom that were eliminated."""
    dofs: list[Dof] = []
    for k in reversed(range(motion.model.links[i].joint.nv)):
        dof = degree_of_freedom(motion, i, k, IA)
        IA = IA.minus(dof.U, dof.V)
        dofs.insert(0, dof)
    return IA, dofs


def degree_of_freedom(motion: Motion, i: int, k: int, IA: ArticulatedInertia) -> Dof:
    """Degree of freedom k of joint i, about to be eliminated from the inertia IA behind it."""
    s = motion.S[i][:, k : k + 1]
    U = IA @ s
    d_inv = 1 / held(motion, motion.model.topology.v_slices[i].start + k, (s.T @ U)[0, 0] + motion.rotor(i, k))
    return Dof(s, U, U * d_inv, d_inv)
