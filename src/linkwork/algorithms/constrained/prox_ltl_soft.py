"""Constrained forward dynamics by augmented Lagrangian in joint space: `ltl_soft`, iterated.

    (M + mu J^T J) vdot+ = tau - c + J^T (mu k + lam),       lam+ = lam + mu (k - J vdot+)

proxLTLs: sathya2025_lcaba_proxbbo, eqs. 14 and 15 (14a lacks M before the free acceleration, and our lam has the other
sign). O(n d^2 + m d^2) to factor, O(n d + m d) per step, nothing of order m^2: for many rows on few joints. Rows may be
redundant or singular; digits are lost as mu grows.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import active_only, per_constraint, squared, starting
from linkwork.algorithms.common.columns import split, stacked
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.penalties import inertias, penalties
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.constrained.ltl_soft import joint_forces, penalised, row_values
from linkwork.algorithms.delassus.ltl import joint_columns
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def prox_ltl_soft(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows, from forces `lam0`; each constraint weighted by `active`, and removed by weight 0."""
    motion = motion.classical
    xp, rows = motion.xp, constraint_rows(motion)
    w = per_constraint(motion, rows, active)
    firm = [
        (mu_c * wc) * xp.constant([1.0] * r.k.shape[0])
        for r, wc, mu_c in zip(rows, w, penalties(motion, mu), strict=True)
    ]
    JT = [joint_columns(motion, r) for r in rows]
    factor = penalised(motion, JT, firm)
    k = split(joint_targets(motion, rows), rows)
    free = tau - rnea(motion, None, fext) + joint_forces(motion, JT, [f * kc for f, kc in zip(firm, k, strict=True)])

    resting = motion.accelerations(None)
    at_rest = [[r.k, *(K @ resting[l] for l, K in r.links.items())] for r in rows]

    def step(lam: list[Array], free: Array, k: list[Array]) -> Step:
        vdot = factor.solve(free + joint_forces(motion, JT, lam))
        errors = [kc - row_values(motion, c, vdot, kc.shape[0]) for kc, c in zip(k, JT, strict=True)]
        new = [l + f * e for l, f, e in zip(lam, firm, errors, strict=True)]
        moved = [[c.T * vdot[j, 0] for j, c in columns.items()] for columns in JT]
        squares = [squared([*still, *moving]) for still, moving in zip(at_rest, moved, strict=True)]
        return Step(stacked(motion, new), active_only(motion, errors, w), stacked(motion, squares), vdot)

    def change(d: Array) -> Step:
        return step(split(d, rows), xp.zeros(motion.model.nv), [xp.zeros(x.shape[0]) for x in k])

    start = starting(motion, rows, lam0, active)
    return Iteration(
        stacked(motion, start), step(start, free, k), change, lambda lam, vdot: (vdot, lam), inertias(motion), xp
    )
