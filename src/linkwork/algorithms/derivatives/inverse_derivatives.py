"""Derivatives of inverse dynamics with constraints, at its solution.

    M a + c = h = B tau + J^T lam,    tau = B^T y,    w^2 lam = J y

The last two say that |tau|^2 + (w |lam|)^2 is least; y are the multipliers of the first, of actuated joints their
torques. With tau, lam and y held fixed, r = dh - d(J^T) lam and s = (dJ) y, and with the columns of J that belong to
joints with actuators (a) and without (u),

    G dlam - J_u dy_u = J_a r_a + s,    J_u^T dlam = r_u,    dtau = r_a - J_a^T dlam        G = w^2 + J_a J_a^T

The solution itself is that for r = h, s = 0. Both are solved by G and J_u^T G^-1 J_u, O(m^2 + m n) for each column; r
is that of forward dynamics (forward_derivatives.py). Rows may be redundant. Where rows do not hold the joints without
actuators, nothing has a derivative, and all are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwork.algorithms.derivatives.kkt_solution import Multipliers
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows, jacobian
from linkwork.model import Motion


class LeastForces(Multipliers):
    """Torques and multipliers of least cost that cause the accelerations `a`, and y."""

    def __init__(
        self,
        motion: Motion,
        M: Array,
        c: Array,
        tau: Array,
        softness: Sequence[Array] | None = None,
        active: Array | None = None,
        *,
        a: Array,
        actuated: np.ndarray,
        weight: float,
    ) -> None:
        del softness, active  # rows of any softness and mode cost and push alike
        xp, m, pick = motion.xp, motion.model.rows, np.eye(motion.model.nv)
        self.a, self.M, self.rows, self.roots = a, M, constraint_rows(motion), xp.constant(np.ones((m, 1)))
        self.J = jacobian(motion)
        self.driven, self.free = xp.constant(pick[:, actuated]), xp.constant(pick[:, ~actuated])
        self.Ja, self.Ju = self.J @ self.driven, self.J @ self.free
        self.G = xp.factor_spd(xp.symmetric(self.Ja @ self.Ja.T) + weight**2 * xp.eye(m)) if m else None
        if self.G is not None and self.Ju.shape[1]:
            self.X = self.G.solve(self.Ju)
            self.T = xp.factor_spd(xp.symmetric(self.Ju.T @ self.X), xp.zeros(self.Ju.shape[1]))
        tau, lam, y = self._solve(M @ a + c - tau, xp.zeros(m))
        self.multipliers, self.y = xp.held(lam), xp.held(self.driven @ tau + self.free @ y)

    def solve(self, r: Array, s: Array) -> tuple[Array, Array]:
        """The derivatives of tau (nv rows, zero without actuators) and lam, by columns."""
        tau, lam, _ = self._solve(r, s)
        return self.driven @ tau, lam

    def _solve(self, r: Array, s: Array) -> tuple[Array, Array, Array]:
        """dtau of actuated joints, dlam, and dy of the others."""
        ra, y = self.driven.T @ r, self.free.T @ r
        if self.G is None:
            return ra, s, y
        lam = self.G.solve(self.Ja @ ra + s)
        if self.Ju.shape[1]:
            y = self.T.solve(y - self.Ju.T @ lam)
            lam = lam + self.X @ y
        return ra - self.Ja.T @ lam, lam, y
