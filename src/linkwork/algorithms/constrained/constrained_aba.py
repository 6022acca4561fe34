"""Constrained forward dynamics by augmented Lagrangian inside the articulated body recursion.

    min 1/2 |a - I^-1 f|^2_I + mu/2 |K a - k|^2 - lam^T (K a - k),      lam <- lam + mu (k - K a)

Each row adds mu K^T K to the inertia of its link and K^T (mu k + lam) to the force on it; the rest is `aba`. Rows may
be redundant or singular: the iteration converges to the least-squares solution, in two or three steps for mu = 1e6.
sathya2025_lcaba_proxbbo without internal loops (its references 11, 12). O(n + m) per factor, O(n) per step.
"""

from __future__ import annotations

from linkwork.algorithms.constrained.weights import per_constraint, settled
from linkwork.algorithms.iteration import Iteration
from linkwork.algorithms.tree.articulated import articulated
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia


def constrained_aba(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Rows over single links, each constraint weighted by `active`."""
    xp, rows = motion.xp, constraint_rows(motion)
    w = per_constraint(motion, rows, active)
    art = articulated(motion, penalties(motion, rows, [mu * wc for wc in w]))
    pA = motion.bias(fext)
    m = sum(r.k.shape[0] for r in rows)

    def step(x: Array) -> tuple[Array, Array]:
        lam = split(x[0:m, :], rows)
        forces = list(pA)
        for r, l, wc in zip(rows, lam, w, strict=True):
            for i, K in r.links.items():
                forces[i] = forces[i] - K.T @ (l + (mu * wc) * r.k)
        vdot, a = art.accelerate(art.drive(tau, forces)[0])
        errors = [wc * (r.k - sum((K @ a[i] for i, K in r.links.items()), xp.zeros(r.k.shape[0])))
                  for r, wc in zip(rows, w, strict=True)]
        lam = [l + mu * e for l, e in zip(lam, errors, strict=True)]
        return xp.vstack([*lam, vdot]), settled(motion, errors, vdot, x[m:, :])

    return Iteration(m + motion.model.nv, step, lambda x: (x[m:, :], x[0:m, :]))


def penalties(motion: Motion, rows: list[ConstraintRows], weights: list[Array]) -> dict[int, ArticulatedInertia]:
    """K^T w K of each constraint, added up by link, as inertias."""
    xp = motion.xp
    out: dict[int, ArticulatedInertia] = {}
    for r, w in zip(rows, weights, strict=True):
        for i, K in r.links.items():
            Kl, Ka = K[:, 0:3], K[:, 3:6]
            lin, ang = w * Kl, w * Ka
            added = ArticulatedInertia(xp.symmetric(Kl.T @ lin), Kl.T @ ang, xp.symmetric(Ka.T @ ang), xp)
            out[i] = out[i] + added if i in out else added
    return out


def split(x: Array, rows: list[ConstraintRows]) -> list[Array]:
    """A column over all rows, cut into the constraints' parts."""
    out, start = [], 0
    for r in rows:
        stop = start + r.k.shape[0]
        out.append(x[start:stop, :])
        start = stop
    return out
