"""Inertias of joints that are rounding: NaN instead of numbers where a joint has lost them.

Eliminating a joint from the tips on leaves d = M_ii less what the joints behind it take over. Where axes come in line
with hardly any inertia between them (two of a wrist, a shoulder or a neck), nearly all of M_ii is taken over, and
rounding of its terms is what is left. Accelerations are off by some 3 eps of the terms over d: 3e-7 and 1e-3 at the
bounds below (iCub, compared with 50 digits). A dense solution takes their place, in float64 or, where that is too
little, in NumPy's longer type (functions/judge.py); what that does not resolve, and states of rollouts, are an error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwork.backends.ops import Array
from linkwork.constraints.units import inertia_shares, shares_left
from linkwork.model import Motion

LOST, SINGLE, DENSE = 1e-8, 1.5e-4, 1e-7
"""The least share of the terms of M_ii that d may be, in float64, in float32, and in a factorisation of M.

Of the largest terms in float32, where it costs a dense solution. In float64 it may be an error, and is of the least:
far out on a slide terms are 10^4 times as large as near its origin, and a joint with all its inertia would be none."""

NEAR = 1e-5
"""Joints that keep more than this share in all sampled postures are not checked in float64."""


def held(motion: Motion, k: int, d: Array) -> Array:
    """The inertia d of a degree of freedom that is being eliminated, or NaN if that is rounding."""
    if motion.given.inertias is not None:  # these are inputs: nothing is known of them
        return d
    least, largest, shares = inertia_shares(motion.model)
    if not motion.xp.single and shares[k] > NEAR:
        return d
    bound = SINGLE * largest[k] if motion.xp.single else LOST * least[k]
    return motion.xp.where(d > float(bound), d, float("nan"))


def holding(motion: Motion) -> Callable[[int, Array], Array]:
    """The same for a factorisation, by degrees of freedom."""
    return lambda k, d: held(motion, k, d)


def is_lost(M: np.ndarray) -> bool:
    """Whether a joint has lost its inertia, or M is not positive definite."""
    bound = DENSE if M.dtype == float else LOST * float(np.finfo(M.dtype).eps / np.finfo(float).eps)
    return bool(shares_left(M).min(initial=1.0) <= bound)
