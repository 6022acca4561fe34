"""Weights of constraints: one per constraint, the same for all its rows; 0 switches it off."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from linkwork.algorithms.common.columns import split, stacked
from linkwork.algorithms.common.iteration import TINY, added, dot
from linkwork.backends.ops import Array, threshold
from linkwork.constraints.row_inertia import least_inertias
from linkwork.constraints.rows import ConstraintRows, constraint_rows, jacobian_blocks
from linkwork.model import Motion

ROUNDING = 1e-9
"""The largest errors of rows in a direct solution, relative to their terms: seven digits of forces are lost by
then."""


def per_constraint(motion: Motion, rows: list[ConstraintRows], active: Array | None) -> list[Array]:
    """The scalar weight of each constraint: 1, or the entry of `active` (0 removes it exactly)."""
    return [1.0 if active is None else active[c, 0] for c in range(len(rows))]


def weigh(
    motion: Motion, rows: list[ConstraintRows], active: Array | None, which: Sequence[int] | None = None
) -> tuple[list[ConstraintRows], Array]:
    """Rows times the square roots of their constraints' weights.

    That scales penalties by the weights. The rows are those of all constraints, or of `which`. The roots come as a
    column over the rows of all: a multiplier times its root is the force.
    """
    xp, constraints = motion.xp, motion.model.constraints
    out, by_constraint = [], {n: xp.constant([1.0] * c.rows) for n, c in enumerate(constraints)}
    for n, r in zip(range(len(rows)) if which is None else which, rows, strict=True):
        root = 1.0 if active is None else xp.sqrt(active[n, 0])
        by_constraint[n] = by_constraint[n] * root
        links, joints = {i: root * K for i, K in r.links.items()}, {i: root * G for i, G in r.joints.items()}
        out.append(ConstraintRows(links, joints, root * r.k, r.relative))
    return out, xp.vstack([xp.zeros(0), *by_constraint.values()])


def starting(
    motion: Motion,
    rows: Sequence[ConstraintRows],
    lam0: Array | None,
    active: Array | None,
    which: Sequence[int] | None = None,
) -> list[Array]:
    """Multipliers to start from, by constraint: those of the forces `lam0` of all constraints, or zero.

    The rows are those of all constraints, or of `which`. A constraint that is switched off exerts no force.
    """
    xp, constraints, starts = motion.xp, motion.model.constraints, [0]
    for c in constraints:
        starts.append(starts[-1] + c.rows)
    out = []
    for n, r in zip(range(len(rows)) if which is None else which, rows, strict=True):
        lam = xp.zeros(r.k.shape[0]) if lam0 is None else lam0[starts[n] : starts[n + 1], :]
        out.append(lam if lam0 is None or active is None else xp.where(active[n, 0] > 0, lam, 0 * lam))
    return out


def unweighed(
    motion: Motion, lam: Sequence[Array], active: Array | None, which: Sequence[int] | None = None
) -> list[Array]:
    """The multipliers of rows times the roots of weights (`weigh`) that exert forces `lam`."""
    if active is None:
        return list(lam)
    xp = motion.xp
    roots = [
        xp.sqrt(xp.where(active[n, 0] > 0, active[n, 0], 1.0)) for n in (range(len(lam)) if which is None else which)
    ]
    return [l / root for l, root in zip(lam, roots, strict=True)]


def starting_column(motion: Motion, rows: Sequence[ConstraintRows], lam0: Array | None, active: Array | None) -> Array:
    """Multipliers of weighed rows (`weigh`) to start from, as one column."""
    return stacked(motion, unweighed(motion, starting(motion, rows, lam0, active), active))


class Change(NamedTuple):
    """Inputs of a sweep for a change of multipliers alone: no joint forces, link forces and targets."""

    tau: Array
    p: list[Array]
    rows: list[ConstraintRows]
    lam: list[Array]


def change_of(motion: Motion, rows: Sequence[ConstraintRows], d: Array) -> Change:
    """The inputs of a sweep (with `Motion.at_rest`) for the change `d` of the multipliers of these rows."""
    none = [motion.xp.zeros(6)] * len(motion.X)
    return Change(motion.xp.zeros(motion.model.nv), none, without_targets(motion, rows), split(d, rows))


def without_targets(motion: Motion, rows: Sequence[ConstraintRows]) -> list[ConstraintRows]:
    """The same rows with zero on the right: what they become for changes of accelerations."""
    return [replace(r, k=motion.xp.zeros(r.k.shape[0])) for r in rows]


def left_over(motion: Motion, rows: Sequence[ConstraintRows], a: Sequence[Array]) -> tuple[list[Array], Array]:
    """Errors k - sum K a of some rows over links, and the squares of their terms added up."""
    errors, squares = list[Array](), [motion.xp.zeros(0)]
    for r in rows:
        terms = [r.k, *(-(K @ a[i]) for i, K in r.links.items())]
        errors.append(sum(terms[1:], terms[0]))
        squares.append(squared(terms))
    return errors, motion.xp.vstack(squares)


def errors_of(motion: Motion, rows: Sequence[ConstraintRows], vdot: Array) -> Array:
    """Errors of rows over links and joints for joint accelerations, k - J vdot, as one column."""
    a = motion.accelerations(vdot)
    terms = [error_terms(motion, r, a, vdot) for r in rows]
    return stacked(motion, [sum(t[1:], t[0]) for t in terms])


def error_terms(motion: Motion, r: ConstraintRows, a: Sequence[Array], vdot: Array) -> list[Array]:
    """The terms of k - J vdot of one constraint, with the accelerations `a` of links."""
    over_joints = (-(G @ vdot[motion.model.topology.v_slices[i], :]) for i, G in r.joints.items())
    return [r.k, *(-(K @ a[i]) for i, K in r.links.items()), *over_joints]


def squared(terms: Sequence[Array]) -> Array:
    """The squares of columns, added up."""
    return sum((x * x for x in terms[1:]), terms[0] * terms[0])


def violation(
    motion: Motion, vdot: Array, lam: Array, R: Sequence[Array] | None = None, active: Array | None = None
) -> Array:
    """|J vdot - k| relative to the size of the rows' terms.

    Of soft rows with a weight it is |w (J vdot - k) + R lam|.
    """
    xp, a = motion.xp, motion.accelerations(vdot)
    errors, squares, rows = [xp.zeros(0)], motion.xp.zeros(1), constraint_rows(motion)
    for n, (r, w) in enumerate(zip(rows, per_constraint(motion, rows, active), strict=True)):
        terms = error_terms(motion, r, a, vdot)
        error = sum(terms[1:], terms[0])
        errors.append(error if R is None else w * error - R[n] * lam[slice(*motion.model.row_span(n)), :])
        squares = sum((x.T @ x for x in terms), squares)
    error = xp.vstack(errors)
    return xp.sqrt(dot(xp, error, error) / (squares + TINY))


def met(motion: Motion, errors: Sequence[Array], squares: Array) -> Array:
    """0, or NaN if some errors are more than rounding of terms with these squares."""
    xp = motion.xp
    left = sum((e.T @ e for e in errors), xp.zeros(1))
    return xp.where(left <= threshold(xp, ROUNDING) ** 2 * added(xp, squares), 0.0, float("nan"))


def accelerates(
    motion: Motion, tau: Array, needed: Array, vdot: Array, lam: Array, share: float, known: Collection[int] = ()
) -> Array:
    """1, or 0 if forces that are missing would accelerate a joint by more than this share.

    They are missing in M vdot + c = tau + J^T lam, of which `needed` is M vdot + c. Each joint counts by its own
    inertia: a light link beside a heavy one counts as much. The share is that of the accelerations, and of gravity: a
    mechanism at rest has large forces and no accelerations.
    """
    xp, model = motion.xp, motion.model
    left, length = needed - tau - joint_forces_of(motion, lam, known), max(model.reach) or 1.0
    unit = np.where(model.sliding, length, 1.0)[:, None]
    off, found = (x * xp.constant(1 / w) for x, w in ((left, least_inertias(model)[:, None] * unit), (vdot, unit)))
    falls = motion.a0.T @ motion.a0 * (1 / length**2)
    return xp.where(dot(xp, off, off) <= threshold(xp, share) ** 2 * (dot(xp, found, found) + falls), 1.0, 0.0)


def joint_forces_of(motion: Motion, lam: Array, known: Collection[int] = ()) -> Array:
    """J^T lam, the joint forces of constraints.

    J is computed for constraints that are `known`, where it costs nothing because the method has it anyway; forces of
    the others are propagated together.
    """
    xp, t, start = motion.xp, motion.model.topology, 0
    held = {i: xp.zeros(t.v_slices[i].stop - t.v_slices[i].start) for i in t.links}
    links, joints, relative = dict[int, Array](), dict[int, Array](), True
    for n, r in enumerate(constraint_rows(motion)):
        part, start = lam[start : start + r.k.shape[0], :], start + r.k.shape[0]
        if n in known:
            for i, J in jacobian_blocks(motion, r.links, r.joints, r.relative).items():
                held[i] = held[i] + J.T @ part
            continue
        relative = relative and r.relative
        for total, rows in ((links, r.links), (joints, r.joints)):
            for i, K in rows.items():
                total[i] = total[i] + part.T @ K if i in total else part.T @ K
    for i, force in jacobian_blocks(motion, links, joints, relative).items():
        held[i] = held[i] + force.T
    return xp.vstack([xp.zeros(0), *held.values()])


def active_only(motion: Motion, errors: Sequence[Array], weights: Sequence[Array]) -> Array:
    """One column of errors, without those of constraints that are switched off."""
    xp = motion.xp
    # a plain 1.0 stands for a constraint that cannot be switched
    kept = [e if type(w) is float else xp.where(w > 0, e, 0 * e) for e, w in zip(errors, weights, strict=True)]
    return xp.vstack([xp.zeros(0), *kept])


def over_links(motion: Motion, r: ConstraintRows) -> ConstraintRows:
    """Rows over joints written over links: vdot_i = S^+ (a_i - X a_p - c_i)."""
    links, k = dict(r.links), r.k
    for i, G in r.joints.items():
        S, p = motion.S[i], motion.model.topology.parent[i]
        K = motion.xp.factor_spd(S.T @ S).solve(S.T)
        K = G @ K
        at_parent = -(motion.X[i].T @ K.T).T
        k = k + K @ motion.c[i] - (at_parent @ motion.a0 if p == 0 else 0 * k)
        for l, Kl in ((i, K), (p, at_parent)):
            if l:
                links[l] = links[l] + Kl if l in links else Kl
    return ConstraintRows(links, {}, k)
