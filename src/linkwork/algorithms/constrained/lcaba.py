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

from collections.abc import Callable

from linkwork.algorithms.common.certificates import balanced, kept, unmet
from linkwork.algorithms.common.cluster_node import ClusterNode
from linkwork.algorithms.common.columns import in_order, split
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.loop_forces import loop_forces
from linkwork.algorithms.common.penalties import penalties
from linkwork.algorithms.common.recursion import recursion
from linkwork.algorithms.common.weights import active_only, left_over
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, links_alone


def lcaba(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows (few links each); constraints with weight 0 in `active` are removed."""
    return on_tree(motion, links_alone(motion.model), tau, fext, mu, active)


def on_tree(
    motion: Motion, tree: ClusterTree, tau: Array, fext: Array | None, mu: Array, active: Array | None
) -> Iteration:
    """The same where nodes are links or clusters; constraints that are in no cluster are penalised."""
    xp = motion.xp
    w = [1.0 if active is None else active[n, 0] for n in tree.outer]

    # tips to base: inertias and couplings
    firm = [mu_c * wc for mu_c, wc in zip(penalties(motion, mu, tree.outer), w, strict=True)]
    r = recursion(motion, tree, fext, firm)
    bias, loops = r.motion.bias(fext), [node for node in r.nodes if isinstance(node, ClusterNode)]

    def step(lam: Array) -> Step:
        parts, p = split(lam, r.rows), list(bias)
        for row, l, f in zip(r.rows, parts, firm, strict=True):
            for i, K in row.links.items():
                p[i] = p[i] - K.T @ (l + f * row.k)
        u, pA = r.drive(tau, p)
        vdot, a = r.accelerate(u)
        errors, size = left_over(motion, r.rows, a)
        new = [l + f * e for l, f, e in zip(parts, firm, errors, strict=True)]
        within: dict[int, Array] = {}
        for node in loops:
            within |= loop_forces(r.motion, node, tau, vdot, a, pA, {}, [])
        return Step(
            xp.vstack([xp.zeros(0), *new]),
            active_only(motion, errors, w),
            size,
            xp.vstack([vdot, in_order(motion, within)]),
        )

    finish = in_parts(motion, tree, active)
    return Iteration(
        sum(row.k.shape[0] for row in r.rows), step, finish, xp, certificate(motion, tree, tau, fext, finish)
    )


Finish = Callable[[Array, Array], tuple[Array, Array]]


def certificate(
    motion: Motion, tree: ClusterTree, tau: Array, fext: Array | None, finish: Finish
) -> Callable[[Array, Array], tuple[Array, Array, Array]] | None:
    """The check of an iteration's embedded rows, if there are any."""
    if len(tree.outer) == len(motion.model.constraints):
        return None

    def beside(lam: Array, found: Array) -> tuple[Array, Array, Array]:
        vdot, forces = finish(lam, found)
        return *unmet(motion, tree, vdot), balanced(motion, tree, tau, fext, vdot, forces)

    return beside


def in_parts(motion: Motion, tree: ClusterTree, active: Array | None) -> Finish:
    """The end of an iteration that found accelerations and, below them, forces of the loops in clusters."""
    nv, constraints = motion.model.nv, motion.model.constraints
    inside = sorted(set(range(len(constraints))).difference(tree.outer))

    def finish(lam: Array, found: Array) -> tuple[Array, Array]:
        vdot, forces = found[0:nv, :], dict[int, Array]()
        for which, x in ((tree.outer, lam), (inside, found[nv:, :])):
            for n in which:
                forces[n], x = x[0 : constraints[n].rows, :], x[constraints[n].rows :, :]
        return vdot + kept(motion, tree, vdot, active)[0, 0], in_order(motion, forces)

    return finish
