"""Inverse dynamics with constraints: torques of actuated joints and constraint forces.

    M a + c = B tau + J^T lam        B picks the actuated degrees of freedom

Where there are more actuators than ways to move, or redundant rows, the solution is the one with the least
|tau|^2 + (weight |lam|)^2 (common/least_forces.py). Where there may be too few, it is that of dense least squares, and
`residual` is the error of the equation, relative to M a + c. O(m^2 n), or O((n + m) n^2).
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.common.least_forces import LeastForces
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import jacobian
from linkwork.model import Motion

TINY = 1e-30
"""Added to sizes, so that the relative residual of zero forces is a number."""


def constrained_inverse(
    motion: Motion,
    a: Array,
    actuated: np.ndarray,
    weight: float,
    fext: Array | None = None,
    applied: Array | None = None,
    enough: bool = False,
) -> tuple[Array, Array, Array]:
    """Joint torques (nv x 1, zero if not actuated), constraint forces (m x 1), relative residual (1 x 1).

    `enough`: motors and rows can cause any motion; where they cannot all the same, all is NaN.
    """
    xp, J = motion.xp, jacobian(motion)
    h = rnea(motion, a, fext, applied)
    if enough:
        forces = LeastForces(J, actuated, weight, xp)
        tau, lam, _ = forces.solve(h)
        lam = lam * forces.known(h, tau, lam)
    else:
        # all forces: those of actuators, and of constraints in units of equal cost
        B = xp.constant(np.eye(motion.model.nv)[:, actuated])
        x = xp.least_squares(xp.hstack([B, J.T / weight]), h)
        n = int(actuated.sum())
        tau, lam = B @ x[0:n, :], x[n:, :] / weight
    left = h - tau - J.T @ lam
    return tau, lam, xp.sqrt(left.T @ left / (h.T @ h + TINY * xp.eye(1)))
