"""Constrained forward dynamics by dense linear algebra: the reference implementation.

    M vdot + c = tau + J^T lam,    J vdot = k        (Gauss: vdot is the nearest to the free one, in the norm of M)

With M = L L^T, y = L^T (vdot - vdot_free) and W = J L^-T this is the least-squares problem W y = k - J vdot_free, whose
solution of least norm exists for any rank: rows may be redundant, singular, even in conflict, and then |J vdot - k|
is as small as can be. `vdot` and J^T lam are unique; `lam` is the one of least norm. O((n + m)^3). Traced, it has no
singular values, and gives NaN where rows are in conflict or nearly dependent: there functions call NumPy.
"""

from __future__ import annotations

from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array, threshold
from linkwork.constraints.rows import constraint_rows, rows_jacobian, squared_row_bounds
from linkwork.model import Motion

ROUNDING = 1e-12
"""The share of the bound of a row's size that is rounding."""


def kkt(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    xp = motion.xp
    L = xp.cholesky(crba(motion))
    free = xp.solve_upper(L.T, xp.solve_lower(L, tau - rnea(motion, None, fext)))
    J, k, terms = with_terms(motion)

    # the constraint in coordinates in which the kinetic energy is a sum of squares
    WT = xp.solve_lower(L, J.T)
    y = xp.least_squares(WT.T, k - J @ free, terms + (J * J) @ (free * free))
    vdot = free + xp.solve_upper(L.T, y)
    return vdot, xp.least_squares(WT, y, y * y)


def joint_space(motion: Motion) -> tuple[Array, Array]:
    """J and k of J vdot = k: the rows over links, k less their values with joints at rest.

    Rows that are zero but for rounding, because no joint moves what they measure, are zero.
    """
    return with_terms(motion)[:2]


def with_terms(motion: Motion) -> tuple[Array, Array, Array]:
    """J, k, and the squares of the terms of k."""
    xp, at_rest = motion.xp, motion.accelerations(None)
    J, k, squares = [xp.zeros(0, motion.model.nv)], [xp.zeros(0)], [xp.zeros(0)]
    for rows in constraint_rows(motion):
        whole = rows_jacobian(motion, rows.links, rows.joints)
        least = threshold(xp, ROUNDING) ** 2 * squared_row_bounds(motion, rows)
        for i in range(whole.shape[0]):
            row = whole[i : i + 1, :]
            J.append(row * xp.where(row @ row.T > least[i : i + 1, :], 1.0, 0.0))
        k.append(rows.k - sum((K @ at_rest[l] for l, K in rows.links.items()), xp.zeros(rows.k.shape[0])))
        squares.append(sum(((K * K) @ (at_rest[l] * at_rest[l]) for l, K in rows.links.items()), rows.k * rows.k))
    return xp.vstack(J), xp.vstack(k), xp.vstack(squares)
