"""Derivatives of inverse dynamics with constraints, at its solution.

    M a + c = h = B tau + J^T lam,    tau = B^T y,    w^2 lam = J y

The last two say that |tau|^2 + (w |lam|)^2 is least (common/least_forces.py). With tau, lam and y held fixed, r = dh -
d(J^T) lam and s = (dJ) y,

    r = B dtau + J^T dlam,    dtau = B^T dy,    w^2 dlam = J dy + s

are the same equations with s: dlam = A r + C s, with A and C from their columns, O(m n) for each column. r is that of
forward dynamics (forward_derivatives.py).
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.common.least_forces import LeastForces
from linkwork.algorithms.derivatives.kkt_solution import Equations, Multipliers
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows, jacobian


class InverseSolution(Multipliers):
    """Multipliers of least cost that cause the accelerations `a` with motors' torques, and y."""

    def __init__(self, given: Equations, *, a: Array, actuated: np.ndarray, weight: float) -> None:
        motion, M, c, tau, *_ = given  # rows of any softness and mode cost and push alike
        self.xp, self.a, self.M, self.rows = motion.xp, a, M, constraint_rows(motion)
        self.J, self.roots = jacobian(motion), self.xp.constant(np.ones((motion.model.rows, 1)))
        self.forces = LeastForces(self.J, actuated, weight, self.xp)
        h = M @ a + c - tau
        tau, lam, y = self.forces.solve(h)
        self.known = self.forces.known(h, tau, lam)
        self.inverse = self.forces.inverse()
        self.multipliers, self.y = self.xp.held(lam), self.xp.held(y)

    def solve(self, r: Array, s: Array) -> tuple[Array, Array]:
        """The derivatives of tau (nv rows, zero without actuators) and lam, by columns."""
        driven, (A, C) = self.forces.driven, self.inverse
        lam = self.known * (A @ r + C @ s)
        return driven @ (driven.T @ (r - self.J.T @ lam)), lam
