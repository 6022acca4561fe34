"""Constrained forward dynamics by `pv` with early elimination of the multipliers: O(n + m).

Whenever a degree of freedom is eliminated, one row can be eliminated with it (early_rows.py), and becomes inertia. At
most six rows are ever propagated, and few beyond their own limb.

sathya2023_pv_lqr section VIII. Departures: joints with several degrees of freedom pass one at a time; sign(0) = +1, so
no pivoting (remark 7); more than six rows on a link are compressed by QR (remark 9: least squares); and where a joint
cannot move a row, its pivot is zero, the row is penalised with weight `mu`, which the iteration makes exact: all lanes
run the same operations, so none can let the row pass. The knee of a straight leg is such a joint. The first solution is
off by 3e-4 of the rows' terms then (the row carries the whole robot), and two more solver iterations follow.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import change_of, left_over, over_links, starting
from linkwork.algorithms.common.columns import stacked
from linkwork.algorithms.common.early_rows import LinkRecord, eliminate
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.penalties import inertias
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.model import Motion


def pv_early(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, lam0: Array | None = None
) -> Iteration:
    """Rows over single links and the joints that hang them on the world, from forces `lam0`."""
    xp, rows = motion.xp, [over_links(motion, r) for r in constraint_rows(motion)]
    links = eliminate(motion, rows, mu)

    def step(motion: Motion, tau: Array, p: list[Array], rows: list[ConstraintRows], lam: list[Array]) -> Step:
        u = tips_to_base(motion, links, rows, tau, p, lam)
        vdot, a, more = base_to_tips(motion, links, rows, u)
        errors, squares = left_over(motion, rows, a)
        new = [l + more[c] if c in more else l for c, l in enumerate(lam)]
        return Step(stacked(motion, new), stacked(motion, errors), squares, vdot)

    def change(d: Array) -> Step:
        return step(motion.at_rest, *change_of(motion, rows, d))

    start = starting(motion, rows, lam0, None)
    first = step(motion, tau, motion.bias(fext), rows, start)
    return Iteration(stacked(motion, start), first, change, lambda lam, vdot: (vdot, lam), inertias(motion), xp)


Driven = dict[int, list[tuple[Array, Array]]]
"""By link, for each degree of freedom: the force u left to move it, and the right-hand side l1 of its row (or None)."""


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
                li, pa = turned[1:, :], pa - x.K1 @ (x.p_inv * l1)
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
                lam1 = x.p_inv * (l1 - x.K1.T @ a[i])
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
