"""Constrained forward dynamics by `ltl` with a proximal term on the multipliers: redundant rows are welcome.

    [[-1/mu, J], [J^T, M]] [-lam+; vdot+] = [k + lam / mu; tau - c]

carpentier2021_proximal_sparse, eq. 18 and algorithm 1 (its mu is our 1/mu); sathya2025_lcaba_proxbbo, eqs. 12, 13. The
factorisation happens once, O(n d^2 + m d^2 + m^2 d + m^3); a step is a pair of triangular solves in constraint space.
"""

from __future__ import annotations

from linkwork.algorithms.constrained.kkt_factor import kkt_factor
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.constrained.weights import largest, weigh
from linkwork.algorithms.iteration import Iteration
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def prox_ltl(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows; constraints with weight 0 in `active` are removed."""
    motion, xp = motion.classical, motion.xp
    rows, roots = weigh(motion, constraint_rows(motion), active)
    damping = 1 / mu
    factor = kkt_factor(motion, rows, [xp.zeros(r.k.shape[0]) + damping for r in rows])

    # what does not change from step to step: the free motion, and what it leaves of the rows
    z = factor.joints.solve_LT(tau - rnea(motion, None, fext))
    free = joint_targets(motion, rows) - factor.forces_to_rows(z)

    def step(lam: Array) -> tuple[Array, Array]:
        new = factor.constraints.solve(free + damping * lam)
        return new, largest(motion, [damping * (new - lam)])

    def finish(lam: Array) -> tuple[Array, Array]:
        held = z + factor.rows_to_joints(lam, factor.Y)
        return factor.joints.solve_L(factor.joints.solve_D(held)), lam * roots

    return Iteration(factor.m, step, finish)

