"""The effective inertia of rows: the unit of penalties, for accuracy at any size and mass.

    unit_c = 1 / max diag(J M^-1 J^T)   over the rows of constraint c, and of all that share a degree of freedom with it

The maximum, because penalties lose digits where they are much larger than the inertia they act on. One unit for
all constraints that share a degree of freedom, because only these can be in conflict, and then the solution is that of
least squares, in which all rows must have the same weight. Units are numbers, found once for a model in a few postures;
rows that nearly vanish in all of them count by their levers (rows.py).

A row that no joint moves (of a hinge on the axis of the joint itself, of a weld between bodies that only slide on each
other) has no effective inertia. No force on it changes anything, and a penalty on it only adds its rounding, times the
levers, to the inertia of what it is on. So such rows count by their levers in full, and a constraint of such rows alone
gets a unit far below that; no other constraint follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.triangular import cholesky
from linkwork.constraints.base import Rows
from linkwork.constraints.rows import rows_jacobian, uncancelled
from linkwork.model.memo import cached
from linkwork.model.model import Model
from linkwork.model.motion import Motion

LEAST = 1e-2
"""The least mobility of rows, relative to that without cancellation."""

UNMOVED = 1e-10
"""Entries of J, relative to what they are a difference of, that are rounding: no joint moves such a row."""

UNFELT = 1e-7
"""The unit of a constraint that no joint moves, in units of its levers: penalties are then as large as inertias are."""

ALIKE = 100.0
"""How unequal inertias of rows may be for their errors to count alike: those are as the roots, within a tenfold."""

POSTURES, SQUARE = 2, 3
"""Random postures in which units are found, besides the neutral one; and those of right angles, for inertias."""


def units(model: Model, which: Sequence[int] | None = None) -> list[float]:
    """The least effective inertia of the rows of each constraint, or of some, in units of these rows."""
    return _units(model, tuple(range(len(model.constraints)) if which is None else which))


@cached
def row_mobilities(model: Model) -> np.ndarray:
    """The mobility of each row, 1 / its effective inertia: the largest in a few postures.

    Those of a constraint that no joint moves are 1 / `units`. Turning a foot takes 1e-4 of the inertia, in these units,
    of moving it.
    """
    own = [f.rows if f.moves and f.rows.min(initial=1.0) > 0 else None for f in _felt(model)]
    each = zip(own, units(model), model.constraints, strict=True)
    return np.concatenate([np.zeros(0), *(np.full(c.rows, 1 / u) if x is None else x for x, u, c in each)])


def row_inertias(model: Model, which: Sequence[int] | None = None) -> np.ndarray | None:
    """The inertias of the rows of some constraints (all), relative to the least; None where all are alike.

    e^T diag(inertias) e is an energy, in which errors of angles and of lengths can be compared.
    """
    spans = [range(*model.row_span(n)) for n in (range(len(model.constraints)) if which is None else which)]
    mobilities = row_mobilities(model)[[r for span in spans for r in span]]
    found = mobilities.max(initial=0.0) / mobilities
    return found if found.max(initial=0.0) > ALIKE else None


@cached
def _units(model: Model, which: tuple[int, ...]) -> list[float]:
    felt = [_felt(model)[n] for n in which]
    support = np.array([f.support for f in felt], dtype=bool).reshape(len(which), model.nv)
    shared = np.array([max(felt[n].mobility for n in group) for group in _sharing(support)])
    still = [not f.moves for f in felt]
    return [1 / x if x > 0 else 1.0 for x in np.where(still, shared / UNFELT, shared)]


@cached
def least_inertias(model: Model) -> np.ndarray:
    """The least entries of the diagonal of M in a few postures, nv."""
    found = [np.diagonal(_inertia(motion, _moved(motion))) for motion in _postures(model)]
    return np.maximum(np.min(found, axis=0), np.finfo(float).tiny)  # type: ignore[no-any-return]


@cached
def inertia_shares(model: Model, rotors: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least and largest terms of M_ii, and the least share of them that a joint keeps as its own.

    In a few postures of right angles, in which axes are in line. Terms are those of inertias without signs: lumped
    inertias (rewrite/inertia_lumping.py) cancel each other. Without `rotors`, as if joints had no armature.
    """
    armature = _rotors(model) if rotors else 0 * _rotors(model)
    quarters = np.random.default_rng(0).choice([0, 1, -1, 2], (SQUARE, model.nv))
    length = np.where(model.sliding, max(model.reach), np.pi / 2)
    square = [model.integrate(model.neutral(), x * length) for x in quarters]
    terms, left = list[np.ndarray](), list[np.ndarray]()
    for motion in (_at_rest(model, q) for q in (model.neutral(), *square)):
        M, moved = _inertia(motion, found := _moved(motion)), np.array([found[l] for l in model.topology.links])
        M = M - _rotors(model) + armature
        values, axes = np.linalg.eigh(np.array([motion.I[l].articulated().matrix() for l in model.topology.links]))
        along = np.swapaxes(axes, 1, 2) @ moved
        terms.append(np.einsum("li,lij,lij->j", np.abs(values), along, along) + np.diagonal(armature))
        left.append(shares_left(M) * np.diagonal(M) / np.maximum(terms[-1], np.finfo(float).tiny))
    return np.min(terms, axis=0), np.max(terms, axis=0), np.min(left, axis=0)


