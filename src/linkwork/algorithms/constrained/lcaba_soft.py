"""Soft loops and contacts inside articulated bodies: quadratic penalties on violated rows.

    min sum 1/2 a_i^T H_ii a_i + p_i^T a_i - tau^T vdot + 1/2 |sum K_l a_l - k|^2_(R^-1),   lam = R^-1 (k - sum K_l a_l)

`lcaba` with R^-1 in place of mu, once: sathya2023_pv_lqr, section VI, with the sweeps of sathya2025_lcaba_proxbbo,
algorithm 1. Without internal loops it is `pv_soft`. O(n + m) for loops that are not coupled with many others. For
R -> infinity rows vanish; for R -> 0 they become rigid, and digits are lost as 1/R grows (`bbo_soft` keeps them).
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import left_over
from linkwork.algorithms.common.columns import stacked
from linkwork.algorithms.common.recursion import recursion
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import links_alone


def lcaba_soft(
    motion: Motion, tau: Array, fext: Array | None = None, *, R: list[Array], active: Array | None = None
) -> tuple[Array, Array]:
    """`R` has one column per constraint: the softness of each row, in (m/s^2)/N or (rad/s^2)/Nm."""
    firm = [(1.0 if active is None else active[n, 0]) * (1 / Rc) for n, Rc in enumerate(R)]

    # tips to base: inertias and couplings, then forces
    r, p = recursion(motion, links_alone(motion.model), fext, firm), motion.bias(fext)
    for row, f in zip(r.rows, firm, strict=True):
        for i, K in row.links.items():
            p[i] = p[i] - K.T @ (f * row.k)
    u, _ = r.drive(tau, p)

    # base to tips: accelerations
    vdot, a = r.accelerate(u)
    errors, _ = left_over(motion, r.rows, a)
    return vdot, stacked(motion, [f * e for f, e in zip(firm, errors, strict=True)])
