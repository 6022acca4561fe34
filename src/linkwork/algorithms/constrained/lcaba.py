"""Closed loops in articulated bodies: the loop-constrained articulated body algorithm.

    min sum 1/2 a_i^T H_ii a_i + p_i^T a_i - tau^T vdot + mu/2 |sum K_l a_l - k|^2 - lam^T (sum K_l a_l - k)

A constraint between links i and n adds mu K_i^T K_n to a block H_in: the links are neighbours. Links are eliminated
from the tips in an order of few neighbours (structure/elimination.py); for each degree of freedom, with U_n = H_ni s,

    H_nl <- H_nl - U_n U_l^T / d,    p_n <- p_n + U_n u / d,    vdot = (u - sum U_n^T a_n) / d ,

then a_i = X a_p + c_i moves its blocks to the parent (algorithms/common/link_node.py; what is eliminated is a link or a
cluster). The multipliers follow by lam <- lam + mu (k - sum K a). sathya2025_lcaba_proxbbo, algorithms 1-3 (signs of
eqs. 30d, 30e and of line 31 corrected). O(n + m) for loops that are not coupled with many others; rows may be redundant
or singular. Without internal loops it is `constrained_aba`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from linkwork.algorithms.common.activation import active_only, change_of, left_over, starting
from linkwork.algorithms.common.certificates import DOUBTED, MOVED, balanced, kept, unmet
from linkwork.algorithms.common.cluster_node import ClusterNode
from linkwork.algorithms.common.columns import by_constraint, in_order, split, stacked
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.loop_forces import Propagated, by_motion, loop_forces
from linkwork.algorithms.common.penalties import inertias, penalties
from linkwork.algorithms.common.recursion import Recursion, recursion
from linkwork.algorithms.common.supports import supporting
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, links_alone


def lcaba(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows (few links each), from forces `lam0`; constraints with weight 0 in `active` are removed."""
    return on_tree(motion, links_alone(motion.model), tau, fext, mu, active, lam0)


def on_tree(
    motion: Motion,
    tree: ClusterTree,
    tau: Array,
    fext: Array | None,
    mu: Array,
    active: Array | None,
    lam0: Array | None,
) -> Iteration:
    """The same where nodes are links or clusters; constraints that are in no cluster are penalised."""
    w = [1.0 if active is None else active[n, 0] for n in tree.outer]

    # tips to base: inertias and couplings
    firm = [mu_c * wc for mu_c, wc in zip(penalties(motion, mu, tree.outer), w, strict=True)]
    r = recursion(motion, tree, fext, firm)
    moving = supporting(motion.model, (i for row in r.rows for i in row.links), tree.clusters)
    inside, beside = moving.parted([node for node in r.nodes if isinstance(node, ClusterNode)])

    def step(r: Recursion, tau: Array, p: list[Array], lam: list[Array]) -> tuple[Step, list[list[Array]], list[Array]]:
        p = list(p)
        for row, l, f in zip(r.rows, lam, firm, strict=True):
            for i, K in row.links.items():
                p[i] = p[i] - K.T @ (l + f * row.k)
        u, pA = r.drive(tau, p)
        vdot, a = r.accelerate(u)
        errors, squares = left_over(motion, r.rows, a)
        new = [l + f * e for l, f, e in zip(lam, firm, errors, strict=True)]
        return Step(stacked(motion, new), active_only(motion, errors, w), squares, moving.pack(motion, vdot, a)), u, pA

    start = starting(motion, r.rows, lam0, active, tree.outer)
    bias = r.motion.bias(fext)
    first, u, pA = step(r, tau, bias, start)

    def change(d: Array) -> Step:
        of = change_of(motion, r.rows, d)
        return step(replace(r.at_rest, rows=of.rows), of.tau, of.p, of.lam)[0]

    def finish(lam: Array, found: Array) -> tuple[Array, Array]:
        vdot, a = r.accelerate(u, moving.unpack(found)[0])
        forces = by_constraint(motion, tree.outer, lam) | embedded_forces(r.motion, beside, tau, vdot, a, pA)
        forces |= by_motion(r.motion, inside, tau, bias, vdot, list(zip(r.rows, split(lam, r.rows), strict=True)))
        return vdot + kept(motion, tree, vdot, active)[0, 0], in_order(motion, forces)

    return Iteration(
        stacked(motion, start),
        first,
        change,
        finish,
        inertias(motion, tree.outer),
        motion.xp,
        certificate(motion, tree, tau, fext, finish),
    )


def embedded_forces(
    motion: Motion,
    nodes: Sequence[ClusterNode],
    tau: Array,
    vdot: Array,
    a: list[Array],
    pA: list[Array],
    held: Mapping[int, dict[int, dict[int, Array]]] | None = None,
    propagated: Sequence[Propagated] = (),
) -> dict[int, Array]:
    """Forces of the loops in some clusters, by constraint.

    `held` are those of propagated rows, by the cluster's first body.
    """
    out: dict[int, Array] = {}
    for node in nodes:
        out |= loop_forces(motion, node, tau, vdot, a, pA, (held or {}).get(node.cluster.bodies[0], {}), propagated)
    return out


def constraints_of(nodes: Sequence[ClusterNode]) -> list[int]:
    """The constraints that some clusters embed, in order."""
    return sorted(n for node in nodes for n in node.cluster.constraints)


Finish = Callable[[Array, Array], tuple[Array, Array]]


def certificate(
    motion: Motion, tree: ClusterTree, tau: Array, fext: Array | None, finish: Finish
) -> Callable[[Array, Array], tuple[Array, Array, Array]] | None:
    """The check of an iteration's embedded rows, if there are any."""
    if len(tree.outer) == len(motion.model.constraints):
        return None

    def beside(lam: Array, found: Array) -> tuple[Array, Array, Array]:
        vdot, forces = finish(lam, found)
        most = MOVED if motion.xp.single else DOUBTED
        flag = balanced(motion, tree, tau, lambda: rnea(motion, vdot, fext), forces, vdot, most=most)
        return *unmet(motion, tree, vdot), flag

    return beside
