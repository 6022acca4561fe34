"""Rows eliminated together with the degrees of freedom that move them, from the tips to the base.

Eliminating a degree of freedom d adds rank one to L, e e^T / d with e = K s. A reflection Q turns e into one entry: the
first of the rows Q K is eliminated on the spot, and the others are propagated,

    lam1 = (l1 - K1 a) / p,     p = |e|^2 / d,      IA <- IA + K1^T K1 / p ,

so that at most six rows are ever propagated (sathya2023_pv_lqr, section VIII, eqs. 60 to 68).
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.common.articulated import Dof, degree_of_freedom
from linkwork.algorithms.common.householder import Compression, Reflection, compression, reflection
from linkwork.backends.ops import Array
from linkwork.constraints.row_inertia import units
from linkwork.constraints.rows import ConstraintRows
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia

ROUNDING, LEAST, SINGLE = 2e5, 2e-10, 1e-6
"""Pivots that are rounding, in units of effective inertia: in float64 times mu^2, or at least the second, and in
float32. Reflections keep K1 right to all digits, so that for accelerations a pivot of 1e-13 is as good as one of 1. But
lam1 is a difference, divided by p, and loses the digits of p: forces were 9e-6 off at 6e-13. And 1/p is inertia: where
bodies are much smaller than their distances, accelerations lose the digits of p, too, and such models have a smaller mu
(functions/penalty_fit.py). Behind a penalised row pivots of about 1/mu are usual: above 2e-11 they made accelerations
of a humanoid with stretched arms 2e-6 off. Penalised rows take a second solver iteration; one state of humanoids in ten
has a pivot below 1e-9. In float32 pivots below ten roundings cost three digits of accelerations."""


@dataclass(frozen=True)
class Eliminated:
    """A degree of freedom and, if it moves any row, the reflection, row and 1/p eliminated with it."""

    dof: Dof
    Q: Reflection | None = None
    K1: Array = None
    p_inv: Array = None


@dataclass(frozen=True)
class LinkRecord:
    """A link with its joint eliminated: inertia and rows K^T (6 x r) behind it, and where they come from.

    Its rows are those of its `own` constraints, then those of its children `below`, compressed to at most six.
    """

    Ia: ArticulatedInertia
    KT: Array
    own: list[int]
    below: list[int]
    squeeze: Compression
    dofs: list[Eliminated]


def eliminate(motion: Motion, rows: list[ConstraintRows], mu: Array) -> dict[int, LinkRecord]:
    """Inertias and rows, by link; a row that no joint moves, p = 0 but for rounding, is penalised by mu."""
    t, xp, unit = motion.model.topology, motion.xp, units(motion.model)
    IA = [I.articulated() for I in motion.I]
    out: dict[int, LinkRecord] = {}
    for i in reversed(t.links):
        own = [c for c, r in enumerate(rows) if i in r.links]
        below = [j for j in out if t.parent[j] == i]
        KT = xp.hstack(
            [xp.zeros(6, 0), *(rows[c].links[i].T for c in own), *(motion.X[j].T @ out[j].KT for j in below)]
        )
        squeeze = compression(KT.T, xp)
        Ia, KT, dofs = IA[i], squeeze.apply(KT.T).T, list[Eliminated]()
        behind = [unit[c] for c, r in enumerate(rows) if any(i in t.supports[l] for l in r.links)]
        for k in reversed(range(motion.model.links[i].joint.nv)):
            Ia, KT, gone = _eliminate_dof(
                motion, degree_of_freedom(motion, i, k, Ia), Ia, KT, mu, min(behind, default=1)
            )
            dofs.insert(0, gone)
        out[i] = LinkRecord(Ia, KT, own, below, squeeze, dofs)
        if p := t.parent[i]:
            IA[p] = IA[p] + motion.X[i].congruence(Ia)
    return out


def _eliminate_dof(
    motion: Motion, dof: Dof, IA: ArticulatedInertia, KT: Array, mu: Array, unit: float
) -> tuple[ArticulatedInertia, Array, Eliminated]:
    """Eliminate one degree of freedom, and one row with it if it moves any."""
    IA, e = IA.minus(dof.U, dof.V), KT.T @ dof.s
    if KT.shape[1] == 0 or motion.xp.is_zero(e):
        return IA, KT, Eliminated(dof)
    Q = reflection(e, motion.xp)
    turned = (Q @ KT.T).T
    K1, p = turned[:, 0:1] - dof.V * Q.length, Q.length * Q.length * dof.d_inv
    moves = p > (SINGLE / unit if motion.xp.single else (ROUNDING / (mu * mu) + LEAST) / unit)
    p_inv = motion.xp.where(moves, 1 / motion.xp.where(moves, p, 1.0), mu * unit)
    return IA.minus(K1 * -p_inv, K1), turned[:, 1:], Eliminated(dof, Q, K1, p_inv)
