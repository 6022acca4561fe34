"""Constrained forward dynamics by dense linear algebra: the reference implementation.

    M vdot + c = tau + J^T lam,    J vdot = k        (Gauss: vdot is the nearest to the free one, in the norm of M)

With M = L L^T, y = L^T (vdot - vdot_free) and W = J L^-T this is the least-squares problem W y = k - J vdot_free, whose
solution of least norm exists for any rank: rows may be redundant, singular, even in conflict, and then |J vdot - k|
is as small as can be. `vdot` and J^T lam are unique; `lam` is the one of least norm. O((n + m)^3). Traced, it has no
singular values, and gives NaN where rows are in conflict or nearly dependent: there functions call NumPy. So it does
where a joint loses its inertia to rounding (common/least_inertia.py): NumPy has a longer type for that.
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.common.least_inertia import is_lost, kept
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array, Ops, threshold
from linkwork.constraints.rows import constraint_rows, rows_jacobian, squared_row_bounds
from linkwork.model import Motion
from linkwork.model.motion import found_once

ROUNDING = 1e-12
"""The share of the bound of a row's size that is rounding."""


def kkt(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    precise, M = resolved(motion)
    vdot, lam = _solved(precise, M, tau, fext)
    return (vdot, lam) if precise is motion else (vdot.astype(float), lam.astype(float))


def resolved(motion: Motion) -> tuple[Motion, Array]:
    """The motion, in the precision that its mass matrix needs, and that matrix.

    More digits than float64 has are three on x86, and none where NumPy has no such type. A trace stays as it is.
    """
    M = crba(motion)
    if motion.xp.longer is None or not is_lost(M):
        return motion, M
    q, v = (x.astype(np.longdouble) for x in (motion.q, motion.v))
    motion = Motion(motion.model, q, v, motion.xp.longer, motion.given)
    return motion, crba(motion)


def confirmed(motion: Motion, M: Array, vdot: Array, forces: Array, fext: Array | None) -> Array:
    """The accelerations; where the longest type is too short, their mean with those of `aba`.

    The two ways round apart: on iCub and wrists they differ as much as the worse one is off. LinAlgError if the mean
    may be off by more than 1e-6.
    """
    if not motion.xp.dense or motion.xp.longer is not None or not is_lost(M):
        return vdot
    again = aba(motion, forces, fext)
    if not np.abs(again - vdot).max(initial=0.0) <= 2e-6 * np.abs(vdot).max(initial=0.0):
        raise np.linalg.LinAlgError
    return (vdot + again) / 2


def _solved(motion: Motion, M: Array, tau: Array, fext: Array | None) -> tuple[Array, Array]:
    xp = motion.xp
    L, guard = tips_first(motion, M)

    def back(y: Array) -> Array:
        return from_last(xp.solve_upper(L.T, y), xp)

    def forth(f: Array) -> Array:
        return xp.solve_lower(L, from_last(f, xp))

    free = back(forth(tau - rnea(motion, None, fext))) + guard
    J, k, terms = with_terms(motion)

    # the constraint in coordinates in which the kinetic energy is a sum of squares
    WT = forth(J.T)
    y = xp.least_squares(WT.T, k - J @ free, terms + (J * J) @ (free * free))
    vdot, lam = free + back(y), xp.least_squares(WT, y, y * y)
    return confirmed(motion, M, vdot, tau + J.T @ lam, fext), lam


def tips_first(motion: Motion, M: Array) -> tuple[Array, Array]:
    """L of M = L L^T from the last row to the first, and 0, or NaN if a joint lost its inertia.

    Squares of the diagonal of L are then what joints keep of their inertia.
    """
    L = motion.xp.cholesky(from_last(from_last(M, motion.xp).T, motion.xp))
    return L, kept(motion, M, [L[i, i] * L[i, i] for i in reversed(range(L.shape[0]))])


def from_last(A: Array, xp: Ops) -> Array:
    """The rows of A from the last to the first."""
    return xp.vstack([A[0:0, :], *(A[i : i + 1, :] for i in reversed(range(A.shape[0])))])


def joint_space(motion: Motion) -> tuple[Array, Array]:
    """J and k of J vdot = k: the rows over links, k less their values with joints at rest.

    Rows that are zero but for rounding, because no joint moves what they measure, are zero.
    """
    return with_terms(motion)[:2]


@found_once
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
