"""Closed loops by carried multipliers that go at the root of their loop: Brandl, Johanni and Otter; Bae and Haug.

The rows of a loop travel from both its ends towards the base as in `pv`. At the loop's root i they have met, and
L lam = l - K a_i is solved for them on the spot (R: the rows that go, U: others that they are coupled with):

    H_ii <- H_ii + K_R^T L_RR^-1 K_R,     p_i <- p_i - K_R^T L_RR^-1 l_R,
    (K_U, l_U, L_UU) <- (K_U, l_U, L_UU) - L_UR L_RR^-1 (K_R, l_R, L_RU) .

sathya2025_lcaba_proxbbo, algorithm 4 (eq. 46e is a decrement) with 1/mu = 0: rows must be independent (else NaN).
Contacts with the world go at the world, or at a free base where several limbs meet, as in eq. 49 of sathya2023_pv_lqr.
O(n + m) for loops that are not coupled; any number of links and joints per row.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.constrained.constrained_aba import split
from linkwork.algorithms.tree.articulated import Dof, meet
from linkwork.backends.ops import Array, Factor
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.model import Motion
from linkwork.planner.elimination import loop_roots


def bbo(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    rows = constraint_rows(motion)
    return CarriedLoops(motion, rows, damping=None).solve(tau, motion.bias(fext), [r.k for r in rows])


@dataclass(frozen=True)
class Root:
    """Rows R that went at one link: factor of L_RR, K_R, Y = L_RR^-1 K_R, and for others L_RU and L_RR^-1 L_RU."""

    which: list[int]
    factor: Factor
    K: Array
    Y: Array
    others: dict[int, tuple[Array, Array]]


class CarriedLoops:
    """Everything that does not depend on forces: inertias, carried rows, and factors at the loops' roots."""

    def __init__(self, motion: Motion, rows: list[ConstraintRows], damping: Array | None) -> None:
        self.motion, self.rows = motion, rows
        t, xp = motion.model.topology, motion.xp
        ends = loop_roots(motion.model, [_ends(motion, r) for r in rows], [r.k.shape[0] for r in rows])
        self.IA = [I.articulated() for I in motion.I]
        self.Ia = list(self.IA)
        self.KT: list[dict[int, Array]] = [{} for _ in self.IA]
        self.L: dict[tuple[int, int], Array] = {}
        self.dofs: list[list[tuple[Dof, dict[int, Array]]]] = [[] for _ in self.IA]
        self.roots: dict[int, Root] = {}
        for c, r in enumerate(rows):
            m = r.k.shape[0]
            self.L[c, c] = xp.zeros(m, m) if damping is None else damping * xp.eye(m)
            for i, K in r.links.items():
                self.KT[i][c] = K.T

        # tips to base: rows go at their roots, joints are eliminated, the rest moves on
        for i in (*reversed(t.links), 0):
            here = [c for c, end in enumerate(ends) if end == i]
            if here:
                self.roots[i] = self._resolve(i, here)
            if i:
                for k in reversed(range(motion.model.links[i].joint.nv)):
                    self.dofs[i].insert(0, self._pass_dof(i, k))
                self._pass_on(i, t.parent[i])

    def _block(self, c: int, d: int) -> Array:
        return self.L[c, d] if c <= d else self.L[d, c].T

    def _coupled(self, c: int, d: int) -> bool:
        return (min(c, d), max(c, d)) in self.L

    def _add(self, c: int, d: int, B: Array) -> None:
        key, B = ((c, d), B) if c <= d else ((d, c), B.T)
        self.L[key] = self.L[key] + B if key in self.L else B

    def _resolve(self, i: int, which: list[int]) -> Root:
        """Solve for rows that have met at link i, and take them out of everything they touch."""
        xp, held = self.motion.xp, self.KT[i]
        size = {c: self.rows[c].k.shape[0] for c in which}
        L = xp.vstack([xp.hstack([self._block(c, d) if self._coupled(c, d) else xp.zeros(size[c], size[d])
                                  for d in which]) for c in which])
        factor = xp.factor_spd(L, guard=True)
        K = xp.hstack([held.pop(c) if c in held else xp.zeros(6, size[c]) for c in which]).T
        Y = factor.solve(K)
        rest = [d for d in range(len(self.rows)) if d not in which and any(self._coupled(c, d) for c in which)]
        others: dict[int, tuple[Array, Array]] = {}
        for d in rest:
            n = self.rows[d].k.shape[0]
            LRd = xp.vstack([self._block(c, d) if self._coupled(c, d) else xp.zeros(size[c], n) for c in which])
            others[d] = (LRd, factor.solve(LRd))
            held[d] = held[d] - (LRd.T @ Y).T if d in held else -(LRd.T @ Y).T
        for n, d in enumerate(rest):
            for e in rest[n:]:
                cross = -(others[d][0].T @ others[e][1])
                self._add(d, e, xp.symmetric(cross) if d == e else cross)
        for c in which:
            for d in range(len(self.rows)):
                self.L.pop((min(c, d), max(c, d)), None)
        if i:
            self.IA[i] = self.IA[i].minus(-K.T, Y.T)
        return Root(which, factor, K, Y, others)

    def _pass_dof(self, i: int, k: int) -> tuple[Dof, dict[int, Array]]:
        """Eliminate one degree of freedom: e^T = s^T K^T + G^T of each row that it moves."""
        dof, held, xp = meet(self.motion, i, k, self.IA[i]), self.KT[i], self.motion.xp
        eT = {c: dof.s.T @ KT for c, KT in held.items()}
        for c, r in enumerate(self.rows):
            if i in r.joints:
                G = r.joints[i][:, k : k + 1].T
                eT[c] = eT[c] + G if c in eT else G
        self.IA[i] = self.IA[i].minus(dof.U, dof.V)
        moved = sorted(eT)
        for n, c in enumerate(moved):
            scaled = dof.d_inv * eT[c]
            for d in moved[n:]:
                self._add(c, d, xp.symmetric(scaled.T @ eT[d]) if c == d else scaled.T @ eT[d])
            held[c] = held[c] - dof.V @ eT[c] if c in held else -(dof.V @ eT[c])
        return dof, eT

    def _pass_on(self, i: int, p: int) -> None:
        X = self.motion.X[i]
        self.Ia[i] = self.IA[i]
        for c, KT in self.KT[i].items():
            KT = X.T @ KT
            self.KT[p][c] = self.KT[p][c] + KT if c in self.KT[p] else KT
        if p:
            self.IA[p] = self.IA[p] + X.congruence(self.Ia[i])

    def solve(self, tau: Array, p: list[Array], l: list[Array]) -> tuple[Array, Array]:
        """Joint accelerations and multipliers for joint forces, link bias forces and right-hand sides."""
        motion, t, xp = self.motion, self.motion.model.topology, self.motion.xp
        p, l = list(p), list(l)
        u: list[list[Array]] = [[] for _ in p]
        y: dict[int, Array] = {}

        # tips to base: forces and right-hand sides
        for i in (*reversed(t.links), 0):
            if root := self.roots.get(i):
                y[i] = root.factor.solve(xp.vstack([l[c] for c in root.which]))
                p[i] = p[i] - root.K.T @ y[i]
                for d, (LRd, _) in root.others.items():
                    l[d] = l[d] - LRd.T @ y[i]
            for k, (dof, eT) in reversed(list(enumerate(self.dofs[i]))):
                at = t.v_slices[i].start + k
                u[i].insert(0, tau[at : at + 1, :] - dof.s.T @ p[i])
                p[i] = p[i] + dof.V @ u[i][0]
                for c, e in eT.items():
                    l[c] = l[c] - e.T @ (dof.d_inv * u[i][0])
            for c, KT in self.KT[i].items() if i else ():
                l[c] = l[c] - KT.T @ motion.c[i]
            if i and (parent := t.parent[i]):
                p[parent] = p[parent] + motion.X[i].T @ (p[i] + self.Ia[i] @ motion.c[i])

        # base to tips: accelerations, and the multipliers that they decide
        a, vdot, lam = [motion.a0] * len(p), [xp.zeros(0)], list(l)
        for i in (0, *t.links):
            if i:
                a[i] = motion.X[i] @ a[t.parent[i]] + motion.c[i]
            for (dof, eT), uk in zip(self.dofs[i], u[i], strict=True):
                push = sum((e @ lam[c] for c, e in eT.items()), uk - dof.U.T @ a[i])
                vdot.append(dof.d_inv * push)
                a[i] = a[i] + dof.s @ vdot[-1]
            if root := self.roots.get(i):
                found = y[i] - root.Y @ a[i]
                for d, (_, Yd) in root.others.items():
                    found = found - Yd @ lam[d]
                for c, part in zip(root.which, split(found, [self.rows[c] for c in root.which]), strict=True):
                    lam[c] = part
        return xp.vstack(vdot), xp.vstack([xp.zeros(0), *lam])


def _ends(motion: Motion, r: ConstraintRows) -> tuple[int, ...]:
    """The links that a row holds; a joint counts as its link and that link's parent."""
    return (*r.links, *(l for i in r.joints for l in (i, motion.model.topology.parent[i])))
