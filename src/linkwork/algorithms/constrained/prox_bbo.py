"""Closed loops by `bbo` with a proximal term on the multipliers: redundant and singular loops are welcome.

    L + 1/mu in place of L,   l + lam/mu in place of l  (eq. 42c starts from k + lam/mu),   repeated until lam settles

sathya2025_lcaba_proxbbo, algorithms 4-6. The sweeps over inertias and rows happen once; a step sweeps over forces.
Suits rows over many links (centre of mass), which `lcaba` does not.
"""

from __future__ import annotations

from linkwork.algorithms.constrained.bbo import CarriedLoops
from linkwork.algorithms.constrained.constrained_aba import split
from linkwork.algorithms.constrained.weights import settled, weigh
from linkwork.algorithms.iteration import Iteration
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def prox_bbo(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows; constraints with weight 0 in `active` are removed."""
    xp = motion.xp
    rows, roots = weigh(motion, constraint_rows(motion), active)
    m = sum(r.k.shape[0] for r in rows)
    loops, p, damping = CarriedLoops(motion, rows, 1 / mu), motion.bias(fext), 1 / mu

    def step(x: Array) -> tuple[Array, Array]:
        lam = split(x[0:m, :], rows)
        vdot, new = loops.solve(tau, p, [r.k + damping * l for r, l in zip(rows, lam, strict=True)])
        return xp.vstack([new, vdot]), settled(motion, [damping * (new - x[0:m, :])], vdot, x[m:, :])

    return Iteration(m + motion.model.nv, step, lambda x: (x[m:, :], x[0:m, :] * roots))