def shares_left(M: np.ndarray) -> np.ndarray:
    """What joints keep of M_ii, eliminated from the last to the first; 0 if M is not regular."""
    try:
        d = np.diagonal(cholesky(M[::-1, ::-1]))[::-1] ** 2
    except np.linalg.LinAlgError:
        return np.zeros(len(M))
    return np.asarray(d / np.diagonal(M), dtype=float)


class Felt(NamedTuple):
    """The mobilities of a constraint's rows, degrees of freedom that move any, whether one does."""

    rows: np.ndarray
    support: np.ndarray
    moves: bool

    @property
    def mobility(self) -> float:
        """The largest one."""
        return float(self.rows.max(initial=0.0))


@cached
def _felt(model: Model) -> list[Felt]:
    """Of each constraint."""
    plain = replace(model, constraints=tuple(c.original for c in model.constraints))
    felt, levers, moves = ([np.zeros(c.rows) for c in plain.constraints] for _ in range(3))
    support = np.zeros((len(plain.constraints), plain.nv), dtype=bool)
    for motion in _postures(plain) if plain.constraints else []:
        moved = _moved(motion)
        # a joint that moves no inertia is an error elsewhere; here it must not affect the others
        M_inv = np.linalg.pinv(_inertia(motion, moved), hermitian=True)
        for n, c in enumerate(plain.constraints):
            J, squares = _uncancelled(motion, c.evaluate(motion), moved)
            felt[n] = np.maximum(felt[n], np.einsum("ij,ji->i", J, M_inv @ J.T))
            levers[n] = np.maximum(levers[n], squares @ np.diagonal(M_inv))
            moves[n] = np.maximum(moves[n], (J * J).max(axis=1, initial=0.0) > UNMOVED**2 * squares.max(initial=0.0))
            support[n] |= (J != 0).any(axis=0)
    most = [np.maximum(f, np.where(m > 0, LEAST, 1.0) * l) for f, m, l in zip(felt, moves, levers, strict=True)]
    any_moves = [bool(m.any()) for m in moves]
    return [Felt(x, s & m, m) for x, s, m in zip(most, support, any_moves, strict=True)]


def _uncancelled(motion: Motion, rows: Rows, moved: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """J of a constraint, and the squares of its entries if the terms of none cancelled."""
    terms = [(K @ moved[l], uncancelled(motion, l, K) @ moved[l] ** 2) for l, K in rows.links.items() if l]
    terms += [(J, J * J) for J in (rows_jacobian(motion, {}, {i: G}) for i, G in rows.joints.items())]
    none = np.zeros((rows.drift.shape[0], motion.model.nv))
    return sum((J for J, _ in terms), none), sum((squares for _, squares in terms), none)


def _postures(model: Model) -> list[Motion]:
    """The neutral posture and a few random ones, at rest."""
    postures = [model.neutral(), *(model.random_q(seed) for seed in range(POSTURES))]
    return [_at_rest(model, q) for q in postures]


def _at_rest(model: Model, q: np.ndarray) -> Motion:
    return Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)


def _moved(motion: Motion) -> dict[int, np.ndarray]:
    """The Jacobian of each link."""
    return {l: motion.jacobians[l] for l in motion.model.topology.links}


def _inertia(motion: Motion, moved: dict[int, np.ndarray]) -> np.ndarray:
    """M, the sum of J^T I J over all links, and rotors."""
    M = _rotors(motion.model)
    for l, J in moved.items():
        M = M + J.T @ motion.I[l].articulated().matrix() @ J
    return M


def _rotors(model: Model) -> np.ndarray:
    return np.diag(np.concatenate([np.zeros(0), *(link.armature for link in model.links[1:])]))


def _sharing(support: np.ndarray) -> list[np.ndarray]:
    """For each constraint all that are connected with it by shared degrees of freedom."""
    meet = (support.astype(int) @ support.T.astype(int)) > 0
    np.fill_diagonal(meet, True)
    while ((wider := meet @ meet) != meet).any():
        meet = wider
    return [np.flatnonzero(row) for row in meet]
