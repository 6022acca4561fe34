"""Forward dynamics with local loops: the cluster-based articulated body algorithm.

    yddot = (G^T M G)^-1 G^T (tau - c - M g),   vdot = G yddot + g,    without forming M

chignoli2023_clusters, algorithm 1: O(N l^3) for N clusters of at most l bodies. (q, v) satisfy the loops' constraints;
positions and velocities that do not are taken as they are, and the constraints hold for accelerations.

Beyond the paper: contacts and long loops, which are in no cluster, are eliminated by the PV recursion on the cluster
tree (sathya2023_pv_lqr, algorithm 1); their rows must be independent. The forces of local loops come from the
dependent joints, K_D^T lam = (force that moves them) - tau. Rotors are frozen, their mass lumped into the links that
carry them (structure/rotor_lumping.py): exact dynamics cost hardly more than those of a robot without rotors.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwork.algorithms.common.activation import left_over, met, over_links
from linkwork.algorithms.common.certificates import balanced, kept, trusted
from linkwork.algorithms.common.cluster_node import ClusterNode
from linkwork.algorithms.common.columns import in_order
from linkwork.algorithms.common.loop_forces import loop_forces
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.algorithms.common.recursion import Held, hold, outer_rows, recursion
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import clusters


def c_aba(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    # pass 1, tips to base: inertias of clusters, then bias forces
    r = recursion(motion, clusters(motion.model), fext)
    u, pA = r.drive(tau, r.motion.bias(fext))

    # the constraints that are in no cluster
    rows = outer_rows(r.motion, r.tree)
    held = hold(r, rows, u)
    lam = solved(r.motion, held, lambda which: least_pivots(motion, [r.tree.outer[c] for c in which]))
    for n, pushes in enumerate(held.pushes):
        for c, e in pushes.items():
            u[n] = [uk + eT @ lam[c] for uk, eT in zip(u[n], e, strict=True)]

    # pass 2, base to tips: accelerations; then the forces of local loops
    vdot, a = r.accelerate(u)
    forces, propagated = dict(zip(r.tree.outer, lam, strict=True)), list(zip(range(len(rows)), rows, lam, strict=True))
    for n, node in enumerate(r.nodes):
        if isinstance(node, ClusterNode):
            forces |= loop_forces(r.motion, node, tau, vdot, a, pA, held.forces[n], propagated)
    guard = kept(motion, r.tree, vdot) + met(r.motion, *left_over(r.motion, [over_links(r.motion, x) for x in rows], a))
    lam_all = in_order(motion, forces)
    guard = guard + trusted(motion, balanced(motion, r.tree, tau, lambda: rnea(motion, vdot, fext), lam_all, vdot))
    return vdot + guard[0, 0], lam_all


def solved(motion: Motion, held: Held, least: Callable[[list[int]], Array]) -> list[Array]:
    """L lam = l, for each group of constraints that L couples; `least` are the least pivots."""
    xp, lam, left = motion.xp, list(held.l), set(range(len(held.l)))
    while left:
        group = {min(left)}
        while more := {d for pair in held.L if group & set(pair) for d in pair} - group:
            group |= more
        left -= group
        which, sizes = sorted(group), [held.l[c].shape[0] for c in sorted(group)]
        blocks = [
            [
                held.L[c, d] if (c, d) in held.L else held.L[d, c].T if (d, c) in held.L else xp.zeros(m, n)
                for d, n in zip(which, sizes, strict=True)
            ]
            for c, m in zip(which, sizes, strict=True)
        ]
        factor = xp.factor_spd(xp.vstack([xp.hstack(row) for row in blocks]), least(which))
        x = factor.solve(xp.vstack([held.l[c] for c in which]))
        for c in which:
            lam[c], x = x[0 : lam[c].shape[0], :], x[lam[c].shape[0] :, :]
    return lam
