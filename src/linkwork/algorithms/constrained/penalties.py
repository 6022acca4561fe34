"""How large a penalty is: in units of the inertia that rows feel, so that no digit depends on a mechanism's size or mass.

    mu_c = mu / max diag(J M^-1 J^T)    over the rows of constraint c, and of all that it shares a degree of freedom with,
                                        for each link that they tie together by itself

The maximum, because penalties lose digits where they are much larger than what they act on. One unit for all constraints
that share a degree of freedom, because only such can contradict each other, and then the answer is that of least squares,
in which no row may weigh more than another. Units are numbers, found once for a model in a few postures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwork.algorithms.tree.crba import crba
from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import Array
from linkwork.constraints.rows import jacobian_terms
from linkwork.model import Model, Motion
from linkwork.model.memo import once

ROUNDING = 1e-20
"""The share of what rows feel at most that is rounding: rows are right to ten digits, and these are their squares."""

POSTURES = 3
"""How many random postures units are found in, besides the neutral one."""


def penalties(motion: Motion, mu: Array) -> list[Array]:
    """The penalty on each constraint's rows."""
    return [mu * unit for unit in units_of(motion.model)]


def least_pivots(motion: Motion, which: Sequence[int] | None = None) -> Array:
    """What pivots of the rows of some constraints (all) are at least, unless they are zero but for rounding: a column."""
    constraints = motion.model.constraints
    felt = [[ROUNDING / units_of(motion.model)[c]] * constraints[c].rows
            for c in (range(len(constraints)) if which is None else which)]
    return motion.xp.constant(np.array([x for rows in felt for x in rows]).reshape(-1, 1))


def units_of(model: Model) -> list[float]:
    """The units of a model's penalties, found once."""
    return once(_UNITS, model, units)


_UNITS: dict[int, list[float]] = {}
"""By the id of models that are in use."""


def units(model: Model) -> list[float]:
    """The inertia that each constraint's rows feel, 1 / max diag(J M^-1 J^T)."""
    if not model.constraints:
        return []
    plain = replace(model, constraints=tuple(c.original for c in model.constraints))
    ends = np.cumsum([0, *(c.rows for c in plain.constraints)])
    felt, support = np.zeros(ends[-1]), np.zeros((len(plain.constraints), plain.nv), dtype=bool)
    for q in (plain.neutral(), *(plain.random_q(seed) for seed in range(POSTURES))):
        motion = Motion(plain, q[:, None], np.zeros((plain.nv, 1)), NUMPY)
        # a joint that moves no inertia is an error elsewhere; here it only must not hide what the others feel
        M_inv = np.linalg.pinv(crba(motion), hermitian=True)
        for n, c in enumerate(plain.constraints):
            # by link, because rows between links that no joint lies between are zero, and feel what each would alone
            for J in jacobian_terms(motion, c.evaluate(motion)):
                part = felt[ends[n] : ends[n + 1]]
                np.fmax(part, np.einsum("ij,ji->i", J, M_inv @ J.T), out=part)
                support[n] |= (J != 0).any(axis=0)
    largest = [float(felt[i:j].max(initial=0.0)) for i, j in zip(ends, ends[1:])]
    return [1 / x if x > 0 else 1.0 for x in (max(largest[d] for d in group) for group in _sharing(support))]


def _sharing(support: np.ndarray) -> list[list[int]]:
    """For each constraint all that are connected with it by shared degrees of freedom."""
    meet = (support.astype(int) @ support.T.astype(int)) > 0
    np.fill_diagonal(meet, True)
    while ((wider := meet @ meet) != meet).any():
        meet = wider
    return [np.flatnonzero(row).tolist() for row in meet]
