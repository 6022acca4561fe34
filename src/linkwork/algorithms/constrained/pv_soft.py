"""Soft constraints: Gauss' principle with a quadratic penalty on violated rows.

    min sum 1/2 |a_i - I_i^-1 f_i|^2_I + 1/2 (K a - k)^T R^-1 (K a - k),       lam = R^-1 (k - K a)

sathya2023_pv_lqr section VI, eq. 52 (there f += K^T R^-1 k): `aba` with inertias I + K^T R^-1 K. O(n + m).
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import left_over, over_links, per_constraint
from linkwork.algorithms.common.articulated import articulated
from linkwork.algorithms.constrained.constrained_aba import added_inertias
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def pv_soft(
    motion: Motion, tau: Array, fext: Array | None = None, *, R: list[Array], active: Array | None = None
) -> tuple[Array, Array]:
    """`R` has one column per constraint: the softness of each row, in (m/s^2)/N or (rad/s^2)/Nm."""
    xp, rows = motion.xp, [over_links(motion, r) for r in constraint_rows(motion)]
    w = per_constraint(motion, rows, active)
    firm = [wc * (1 / Rc) for wc, Rc in zip(w, R, strict=True)]
    art = articulated(motion, added_inertias(motion, rows, firm))
    pA = motion.bias(fext)
    for r, f in zip(rows, firm, strict=True):
        for i, K in r.links.items():
            pA[i] = pA[i] - K.T @ (f * r.k)
    vdot, a = art.accelerate(art.drive(tau, pA)[0])
    lam = [f * e for f, e in zip(firm, left_over(motion, rows, a)[0], strict=True)]
    return vdot, xp.vstack([xp.zeros(0), *lam])
