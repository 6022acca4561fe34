"""Contacts and long loops by augmented Lagrangian, local loops in clusters, in one recursion.

    min 1/2 |a - I^-1 f|^2_I + mu/2 |K a - k|^2 - lam^T (K a - k)  over  vdot = G yddot + g;   lam <- lam + mu (k - K a)

`lcaba` (sathya2025_lcaba_proxbbo) on the cluster tree of chignoli2023_clusters, which neither paper has: eliminating a
cluster couples its neighbours and its output body as a link would. Gears hold exactly at every step; contacts and long
loops may be redundant and are switched at run time, embedded couplings are not. O(N l^3 + m) for loops that are not
coupled with many others.
"""

from __future__ import annotations

from linkwork.algorithms.common.iteration import Iteration
from linkwork.algorithms.constrained.lcaba import on_tree
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import clusters


def c_lcaba(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows (few links each) besides local loops, from forces `lam0`.

    Constraints with weight 0 in `active` are removed.
    """
    return on_tree(motion, clusters(motion.model), tau, fext, mu, active, lam0)
