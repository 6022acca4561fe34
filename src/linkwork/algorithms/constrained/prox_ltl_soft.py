"""Constrained forward dynamics by augmented Lagrangian in joint space: `ltl_soft`, repeated until the rows hold.

    (M + mu J^T J) vdot+ = tau - c + J^T (mu k + lam),       lam+ = lam + mu (k - J vdot+)

proxLTLs: sathya2025_lcaba_proxbbo, eqs. 14 and 15 (14a lacks M before the free acceleration, and our lam has the other
sign). O(n d^2 + m d^2) to factor, O(n d + m d) per step, nothing of order m^2: for many rows on few joints. Rows may be
redundant or singular; digits are lost as mu grows.
"""

from __future__ import annotations

from linkwork.algorithms.constrained.constrained_aba import split
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.constrained.ltl_soft import joint_forces, penalised, row_values
from linkwork.algorithms.constrained.weights import per_constraint, settled
from linkwork.algorithms.delassus.ltl import joint_columns
from linkwork.algorithms.iteration import Iteration
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def prox_ltl_soft(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows; each constraint weighted by `active`, and removed by weight 0."""
    motion = motion.classical
    xp, rows = motion.xp, constraint_rows(motion)
    m = sum(r.k.shape[0] for r in rows)
    w = per_constraint(motion, rows, active)
    firm = [(mu * wc) * xp.constant([1.0] * r.k.shape[0]) for r, wc in zip(rows, w, strict=True)]
    JT = [joint_columns(motion, r) for r in rows]
    factor = penalised(motion, JT, firm)
    k = split(joint_targets(motion, rows), rows)
    free = tau - rnea(motion, None, fext) + joint_forces(motion, JT, [f * kc for f, kc in zip(firm, k, strict=True)])

    def step(x: Array) -> tuple[Array, Array]:
        lam = split(x[0:m, :], rows)
        vdot = factor.solve(free + joint_forces(motion, JT, lam))
        errors = [wc * (kc - row_values(motion, c, vdot, kc.shape[0])) for wc, kc, c in zip(w, k, JT, strict=True)]
        new = [l + mu * e for l, e in zip(lam, errors, strict=True)]
        return xp.vstack([*new, vdot]), settled(motion, errors, vdot, x[m:, :])

    return Iteration(m + motion.model.nv, step, lambda x: (x[m:, :], x[0:m, :]))
