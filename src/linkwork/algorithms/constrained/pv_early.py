"""Constrained forward dynamics by `pv` with early elimination of the multipliers: O(n + m).

Whenever a degree of freedom is eliminated, L gains rank one, e e^T / d. A Householder reflection Q turns e into one
entry, and the multiplier of that row is eliminated on the spot: lam1 = (l1 - K1 a) / s with s = |e|^2 / d. The row
becomes inertia, IA + K1^T K1 / s; at most six rows are ever propagated, and few beyond their own limb.

sathya2023_pv_lqr section VIII. Departures: joints with several degrees of freedom pass one at a time; sign(0) = +1, so
no pivoting (remark 7); more than six rows on a link are compressed by QR (remark 9: least squares); and where a joint
cannot move a row, s = 0, the row is penalised with weight `mu`, which the iteration makes exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.common.articulated import Dof, degree_of_freedom
from linkwork.algorithms.common.columns import split, stacked
from linkwork.algorithms.common.householder import Compression, Reflection, compression, reflection
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.weights import left_over, over_links, starting, without_targets
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.constraints.units import units
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia


def pv_early(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, lam0: Array | None = None
) -> Iteration:
    """Rows over single links and the joints that hang them on the world, from forces `lam0`."""
    xp, rows = motion.xp, [over_links(motion, r) for r in constraint_rows(motion)]
    links = eliminate(motion, rows, mu)

    def step(motion: Motion, tau: Array, p: list[Array], rows: list[ConstraintRows], lam: list[Array]) -> Step:
        u = tips_to_base(motion, links, rows, tau, p, lam)
        vdot, a, more = base_to_tips(motion, links, rows, u)
        errors, size = left_over(motion, rows, a)
        new = [l + more[c] if c in more else l for c, l in enumerate(lam)]
        return Step(stacked(motion, new), stacked(motion, errors), size, vdot)

    def change(d: Array) -> Step:
        none, still = [xp.zeros(6)] * len(motion.X), without_targets(motion, rows)
        return step(motion.at_rest, xp.zeros(motion.model.nv), none, still, split(d, rows))

    start = starting(motion, rows, lam0, None)
    first = step(motion, tau, motion.bias(fext), rows, start)
    return Iteration(stacked(motion, start), first, change, lambda lam, vdot: (vdot, lam), xp)


@dataclass(frozen=True)
class Eliminated:
    """A degree of freedom and, if it moves any row, the reflection, row and 1/s eliminated with it."""

    dof: Dof
    Q: Reflection | None = None
    K1: Array = None
    s_inv: Array = None


@dataclass(frozen=True)
class LinkRecord:
    """A link with its joint eliminated: inertia and rows K^T (6 x r) behind it, and where they come from.

    Its rows are those of its `own` constraints, then those of its children `below`, compressed to at most six.
    """

    Ia: ArticulatedInertia
    KT: Array
    own: list[int]
    below: list[int]
    squeeze: Compression
    dofs: list[Eliminated]


Driven = dict[int, list[tuple[Array, Array]]]
"""By link, for each degree of freedom: the force u left to move it, and the right-hand side l1 of its row (or None)."""


def eliminate(motion: Motion, rows: list[ConstraintRows], mu: Array) -> dict[int, LinkRecord]:
    """Tips to base: inertias, and rows that are eliminated one by one."""
    t, xp, unit = motion.model.topology, motion.xp, units(motion.model)
    IA = [I.articulated() for I in motion.I]
    out: dict[int, LinkRecord] = {}
    for i in reversed(t.links):
        own = [c for c, r in enumerate(rows) if i in r.links]
        below = [j for j in out if t.parent[j] == i]
        passed_on = [motion.X[j].T @ out[j].KT for j in below]
        KT = xp.hstack([xp.zeros(6, 0), *(rows[c].links[i].T for c in own), *passed_on])
        squeeze = compression(KT.T, xp)
        Ia, KT, dofs = IA[i], squeeze.apply(KT.T).T, list[Eliminated]()
        behind = [unit[c] for c, r in enumerate(rows) if any(i in t.supports[l] for l in r.links)]
        for k in reversed(range(motion.model.links[i].joint.nv)):
            Ia, KT, gone = _eliminate_dof(motion, i, k, Ia, KT, mu * min(behind, default=1.0))
            dofs.insert(0, gone)
        out[i] = LinkRecord(Ia, KT, own, below, squeeze, dofs)
        if p := t.parent[i]:
            IA[p] = IA[p] + motion.X[i].congruence(Ia)
    return out


def _eliminate_dof(
    motion: Motion, i: int, k: int, IA: ArticulatedInertia, KT: Array, mu: Array
) -> tuple[ArticulatedInertia, Array, Eliminated]:
    """Eliminate one degree of freedom, and one row with it if it moves any."""
    dof = degree_of_freedom(motion, i, k, IA)
    IA = IA.minus(dof.U, dof.V)
    e = KT.T @ dof.s
    if KT.shape[1] == 0 or motion.xp.is_zero(e):
        return IA, KT, Eliminated(dof)
    Q = reflection(e, motion.xp)
    turned = (Q @ KT.T).T
    K1 = turned[:, 0:1] - dof.V * Q.length
    s = Q.length * Q.length * dof.d_inv
    s_inv = 1 / motion.xp.where(s * mu > 1, s, 1 / mu)
    return IA.minus(K1 * -s_inv, K1), turned[:, 1:], Eliminated(dof, Q, K1, s_inv)


def tips_to_base(
    motion: Motion,
    links: dict[int, LinkRecord],
    rows: list[ConstraintRows],
    tau: Array,
    p: list[Array],
    lam: list[Array],
) -> Driven:
    """Forces, with the multipliers found so far, and what is left of the rows' right-hand sides."""
    t, xp, pA = motion.model.topology, motion.xp, list(p)
    l, out = dict[int, Array](), Driven()
    for i, link in links.items():
        for c in link.own:
            pA[i] = pA[i] - rows[c].links[i].T @ lam[c]
        li = xp.vstack([xp.zeros(0), *(rows[c].k for c in link.own), *(l[j] for j in link.below)])
        li, pa, out[i] = link.squeeze.apply(li), pA[i], []
        for k, x in reversed(list(enumerate(link.dofs, t.v_slices[i].start))):
            u, l1 = tau[k : k + 1, :] - x.dof.s.T @ pa, None
            pa = pa + x.dof.V @ u
            if x.Q is not None:
                turned = x.Q @ li
                l1 = turned[0:1, :] - (x.Q.length * x.dof.d_inv) * u
                li, pa = turned[1:, :], pa - x.K1 @ (x.s_inv * l1)
            out[i].insert(0, (u, l1))
        if parent := t.parent[i]:
            l[i] = li - link.KT.T @ motion.c[i]
            pA[parent] = pA[parent] + motion.X[i].T @ (pa + link.Ia @ motion.c[i])
    return out


