"""Inertias of joints that are rounding: NaN instead of numbers where a joint has lost them.

Eliminating a joint from the tips on leaves d = M_ii less what the joints behind it take over. Where axes come in line
with hardly any inertia between them (two of a wrist, a shoulder or a neck), nearly all of M_ii is taken over, and
rounding of its terms is what is left. Accelerations are off by up to 3 000 eps over the share d / M_ii that a joint
keeps (iCub, 60 states compared with 60 digits): 1e-6 in float64 where that is 1e-6, 1e-3 in float32 at its bound below.
A dense solution takes their place, in float64 or, where that is too little, in NumPy's longer type
(functions/dense_judge.py); what that does not resolve, and states of rollouts, are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwork.algorithms.tree.crba import crba
from linkwork.backends.ops import Array
from linkwork.constraints.row_inertia import inertia_shares, shares_left
from linkwork.model import Motion
from linkwork.model.motion import found_once

LOST, SINGLE, DENSE = 1e-7, 1.5e-4, 1e-6
"""The least share of the terms of M_ii that d may be, in float64, in float32, and in a factorisation of M.

Of the largest terms in float32, where it costs a dense solution. In float64 it may be an error, and is of the least:
far out on a slide terms are 10^4 times as large as near its origin, and a joint with all its inertia would be none."""

NEAR = 1e-5
"""Joints that keep more than this share in all sampled postures are not checked in float64."""


FINER = float(np.finfo(np.longdouble).eps / np.finfo(float).eps)
"""What bounds are times in NumPy's longest type: 5e-4 on x86, 1 where there is none."""

NONE = 1e-8
"""The share that is rounding beyond doubt; where nothing comes after it, a second way confirms what is above."""


def held(motion: Motion, k: int, d: Array, share: float = LOST) -> Array:
    """The inertia d that a degree of freedom keeps when it is eliminated, or NaN if that is rounding.

    Penalised or eliminated rows may be a part of d, which hides that the joint's own is lost: numbers have that of M.
    """
    least = _least(motion, k, share)
    if least is None:
        return d
    own = min(d, _own(motion)[k]) if motion.xp.dense else d
    return motion.xp.where(own > least, d, float("nan"))


@found_once
def _own(motion: Motion) -> np.ndarray:
    """What joints keep of M_ii when no row is eliminated with them, nv."""
    M: np.ndarray = crba(motion)
    return np.asarray(shares_left(M) * np.diagonal(M), dtype=float)


def kept(motion: Motion, M: Array, d: Sequence[Array]) -> Array:
    """0, 1 x 1, or NaN if one of all these inertias is rounding of M_ii; numbers have `is_lost` instead."""
    xp, checked = motion.xp, [] if motion.xp.dense else [k for k in range(len(d)) if _least(motion, k) is not None]
    bound = SINGLE if xp.single else DENSE
    return sum((xp.where(d[k] > bound * M[k, k], xp.zeros(1), float("nan")) for k in checked), xp.zeros(1))


def _least(motion: Motion, k: int, share: float = LOST) -> float | None:
    """The least inertia of a degree of freedom that is not rounding; None if it is never that small.

    Inertias that are inputs count as if they were about the model's own, and rotors that are as if there were none.
    """
    least, largest, shares = inertia_shares(motion.model, motion.given.armature is None)
    if not motion.xp.single and shares[k] > NEAR:
        return None
    if motion.xp.single:
        return float(SINGLE * largest[k])
    return float((share if motion.xp.finer == 1 else NONE * motion.xp.finer) * least[k])


def may_be_lost(motion: Motion) -> bool:
    """Whether a joint keeps so little inertia in some posture that `held` looks at it."""
    return any(_least(motion, k) is not None for k in range(motion.model.nv))


def holding(motion: Motion, share: float = LOST) -> Callable[[int, Array], Array]:
    """The same for a factorisation, by degrees of freedom."""
    return lambda k, d: held(motion, k, d, share)


def is_lost(M: np.ndarray, share: float = DENSE) -> bool:
    """Whether a joint has lost its inertia, but for this share, or M is not positive definite."""
    return bool(lost(M, share).any())


def lost(M: np.ndarray, share: float = DENSE) -> np.ndarray:
    """The degrees of freedom that have lost their inertia, nv: all if M is not positive definite."""
    return shares_left(M) <= (share if M.dtype == float else share * FINER)
