"""Soft constraints in joint space: Gauss' principle with a quadratic penalty on violated rows.

    (M + J^T R^-1 J) vdot = tau - c + J^T R^-1 k,       lam = R^-1 (k - J vdot)

sathya2023_pv_lqr, section VI, in joint space. O(n d^2 + m d^2). Rows on single links keep the pattern of the tree;
rows over several fill in the joints between them (sathya2025_lcaba_proxbbo, III-E), and nothing else.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import per_constraint
from linkwork.algorithms.common.columns import split
from linkwork.algorithms.common.least_inertia import DENSE, holding, may_be_lost
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.delassus.ltl import Columns, joint_columns
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL, elimination_parents
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def ltl_soft(
    motion: Motion, tau: Array, fext: Array | None = None, *, R: list[Array], active: Array | None = None
) -> tuple[Array, Array]:
    """`R` has one column per constraint: the softness of each row, in (m/s^2)/N or (rad/s^2)/Nm."""
    motion = motion.classical
    xp, rows = motion.xp, constraint_rows(motion)
    w = per_constraint(motion, rows, active)
    firm = [wc * (1 / Rc) for wc, Rc in zip(w, R, strict=True)]
    JT = [joint_columns(motion, r) for r in rows]
    factor = penalised(motion, JT, firm)
    k = split(joint_targets(motion, rows), rows)
    pushed = joint_forces(motion, JT, [f * kc for f, kc in zip(firm, k, strict=True)])
    vdot = factor.solve(tau - rnea(motion, None, fext) + pushed)
    lam = [f * (kc - row_values(motion, c, vdot, f.shape[0])) for f, kc, c in zip(firm, k, JT, strict=True)]
    return vdot, xp.vstack([xp.zeros(0), *lam])


def penalised(motion: Motion, JT: list[Columns], firm: list[Array]) -> LTL:
    """M + J^T diag(firm) J, factorised; NaN where a joint has lost its inertia in M, which the sum hides."""
    t, xp = motion.model.topology, motion.xp
    M = crba(motion)
    H = [[M[i, j] for j in range(i + 1)] for i in range(motion.model.nv)]
    if may_be_lost(motion):
        alone = LTL(M, t.dof_parent, xp, held=holding(motion, DENSE))
        H[0][0] = H[0][0] + sum((xp.where(d > 0, 0.0, float("nan")) for d in alone.pivots), xp.zeros(1)[0, 0])
    for columns, f in zip(JT, firm, strict=True):
        for i, c in columns.items():
            pushed = (f * c.T).T
            for j, d in columns.items():
                if j <= i:
                    H[i][j] = H[i][j] + (pushed @ d.T)[0, 0]
    full = [[H[max(i, j)][min(i, j)] for j in range(len(H))] for i in range(len(H))]
    return LTL(xp.matrix(full) if full else M, elimination_parents(t.dof_parent, JT), xp)


def joint_forces(motion: Motion, JT: list[Columns], lam: list[Array]) -> Array:
    """J^T lam."""
    out = [motion.xp.zeros(1)] * motion.model.nv
    for columns, l in zip(JT, lam, strict=True):
        for j, c in columns.items():
            out[j] = out[j] + c @ l
    return motion.xp.vstack([motion.xp.zeros(0), *out])


def row_values(motion: Motion, columns: Columns, vdot: Array, rows: int) -> Array:
    """J vdot of one constraint."""
    return sum((c.T @ vdot[j : j + 1, :] for j, c in columns.items()), motion.xp.zeros(rows))
