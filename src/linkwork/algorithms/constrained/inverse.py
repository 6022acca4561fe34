"""Inverse dynamics with constraints: torques of actuated joints and constraint forces.

    M a + c = B tau + J^T lam        B picks the actuated degrees of freedom

Where there are more actuators than ways to move, or redundant rows, the solution is the one with the least
|tau|^2 + (weight |lam|)^2. Where there are too few, `residual` is the error of the equation, relative to
M a + c. Dense, by least squares: O((n + m) n^2).
"""

from __future__ import annotations

import numpy as np

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
) -> tuple[Array, Array, Array]:
    """Joint torques (nv x 1, zero if not actuated), constraint forces (m x 1), relative residual (1 x 1)."""
    xp = motion.xp
    h = rnea(motion, a, fext, applied)

    # all forces: those of actuators, and of constraints in units of equal cost
    B = xp.constant(np.eye(motion.model.nv)[:, actuated])
    A = xp.hstack([B, jacobian(motion).T / weight])
    x = xp.least_squares(A, h)

    n = int(actuated.sum())
    tau, lam, left = B @ x[0:n, :], x[n:, :] / weight, h - A @ x
    return tau, lam, xp.sqrt(left.T @ left / (h.T @ h + TINY * xp.eye(1)))
