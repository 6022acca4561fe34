"""Soft loops and contacts by propagated rows, whose multipliers are eliminated at their loop root.

    L + R in place of L:     (L + R) lam = l - K a_i  at the loop root i,      so that  lam = R^-1 (k - sum K_l a_l)

`bbo` with compliance: sathya2025_lcaba_proxbbo, algorithm 4 with R, by row, in place of 1/mu, once. R is added to what
rows move by themselves: nothing is divided by it, and both limits are exact, R -> 0 (`bbo`, for independent rows) and
R -> infinity (no forces). Suits rows over many links, which `lcaba_soft` does not. O(n + m) for loops not coupled.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import weigh
from linkwork.algorithms.common.columns import in_order
from linkwork.algorithms.common.hessian import Hessian
from linkwork.algorithms.common.propagated import PropagatedRows
from linkwork.algorithms.constrained.bbo import at_loop_roots, roll_out, sweep_forces, sweep_inertias
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion
from linkwork.structure.clusters import links_alone


def bbo_soft(
    motion: Motion, tau: Array, fext: Array | None = None, *, R: list[Array], active: Array | None = None
) -> tuple[Array, Array]:
    """`R` has one column per constraint: the softness of each row, in (m/s^2)/N or (rad/s^2)/Nm."""
    rows, roots = weigh(motion, constraint_rows(motion), active)
    ends, order = at_loop_roots(motion.model, links_alone(motion.model), rows)
    soft = PropagatedRows(motion, dict(enumerate(rows)), dict(enumerate(R)))
    e = sweep_inertias(motion, motion, Hessian(motion), soft, ends, order)
    u, y, _ = sweep_forces(e, tau, motion.bias(fext), [r.k for r in rows])
    vdot, _, lam = roll_out(e, u, y)
    return vdot, in_order(motion, lam) * roots
