"""Constrained forward dynamics by `pv` with early elimination of the multipliers: O(n + m).

Whenever a degree of freedom is eliminated, L gains rank one, e e^T / d. A Householder reflection Q turns e into one
entry, and the multiplier of that row is eliminated on the spot: lam1 = (l1 - K1 a) / s with s = |e|^2 / d. The row
becomes inertia, IA + K1^T K1 / s, and leaves; at most six rows ever travel, and few beyond their own limb.

sathya2023_pv_lqr section VIII. Departures: joints with several degrees of freedom pass one at a time; sign(0) = +1, so
no pivoting (remark 7); more than six rows on a link are compressed by QR (remark 9: least squares); and where a joint
cannot move a row, s = 0, the row goes on as a penalty of weight `mu`, which the iteration makes exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.common.articulated import Dof, degree_of_freedom
from linkwork.algorithms.common.columns import split
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.weights import left_over, over_links
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.constraints.units import units
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia


@dataclass(frozen=True)
class Reflection:
    """Q = 1 - beta w w^T, symmetric and orthogonal, with Q e = (length, 0, ..., 0)."""

    w: Array
    beta: Array
    length: Array

    def __matmul__(self, x: Array) -> Array:
        return x if self.w.shape[0] == 1 else x - self.w @ (self.beta * (self.w.T @ x))


def reflection(e: Array, motion: Motion) -> Reflection:
    """Householder's reflection of a column onto its first entry; harmless for e = 0."""
    xp = motion.xp
    if e.shape[0] == 1:
        return Reflection(e, 0.0, e[0, 0])
    n2, first = (e.T @ e)[0, 0], e[0, 0]
    n = xp.sqrt(n2)
    signed = xp.where(first < 0, -n, n)
    w = xp.vstack([e[0:1, :] + signed, e[1:, :]])
    return Reflection(w, 1 / xp.where(n2 > 0, n2 + first * signed, 1.0), -signed)


@dataclass(frozen=True)
class Passed:
    """An eliminated degree of freedom and, if it moves any row, the reflection, the row and 1/s that left with it."""

    dof: Dof
    Q: Reflection | None = None
    K1: Array = None
    s_inv: Array = None


