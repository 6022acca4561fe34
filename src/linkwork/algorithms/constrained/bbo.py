"""Closed loops by propagated rows, whose multipliers are eliminated at their loop root.

Brandl, Johanni and Otter; Bae and Haug. The rows of a loop are propagated from both its ends towards the base as in
`pv`. At the loop's root i they have met, and L lam = l - K a_i is solved for them there (R: the rows eliminated, U:
others that they are coupled with):

    H_ii <- H_ii + K_R^T L_RR^-1 K_R,     p_i <- p_i - K_R^T L_RR^-1 l_R,
    (K_U, l_U, L_UU) <- (K_U, l_U, L_UU) - L_UR L_RR^-1 (K_R, l_R, L_RU) .

sathya2025_lcaba_proxbbo, algorithm 4 with 1/mu = 0: rows must be independent (else NaN). Its backward sweep is two
functions here, because `prox_bbo` repeats the one over forces (algorithm 5). Contacts with the world are eliminated at
the world, or at a free base where several limbs meet, as in eq. 49 of sathya2023_pv_lqr. O(n + m) for loops that are
not coupled; any number of links and joints per row. Nodes are links, or clusters (algorithms/common/nodes.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from linkwork.algorithms.common.activation import ROUNDING, accelerates, left_over, met, over_links
from linkwork.algorithms.common.certificates import trusted
from linkwork.algorithms.common.columns import in_order
from linkwork.algorithms.common.hessian import Hessian, articulated
from linkwork.algorithms.common.propagated import Passed, PropagatedRows, Root
from linkwork.algorithms.common.recursion import accelerated, node_of
from linkwork.algorithms.common.supports import Known
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, constraint_rows, holders
from linkwork.model import Model, Motion
from linkwork.structure.clusters import Cluster, ClusterTree, links_alone
from linkwork.structure.elimination import loop_roots

Order = Sequence[tuple[Cluster, tuple[int, ...]]]
"""Nodes as they are eliminated, each with its neighbours then."""


def bbo(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    rows, tree = constraint_rows(motion), links_alone(motion.model)
    ends, order = at_loop_roots(motion.model, tree, rows)
    e = sweep_inertias(motion, motion, Hessian(motion), PropagatedRows(motion, dict(enumerate(rows))), ends, order)
    u, y, _ = sweep_forces(e, tau, motion.bias(fext), [r.k for r in rows])
    vdot, a, lam = roll_out(e, u, y)
    guard, forces = met(motion, *left_over(motion, [over_links(motion, r) for r in rows], a)), in_order(motion, lam)
    if any(e.roots):
        # rows that hardly move in their own loop act on its root as stiff penalties do, and forces lose digits
        guard = guard + trusted(motion, accelerates(motion, tau, rnea(motion, vdot, fext), vdot, forces, ROUNDING))
    return vdot + guard[0, 0], forces


@dataclass(frozen=True)
class Eliminated:
    """What does not depend on forces: nodes with the rows propagated through them, and roots by link."""

    motion: Motion
    passed: list[Passed]
    roots: dict[int, Root]

    @property
    def at_rest(self) -> Eliminated:
        """The same without velocities and gravity: its sweeps give what right-hand sides add."""
        return replace(self, motion=self.motion.at_rest, passed=[x.at_rest for x in self.passed])


def at_loop_roots(model: Model, tree: ClusterTree, rows: Sequence[ConstraintRows]) -> tuple[dict[int, int], Order]:
    """The link at which each constraint is eliminated, and all nodes from the tips to the base."""
    ends = loop_roots(model, [holders(model, r) for r in rows], [r.k.shape[0] for r in rows], tree.clusters)
    return dict(enumerate(ends)), [(c, ()) for c in reversed(tree.clusters)]


def sweep_inertias(
    motion: Motion, frozen: Motion, H: Hessian, rows: PropagatedRows, ends: Mapping[int, int], order: Order
) -> Eliminated:
    """Backward sweep over inertias and rows: lines 11-13, 15-20, 23 and 24.

    `motion` is that of the true joint angles, `frozen` that of the recursion, with rotors frozen.
    """
    e = Eliminated(frozen, [], {})

    def eliminate_rows(i: int) -> None:
        if here := [c for c, end in ends.items() if end == i]:
            root = e.roots[i] = rows.eliminate(i, here)
            if i:
                H.own[i] = articulated(H.own[i]).minus(-root.K.T, root.Y.T)

    for cluster, near in order:
        for i in reversed(cluster.bodies):
            eliminate_rows(i)
        node = node_of(motion, frozen, cluster, H, near)
        H.eliminate(node)
        e.passed.append(rows.propagate(node))
    eliminate_rows(0)
    return e


def sweep_forces(
    e: Eliminated, tau: Array, p: list[Array], l: list[Array]
) -> tuple[list[list[Array]], dict[int, Array], list[Array]]:
    """Backward sweep over forces and right-hand sides: lines 14, 15, 21 and 25.

    Gives the force u left to move each node's freedoms, y = L_RR^-1 l_R by root, and the forces p of links with all
    behind them.
    """
    xp, p, l = e.motion.xp, list(p), list(l)
    u, y = list[list[Array]](), dict[int, Array]()

    def eliminate_rows(i: int) -> None:
        if root := e.roots.get(i):
            y[i] = root.factor.solve(xp.vstack([l[c] for c in root.rows]))
            p[i] = p[i] - root.K.T @ y[i]
            for d, (LRd, _) in root.others.items():
                l[d] = l[d] - LRd.T @ y[i]

    for x in e.passed:
        for i in reversed(x.node.cluster.bodies):
            eliminate_rows(i)
        joint = xp.vstack([tau[0:0, :], *(tau[k : k + 1, :] for k in x.node.cluster.dofs)])
        left, beyond = x.node.drive(joint, p)
        u.append(left)
        for n, f in beyond.items():
            p[n] = p[n] + f
        for c, eT in x.pushes.items():
            for k, d_inv in reversed(list(enumerate(x.node.pivots))):
                l[c] = l[c] - eT[k].T @ (d_inv * left[k])
            l[c] = l[c] - x.power[c]
    eliminate_rows(0)
    return u, y, p


def roll_out(
    e: Eliminated, u: list[list[Array]], y: Mapping[int, Array], known: Known | None = None
) -> tuple[Array, list[Array], dict[int, Array]]:
    """Forward sweep, lines 26-32: joint accelerations, link accelerations, and multipliers by constraint.

    If accelerations of all links that support constrained ones are known, those of the others, and no multipliers.
    """
    a, vdot, lam = [e.motion.a0] * len(e.motion.model.links), dict[int, Array](), dict[int, Array]()
    if known is None and (root := e.roots.get(0)):
        lam |= root.multipliers(y[0], a[0], lam)
    for x, ux in zip(reversed(e.passed), reversed(u), strict=True):
        pushes = x.pushes if known is None else {}
        pushed = [sum((eT[k] @ lam[c] for c, eT in pushes.items()), uk) for k, uk in enumerate(ux)]
        found, moved = accelerated(x.node, pushed, a, known)
        vdot |= {k: found[n : n + 1, :] for n, k in enumerate(x.node.cluster.dofs)}
        for i in x.node.cluster.bodies:
            a[i] = moved[i]
            if known is None and (root := e.roots.get(i)):
                lam |= root.multipliers(y[i], a[i], lam)
    return e.motion.xp.vstack([e.motion.xp.zeros(0), *(vdot[k] for k in sorted(vdot))]), a, lam
