"""Constrained forward dynamics by `ltl` with a proximal term: rows may be redundant.

    [[-1/mu, J], [J^T, M]] [-lam+; vdot+] = [k + lam / mu; tau - c]

carpentier2021_proximal_sparse, eq. 18 and algorithm 1 (its mu is our 1/mu); sathya2025_lcaba_proxbbo, eqs. 12, 13. The
factorisation happens once, O(n d^2 + m d^2 + m^2 d + m^3); a step is a pair of triangular solves in constraint space.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import errors_of, squared, starting_column, weigh
from linkwork.algorithms.common.columns import stacked
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.penalties import inertias, penalties
from linkwork.algorithms.constrained.kkt_factor import kkt_factor
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def prox_ltl(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows, from forces `lam0`; constraints with weight 0 in `active` are removed."""
    motion, xp = motion.classical, motion.xp
    rows, roots = weigh(motion, constraint_rows(motion), active)
    by_row = [xp.zeros(r.k.shape[0]) + 1 / mu_c for r, mu_c in zip(rows, penalties(motion, mu), strict=True)]
    damping = xp.vstack([xp.zeros(0), *by_row])
    factor = kkt_factor(motion, rows, by_row)

    # what does not change from step to step: the free motion, and the rows' errors with it
    z = factor.joints.solve_LT(tau - rnea(motion, None, fext))
    target = joint_targets(motion, rows)
    free = target - factor.forces_to_rows(z)
    moved = [squared([xp.zeros(r.k.shape[0]), *(u.T * z[j, 0] for j, u in U.items())]) for r, U in zip(rows, factor.Uj)]
    squares = squared([target, free]) + stacked(motion, moved)

    def step(lam: Array, free: Array) -> Step:
        new = factor.constraints.solve(free + damping * lam)
        return Step(new, damping * (new - lam), squares, xp.zeros(0))

    def change(d: Array) -> Step:
        return step(d, xp.zeros(factor.m))

    def finish(lam: Array, found: Array) -> tuple[Array, Array]:
        held = z + factor.rows_to_joints(lam, factor.Y)
        return factor.joints.solve_L(factor.joints.solve_D(held)), lam * roots

    def errors(lam: Array, found: Array) -> Array:
        return errors_of(motion, rows, finish(lam, found)[0])

    start = starting_column(motion, rows, lam0, active)
    of_result = None if xp.single else errors  # float32 rounds them to more than the tolerance
    return Iteration(start, step(start, free), change, finish, inertias(motion), xp, None, of_result)
