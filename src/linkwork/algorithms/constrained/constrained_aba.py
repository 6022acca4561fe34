"""Constrained forward dynamics by augmented Lagrangian inside the articulated body recursion.

    min 1/2 |a - I^-1 f|^2_I + mu/2 |K a - k|^2 - lam^T (K a - k),      lam <- lam + mu (k - K a)

Each row adds mu K^T K to the inertia of its link and K^T (mu k + lam) to the force on it; the rest is `aba`. Rows may
be redundant or singular: the iteration converges to the least-squares solution, in two or three steps.
sathya2025_lcaba_proxbbo without internal loops (its references 11, 12). O(n + m) per factor, O(n) per step.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import (
    active_only,
    change_of,
    left_over,
    over_links,
    per_constraint,
    starting,
)
from linkwork.algorithms.common.articulated import Articulated, articulated
from linkwork.algorithms.common.columns import stacked
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.penalties import inertias, penalties
from linkwork.algorithms.common.supports import supporting
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia


def constrained_aba(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Rows over single links and joints on the world, from forces `lam0`.

    Each constraint is weighted by `active`.
    """
    xp, rows = motion.xp, [over_links(motion, r) for r in constraint_rows(motion)]
    w = per_constraint(motion, rows, active)
    firm = [mu_c * wc for mu_c, wc in zip(penalties(motion, mu), w, strict=True)]
    art = articulated(motion, added_inertias(motion, rows, firm))
    moving = supporting(motion.model, (i for r in rows for i in r.links))

    def step(
        art: Articulated, tau: Array, p: list[Array], rows: list[ConstraintRows], lam: list[Array]
    ) -> tuple[Step, list[list[Array]]]:
        p = list(p)
        for r, l, f in zip(rows, lam, firm, strict=True):
            for i, K in r.links.items():
                p[i] = p[i] - K.T @ (l + f * r.k)
        u, _ = art.drive(tau, p)
        vdot, a = art.accelerate(u)
        errors, squares = left_over(motion, rows, a)
        new = [l + f * e for l, f, e in zip(lam, firm, errors, strict=True)]
        return Step(stacked(motion, new), active_only(motion, errors, w), squares, moving.pack(motion, vdot, a)), u

    start = starting(motion, rows, lam0, active)
    first, u = step(art, tau, motion.bias(fext), rows, start)

    def change(d: Array) -> Step:
        return step(art.at_rest, *change_of(motion, rows, d))[0]

    def finish(lam: Array, found: Array) -> tuple[Array, Array]:
        return art.accelerate(u, known=moving.unpack(found)[0])[0], lam

    return Iteration(stacked(motion, start), first, change, finish, inertias(motion), xp)


def added_inertias(motion: Motion, rows: list[ConstraintRows], weights: list[Array]) -> dict[int, ArticulatedInertia]:
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
