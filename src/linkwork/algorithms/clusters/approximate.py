"""Dynamics of the independent tree with the rotors' reflected inertia as a full matrix.

    tau = RNEA(independent tree) + H~ yddot,        (M_ind + H~) yddot = tau - c_ind

chignoli2023_clusters, sections II-C and II-D, on a model from `lw.approximate(model, reflected=False)`; with the
diagonal of H~ alone, which is armature, the plain `rnea` and `aba` of `lw.approximate(model)` do.
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.model import Motion


def approximate_rnea(motion: Motion, vdot: Array, H: np.ndarray, fext: Array | None = None) -> Array:
    """Forces of the independent joints."""
    return rnea(motion, vdot, fext) + motion.xp.constant(H) @ vdot


def approximate_forward(motion: Motion, tau: Array, H: np.ndarray, fext: Array | None = None) -> Array:
    """Accelerations of the independent joints."""
    xp = motion.xp
    M = xp.symmetric(crba(motion) + xp.constant(H))
    return xp.factor_spd(M).solve(tau - rnea(motion, None, fext))
