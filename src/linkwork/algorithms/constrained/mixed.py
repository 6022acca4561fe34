"""Loops and contacts, each embedded, penalised or propagated, whichever is less work.

    embedded:    its joints are eliminated together with their links, in a cluster:  vdot = G yddot + g        (c_aba)
    penalised:   H_in <- H_in + mu K_i^T K_n,   p_i <- p_i - mu K_i^T l,   and in the end  lam = mu (l - sum K_i a_i)
    propagated:  rows (K, l, L + 1/mu) to their loop root, where lam = L^-1 (l - K a) is eliminated
                                                                                           with  l = k + lam_before / mu

All eliminate the same variables of the same problem, in another order: a constraint with the joints it ties, before
them, or after its links. A row propagated past neighbours (links that penalties couple) holds them from then on:
K_n <- K_n - e U_n^T / d. The planner chooses for each constraint (structure/constraint_treatment.py).
sathya2025_lcaba_proxbbo VII-D leaves that for the future.
"""

from __future__ import annotations

from linkwork.algorithms.common.iteration import Iteration
from linkwork.algorithms.constrained.prox_bbo import on_tree
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.constraint_treatment import chosen, tree_of


def mixed(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows, from forces `lam0`; weight 0 in `active` removes a constraint.

    Couplings are embedded only without `active`.
    """
    return _mixed(motion, tau, fext, mu, active, lam0, "couplings" if active is None else "nothing")


def c_mixed(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows, from forces `lam0`; local loops may be embedded, and then cannot be switched off.

    What holds links in or behind an embedded linkage is propagated: penalties would lose digits where it is nearly
    singular.
    """
    return _mixed(motion, tau, fext, mu, active, lam0, "loops")


def _mixed(
    motion: Motion,
    tau: Array,
    fext: Array | None,
    mu: Array,
    active: Array | None,
    lam0: Array | None,
    embed: str,
) -> Iteration:
    mix = chosen(motion.model, embed)
    tree = tree_of(motion.model, mix.embedded)
    return on_tree(motion, tree, tau, fext, mu, active, lam0, mix.among(tree.outer))