def pv_early(motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array) -> Iteration:
    """Rows over single links and the joints that hang them on the world."""
    t, xp, rows = motion.model.topology, motion.xp, [over_links(motion, r) for r in constraint_rows(motion)]
    n, unit = len(motion.X), units(motion.model)
    IA = [I.articulated() for I in motion.I]
    Ia, passed = list(IA), [[] for _ in IA]  # type: tuple[list[ArticulatedInertia], list[list[Passed]]]
    squeezed: list[list[Reflection]] = [[] for _ in IA]
    own = [[c for c, r in enumerate(rows) if i in r.links] for i in range(n)]
    KT: list[Array] = [xp.hstack([xp.zeros(6, 0), *(rows[c].links[i].T for c in own[i])]) for i in range(n)]
    below: list[list[tuple[int, int]]] = [[] for _ in IA]
    behind = [[unit[c] for c, r in enumerate(rows) if any(i in t.supports[l] for l in r.links)] for i in range(n)]

    # tips to base: inertias, and rows that leave one by one
    for i in reversed(t.links):
        KT[i], squeezed[i] = _squeeze(KT[i], motion)
        Ia[i] = IA[i]
        for k in reversed(range(motion.model.links[i].joint.nv)):
            Ia[i], KT[i], gone = _pass(motion, i, k, Ia[i], KT[i], mu * min(behind[i], default=1.0))
            passed[i].insert(0, gone)
        if p := t.parent[i]:
            IA[p] = IA[p] + motion.X[i].congruence(Ia[i])
            below[p].append((i, KT[i].shape[1]))
            KT[p] = xp.hstack([KT[p], motion.X[i].T @ KT[i]])

    def step(x: Array) -> Step:
        lam = split(x, rows)
        pA, l, u = list(motion.bias(fext)), [xp.zeros(0)] * n, [[] for _ in IA]  # type: ignore[var-annotated]
        l1: list[list[Array]] = [[] for _ in IA]

        # tips to base: forces, and what is left of the rows' right-hand sides
        for i in reversed(t.links):
            l[i] = xp.vstack([xp.zeros(0), *(rows[c].k for c in own[i]), *(l[j] for j, _ in below[i])])
            for c in own[i]:
                pA[i] = pA[i] - rows[c].links[i].T @ lam[c]
            for Q in squeezed[i]:
                l[i] = Q @ l[i]
            if squeezed[i]:
                l[i] = l[i][0:6, :]
            pa, first = pA[i], t.v_slices[i].start
            for k, done in reversed(list(enumerate(passed[i]))):
                u[i].insert(0, tau[first + k : first + k + 1, :] - done.dof.s.T @ pa)
                pa = pa + done.dof.V @ u[i][0]
                l1[i].insert(0, None)
                if done.Q is not None:
                    turned = done.Q @ l[i]
                    l1[i][0] = turned[0:1, :] - (done.Q.length * done.dof.d_inv) * u[i][0]
                    l[i], pa = turned[1:, :], pa - done.K1 @ (done.s_inv * l1[i][0])
            if p := t.parent[i]:
                l[i] = l[i] - KT[i].T @ motion.c[i]
                pA[p] = pA[p] + motion.X[i].T @ (pa + Ia[i] @ motion.c[i])

        # base to tips: accelerations, and the multipliers that they decide
        a, vdot, new = [motion.a0] * n, [xp.zeros(0)], list(lam)
        found: list[Array] = [xp.zeros(KT[i].shape[1] if i else 0) for i in range(n)]
        for i in t.links:
            a[i], force = motion.X[i] @ a[t.parent[i]] + motion.c[i], found[i]
            for done, uk, lk in zip(passed[i], u[i], l1[i], strict=True):
                push = uk - done.dof.U.T @ a[i]
                if done.Q is not None:
                    first_row = done.s_inv * (lk - done.K1.T @ a[i])
                    force = done.Q @ xp.vstack([first_row, force])
                    push = push + done.Q.length * first_row
                vdot.append(done.dof.d_inv * push)
                a[i] = a[i] + done.dof.s @ vdot[-1]
            if squeezed[i]:
                force = xp.vstack([force, xp.zeros(squeezed[i][0].w.shape[0] - 6)])
            for Q in reversed(squeezed[i]):
                force = Q @ force
            start = 0
            for c in own[i]:
                new[c] = lam[c] + force[start : start + rows[c].k.shape[0], :]
                start += rows[c].k.shape[0]
            for j, size in below[i]:
                found[j] = force[start : start + size, :]
                start += size
        errors, size = left_over(motion, rows, a)
        return Step(xp.vstack([xp.zeros(0), *new]), xp.vstack([xp.zeros(0), *errors]), size, xp.vstack(vdot))

    return Iteration(sum(r.k.shape[0] for r in rows), step, lambda lam, vdot: (vdot, lam), xp)


def _pass(
    motion: Motion, i: int, k: int, IA: ArticulatedInertia, KT: Array, mu: Array
) -> tuple[ArticulatedInertia, Array, Passed]:
    """Eliminate one degree of freedom, and one row with it if it moves any."""
    dof = degree_of_freedom(motion, i, k, IA)
    IA = IA.minus(dof.U, dof.V)
    e = KT.T @ dof.s
    if KT.shape[1] == 0 or motion.xp.is_zero(e):
        return IA, KT, Passed(dof)
    Q = reflection(e, motion)
    turned = (Q @ KT.T).T
    K1 = turned[:, 0:1] - dof.V * Q.length
    s = Q.length * Q.length * dof.d_inv
    s_inv = 1 / motion.xp.where(s * mu > 1, s, 1 / mu)
    return IA.minus(K1 * -s_inv, K1), turned[:, 1:], Passed(dof, Q, K1, s_inv)


def _squeeze(KT: Array, motion: Motion) -> tuple[Array, list[Reflection]]:
    """More than six rows on one link, turned into six by QR; what they say beyond is redundant or in conflict."""
    turns: list[Reflection] = []
    if KT.shape[1] <= 6:
        return KT, turns
    xp, K = motion.xp, KT.T
    for j in range(6):
        rest = reflection(K[j:, j : j + 1], motion)
        Q = Reflection(xp.vstack([xp.zeros(j), rest.w]), rest.beta, rest.length)
        K = Q @ K
        turns.append(Q)
    return K[0:6, :].T, turns