def base_to_tips(
    motion: Motion, links: dict[int, LinkRecord], rows: list[ConstraintRows], driven: Driven
) -> tuple[Array, list[Array], dict[int, Array]]:
    """Joint and link accelerations, and the multipliers that follow from them, by constraint."""
    t, xp = motion.model.topology, motion.xp
    a, vdot, lam = [motion.a0] * len(motion.X), [xp.zeros(0)], dict[int, Array]()
    found = {i: xp.zeros(links[i].KT.shape[1]) for i in t.links}  # of rows that reach the world: none
    for i in t.links:
        a[i], force, link = motion.X[i] @ a[t.parent[i]] + motion.c[i], found[i], links[i]
        for x, (u, l1) in zip(link.dofs, driven[i], strict=True):
            push = u - x.dof.U.T @ a[i]
            if x.Q is not None:
                lam1 = x.s_inv * (l1 - x.K1.T @ a[i])
                force = x.Q @ xp.vstack([lam1, force])
                push = push + x.Q.length * lam1
            vdot.append(x.dof.d_inv * push)
            a[i] = a[i] + x.dof.s @ vdot[-1]
        force = link.squeeze.expand(force)
        for c in link.own:
            lam[c], force = force[0 : rows[c].k.shape[0], :], force[rows[c].k.shape[0] :, :]
        for j in link.below:
            size = links[j].KT.shape[1]
            found[j], force = force[0:size, :], force[size:, :]
    return xp.vstack(vdot), a, lam
