"""Constrained forward dynamics by `pv` with a proximal term on the multipliers: redundant rows are welcome.

    (L + 1/mu) lam+ = l - K_0 a_0 + lam / mu

The sweep to the base and the factorisation happen once; a step is a pair of triangular solves in constraint space.
sathya2025_lcaba_proxbbo, proxPV (its reference 11). O(n + m^2 d + m^3), O(m^2) per step.
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.constrained.constrained_aba import split
from linkwork.algorithms.constrained.dual import to_base
from linkwork.algorithms.constrained.weights import largest, weigh
from linkwork.algorithms.iteration import Iteration
from linkwork.algorithms.tree.articulated import articulated
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def prox_pv(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows; constraints with weight 0 in `active` are removed."""
    xp = motion.xp
    rows, roots = weigh(motion, constraint_rows(motion), active)
    art = articulated(motion)
    u, _ = art.drive(tau, motion.bias(fext))
    dual = to_base(art, rows, u)
    every = list(range(len(rows)))
    L, r = dual.matrix(every), dual.right_side(every)
    m = L.shape[0]
    factor = xp.factor_spd(L + xp.constant(np.eye(m)) / mu, guard=True)

    def step(lam: Array) -> tuple[Array, Array]:
        new = factor.solve(r + lam / mu)
        return new, largest(motion, [(new - lam) / mu])

    def finish(lam: Array) -> tuple[Array, Array]:
        vdot, _ = art.accelerate(dual.add_forces(u, split(lam, rows)))
        return vdot, lam * roots

    return Iteration(m, step, finish)

