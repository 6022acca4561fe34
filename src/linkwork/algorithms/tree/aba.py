"""Forward dynamics: the articulated body algorithm.

    vdot = M(q)^-1 (tau - c(q, v) + sum J_l^T fext_l),   without forming M

Featherstone, Rigid Body Dynamics Algorithms, table 7.1, on classical accelerations (see model/motion.py). O(n).
"""

from __future__ import annotations

from linkwork.algorithms.common.articulated import articulated
from linkwork.backends.ops import Array
from linkwork.model import Motion


def aba(motion: Motion, tau: Array, fext: Array | None = None) -> Array:
    """Joint accelerations for the joint forces `tau`."""
    # pass 1, base to tips: velocities, and the forces that they need (motion.bias)
    # pass 2, tips to base: articulated inertias, bias forces
    # pass 3, base to tips: accelerations
    bodies = articulated(motion)
    u, _ = bodies.drive(tau, motion.bias(fext))
    vdot, _ = bodies.accelerate(u)
    return vdot
