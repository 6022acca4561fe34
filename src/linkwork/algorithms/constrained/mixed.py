"""Loops and contacts, each penalised or carried, whichever is less work: `lcaba` and `prox_bbo` in one recursion.

    penalised:  H_in <- H_in + mu K_i^T K_n,   p_i <- p_i - mu K_i^T l,   and in the end  lam = mu (l - sum K_i a_i)
    carried:    rows (K, l, L + 1/mu) travel to the link where they have met, and lam = L^-1 (l - K a) goes there
                                                                                           with  l = k + lam_before / mu

Both eliminate the same variables of the same damped problem, multipliers first or links first, so that it takes the
same steps as either. A row that travels past neighbours (links that penalties couple) is held by them from then on:
K_n <- K_n - e U_n^T / d. The planner chooses for each constraint (planner/pivots.py). sathya2025_lcaba_proxbbo VII-D
leaves that for the future.
"""

from __future__ import annotations

from linkwork.algorithms.constrained.prox_bbo import on_tree
from linkwork.algorithms.iteration import Iteration
from linkwork.backends.ops import Array
from linkwork.constraints.clusters import links_alone
from linkwork.model import Motion
from linkwork.planner.pivots import chosen


def mixed(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows; constraints with weight 0 in `active` are removed."""
    return on_tree(motion, links_alone(motion.model), tau, fext, mu, active, chosen(motion.model))
