"""Closed loops inside the articulated body recursion: the loop-constrained articulated body algorithm.

    min sum 1/2 a_i^T H_ii a_i + p_i^T a_i - tau^T vdot + mu/2 |sum K_l a_l - k|^2 - lam^T (sum K_l a_l - k)

A constraint between links i and n adds mu K_i^T K_n to a block H_in: the links are neighbours. Links leave from the
tips in an order of few neighbours (planner/elimination.py); a degree of freedom that leaves, with U_n = H_ni s, takes

    H_nl <- H_nl - U_n U_l^T / d,    p_n <- p_n + U_n u / d,    vdot = (u - sum U_n^T a_n) / d ,

then a_i = X a_p + c_i hands its blocks to the parent (algorithms/clusters/nodes.py, where what leaves is a link or a
cluster). The multipliers follow by lam <- lam + mu (k - sum K a). sathya2025_lcaba_proxbbo, algorithms 1-3 (signs of
eqs. 30d, 30e and of line 31 corrected). O(n + m) for loops that are not coupled with many others; rows may be redundant
or singular. Without internal loops it is `constrained_aba`.
"""

from __future__ import annotations

from linkwork.algorithms.clusters.c_aba import in_order, loop_forces
from linkwork.algorithms.clusters.nodes import Loop
from linkwork.algorithms.clusters.recursion import recursion
from linkwork.algorithms.constrained.weights import embedded, part, settled
from linkwork.algorithms.iteration import Iteration
from linkwork.backends.ops import Array
from linkwork.constraints.clusters import ClusterTree, links_alone
from linkwork.model import Motion


def lcaba(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows (few links each); constraints with weight 0 in `active` are removed."""
    return on_tree(motion, links_alone(motion.model), tau, fext, mu, active)


def on_tree(
    motion: Motion, tree: ClusterTree, tau: Array, fext: Array | None, mu: Array, active: Array | None
) -> Iteration:
    """The same where what leaves is a link or a cluster; constraints that are in no cluster are penalised."""
    xp = motion.xp
    w = [1.0 if active is None else active[n, 0] for n in tree.outer]

    # tips to base: inertias and couplings
    r = recursion(motion, tree, fext, [mu * wc for wc in w])
    bias, m = r.motion.bias(fext), motion.model.rows
    guard = embedded(motion, tree.outer, active)

    def step(x: Array) -> tuple[Array, Array]:
        lam, p = [x[part(motion, n), :] for n in tree.outer], list(bias)
        for row, l, wc in zip(r.rows, lam, w, strict=True):
            for i, K in row.links.items():
                p[i] = p[i] - K.T @ (l + (mu * wc) * row.k)
        u, pA = r.drive(tau, p)
        vdot, a = r.accelerate(u)
        errors = [wc * (row.k - sum((K @ a[i] for i, K in row.links.items()), xp.zeros(row.k.shape[0])))
                  for row, wc in zip(r.rows, w, strict=True)]
        forces = {n: l + mu * e for n, l, e in zip(tree.outer, lam, errors, strict=True)}
        for node in r.nodes:
            if isinstance(node, Loop):
                forces |= loop_forces(r.motion, node, tau, vdot, a, pA, {}, [], [])
        return xp.vstack([in_order(motion, forces), vdot]), settled(motion, errors, vdot, x[m:, :])

    return Iteration(m + motion.model.nv, step, lambda x: (x[m:, :] + guard[0, 0], x[0:m, :]))
