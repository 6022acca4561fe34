"""Contacts and long loops propagated to their roots, local loops in clusters, with a proximal term.

    L + 1/mu in place of L,   l + lam/mu in place of l,   K_p = K_i P^T  through each joint or cluster

`prox_bbo` (sathya2025_lcaba_proxbbo, algorithms 4-6) on the cluster tree of chignoli2023_clusters, which neither paper
has. A row over two bodies of a cluster is eliminated at the cluster's output body. Suits rows over many links
(centre of mass), which `c_lcaba` does not; couplings that are embedded cannot be switched.
"""

from __future__ import annotations

from linkwork.algorithms.common.iteration import Iteration
from linkwork.algorithms.constrained.prox_bbo import on_tree
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import clusters


def c_prox_bbo(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows besides local loops, from forces `lam0`; constraints with weight 0 in `active` are removed."""
    return on_tree(motion, clusters(motion.model), tau, fext, mu, active, lam0)
