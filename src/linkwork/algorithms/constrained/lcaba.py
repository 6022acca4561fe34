"""Closed loops inside the articulated body recursion: the loop-constrained articulated body algorithm.

    min sum 1/2 a_i^T H_ii a_i + p_i^T a_i - tau^T vdot + mu/2 |sum K_l a_l - k|^2 - lam^T (sum K_l a_l - k)

A constraint between links i and n adds mu K_i^T K_n to a block H_in: the links are neighbours. Links leave from the
tips in an order of few neighbours (planner/elimination.py); a degree of freedom that leaves, with U_n = H_ni s, takes

    H_nl <- H_nl - U_n U_l^T / d,    p_n <- p_n + U_n u / d,    vdot = (u - sum U_n^T a_n) / d ,

then a_i = X a_p + c_i hands its blocks to the parent. The multipliers follow by lam <- lam + mu (k - sum K a).
sathya2025_lcaba_proxbbo, algorithms 1-3 (signs of eqs. 30d, 30e and of line 31 corrected). O(n + m) for loops that are
not coupled with many others; rows may be redundant or singular. Without internal loops it is `constrained_aba`.
"""

from __future__ import annotations

from linkwork.algorithms.constrained.constrained_aba import split
from linkwork.algorithms.constrained.weights import over_links, per_constraint, settled
from linkwork.algorithms.iteration import Iteration
from linkwork.algorithms.tree.articulated import Dof, meet
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.model import Motion
from linkwork.planner.elimination import eliminate
from linkwork.spatial import ArticulatedInertia


def lcaba(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows (few links each); constraints with weight 0 in `active` are removed."""
    t, xp = motion.model.topology, motion.xp
    rows = [over_links(motion, r) for r in constraint_rows(motion)]
    w = per_constraint(motion, rows, active)
    order = eliminate(t, [tuple(r.links) for r in rows])
    H = Blocks(motion, rows, [mu * wc for wc in w])
    gone: dict[int, list[tuple[Dof, dict[int, Array]]]] = {}
    left: dict[int, tuple[ArticulatedInertia, dict[int, Array]]] = {}

    # tips to base, in that order: inertias and couplings
    for i in order.order:
        near = order.neighbours[i]
        gone[i] = [H.pass_dof(i, k, near) for k in reversed(range(motion.model.links[i].joint.nv))][::-1]
        left[i] = (H.own[i], {n: H.block(n, i) for n in near})
        H.pass_on(i, t.parent[i], near)

    bias, m = motion.bias(fext), sum(r.k.shape[0] for r in rows)

    def step(x: Array) -> tuple[Array, Array]:
        lam = split(x[0:m, :], rows)
        p = list(bias)
        for r, l, wc in zip(rows, lam, w, strict=True):
            for i, K in r.links.items():
                p[i] = p[i] - K.T @ (l + (mu * wc) * r.k)

        # tips to base: forces
        u: dict[int, list[Array]] = {}
        for i in order.order:
            u[i] = []
            for k, (dof, U) in reversed(list(enumerate(gone[i]))):
                at = t.v_slices[i].start + k
                u[i].insert(0, tau[at : at + 1, :] - dof.s.T @ p[i])
                p[i] = p[i] + dof.V @ u[i][0]
                for n, Un in U.items():
                    p[n] = p[n] + Un @ (dof.d_inv * u[i][0])
            parent, (Hi, C) = t.parent[i], left[i]
            known = motion.c[i] if parent else motion.X[i] @ motion.a0 + motion.c[i]
            for n, Cn in C.items():
                p[n] = p[n] + Cn @ known
            if parent:
                p[parent] = p[parent] + motion.X[i].T @ (p[i] + Hi @ motion.c[i])

        # base to tips: accelerations
        a, vdot = [motion.a0] * len(p), {0: xp.zeros(0)}
        for i in reversed(order.order):
            a[i] = motion.X[i] @ a[t.parent[i]] + motion.c[i]
            by_dof = [xp.zeros(0)]
            for (dof, U), uk in zip(gone[i], u[i], strict=True):
                pull = sum((Un.T @ a[n] for n, Un in U.items()), dof.U.T @ a[i])
                by_dof.append(dof.d_inv * (uk - pull))
                a[i] = a[i] + dof.s @ by_dof[-1]
            vdot[i] = xp.vstack(by_dof)
        errors = [wc * (r.k - sum((K @ a[i] for i, K in r.links.items()), xp.zeros(r.k.shape[0])))
                  for r, wc in zip(rows, w, strict=True)]
        new = [l + mu * e for l, e in zip(lam, errors, strict=True)]
        found = xp.vstack([vdot[i] for i in sorted(vdot)])
        return xp.vstack([*new, found]), settled(motion, errors, found, x[m:, :])

    return Iteration(m + motion.model.nv, step, lambda x: (x[m:, :], x[0:m, :]))


class Blocks:
    """The Hessian over link accelerations: H_ii of each link, and H_nl (n < l) where two are coupled."""

    def __init__(self, motion: Motion, rows: list[ConstraintRows], weights: list[Array]) -> None:
        self.motion = motion
        self.own = [I.articulated() for I in motion.I]
        self.pairs: dict[tuple[int, int], Array] = {}
        for r, w in zip(rows, weights, strict=True):
            for i, Ki in r.links.items():
                scaled = w * Ki
                for n, Kn in r.links.items():
                    if n >= i:
                        self.add(i, n, scaled.T @ Kn)

    def block(self, n: int, l: int) -> Array:
        """H_nl, 6 x 6, of two coupled links."""
        return self.pairs[n, l] if n < l else self.pairs[l, n].T

    def add(self, n: int, l: int, B: Array) -> None:
        """Add B to H_nl, and with it B^T to H_ln; on the diagonal B is symmetric."""
        if n == l:
            xp = self.motion.xp
            M, I = xp.symmetric(B[0:3, 0:3]), xp.symmetric(B[3:6, 3:6])
            self.own[n] = self.own[n] + ArticulatedInertia(M, B[0:3, 3:6], I, xp)
            return
        key, B = ((n, l), B) if n < l else ((l, n), B.T)
        self.pairs[key] = self.pairs[key] + B if key in self.pairs else B

    def pass_dof(self, i: int, k: int, near: tuple[int, ...]) -> tuple[Dof, dict[int, Array]]:
        """Eliminate degree of freedom k of joint i."""
        dof = meet(self.motion, i, k, self.own[i])
        U = {n: self.block(n, i) @ dof.s for n in near}
        self.own[i] = self.own[i].minus(dof.U, dof.V)
        for n, Un in U.items():
            self.add(n, i, -(Un @ dof.V.T))
            scaled = -dof.d_inv * Un
            for l, Ul in U.items():
                if l > n:
                    self.add(n, l, scaled @ Ul.T)
            self.own[n] = self.own[n].minus(Un, -scaled)
        return dof, U

    def pass_on(self, i: int, parent: int, near: tuple[int, ...]) -> None:
        """Substitute a_i = X a_p + c: what link i was coupled with, its parent is from now on."""
        X = self.motion.X[i]
        for n in near:
            C = self.block(n, i)
            del self.pairs[min(n, i), max(n, i)]
            if parent:
                C = (X.T @ C.T).T
                self.add(n, parent, C + C.T if n == parent else C)
        if parent:
            self.own[parent] = self.own[parent] + X.congruence(self.own[i])
