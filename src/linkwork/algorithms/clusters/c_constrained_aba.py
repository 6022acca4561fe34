"""Contacts by augmented Lagrangian and local loops in clusters, both inside the articulated body recursion.

    min 1/2 |a - I^-1 f|^2_I + mu/2 |K a - k|^2 - lam^T (K a - k)  over  vdot = G yddot + g;   lam <- lam + mu (k - K a)

`constrained_aba` (sathya2025_lcaba_proxbbo without its loops) on the cluster tree of chignoli2023_clusters, which
neither paper has: O(N l^3 + m), contacts may be redundant and are switched at run time, and gears hold exactly at every
step. Rows over single links besides local loops; weights `active` of local loops are not looked at.
"""

from __future__ import annotations

from linkwork.algorithms.clusters.c_aba import in_order, loop_forces
from linkwork.algorithms.clusters.nodes import Loop
from linkwork.algorithms.clusters.recursion import outer_rows, recursion
from linkwork.algorithms.constrained.constrained_aba import penalties
from linkwork.algorithms.constrained.weights import settled
from linkwork.algorithms.iteration import Iteration
from linkwork.backends.ops import Array
from linkwork.constraints.clusters import clusters
from linkwork.model import Motion


def c_constrained_aba(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Contacts, each weighted by `active`, and local loops."""
    xp, outer = motion.xp, clusters(motion.model).outer
    w = [1.0 if active is None else active[n, 0] for n in outer]

    # tips to base: inertias, with what contacts add to their links
    r = recursion(motion, fext, lambda at, tree: penalties(at, outer_rows(at, tree), [mu * wc for wc in w]))
    rows, bias = outer_rows(r.motion, r.tree), r.motion.bias(fext)
    m = motion.model.rows

    def step(x: Array) -> tuple[Array, Array]:
        every, start = dict[int, Array](), 0
        for n, c in enumerate(motion.model.constraints):
            every[n], start = x[start : start + c.rows, :], start + c.rows
        lam = [every[n] for n in outer]
        p = list(bias)
        for row, l, wc in zip(rows, lam, w, strict=True):
            for i, K in row.links.items():
                p[i] = p[i] - K.T @ (l + (mu * wc) * row.k)
        u, pA = r.drive(tau, p)
        vdot, a = r.accelerate(u)
        errors = [wc * (row.k - sum((K @ a[i] for i, K in row.links.items()), xp.zeros(row.k.shape[0])))
                  for row, wc in zip(rows, w, strict=True)]
        forces = {n: l + mu * e for n, l, e in zip(outer, lam, errors, strict=True)}
        for node in r.nodes:
            if isinstance(node, Loop):
                forces |= loop_forces(r, node, tau, vdot, a, pA, {}, [], [])
        return xp.vstack([in_order(motion, forces), vdot]), settled(motion, errors, vdot, x[m:, :])

    return Iteration(m + motion.model.nv, step, lambda x: (x[m:, :], x[0:m, :]))
