"""Torques of motors and constraint forces of least cost that make up given joint forces.

    h = B tau + J^T lam,    |tau|^2 + (w |lam|)^2 least

With the columns of J that belong to joints with motors (a) and without (u), J_u^T lam = h_u holds the latter, and what
other constraint forces do is to load motors: tau = h_a - J_a^T lam. Null-space method of least squares (Bjorck 1996,
section 5.1): with J_u = Q [R; 0] and lam = Q [p; z], p is given by R^T p = h_u, and z is least squares,

    | [N^T; w] z - [h_a - P^T p; 0] |,    [P; N] = Q^T J_a

Both by Householder's QR: conditioned as J_u and as [J_a^T; w] are, where their Gram matrices would square that. Rows
may be redundant: z of least cost is then N tau / w^2, with an N of rounding alone. Where rows do not hold the joints
without motors, or rounding decides about z, all is NaN. O(m^2 n), and O(m n) for each h.
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.common.householder import QR
from linkwork.backends.ops import Array, Ops, threshold

LEAST = 1e-16
"""The square of the least part of a joint's column of J_u, relative to it, that earlier columns do not have: eight
digits are left for forces, and for their derivatives."""

DECIDED = 1e-9
"""Rounding of entries of N, ten times that of float64, relative to J, of which a millionth of the constraint forces may
be (of float32, a percent)."""


class LeastForces:
    """The forces of least cost, for rows J and motors at the degrees of freedom `actuated`."""

    def __init__(self, J: Array, actuated: np.ndarray, weight: float, xp: Ops) -> None:
        pick = np.eye(J.shape[1])
        self.xp, self.weight = xp, weight
        self.driven, self.free = xp.constant(pick[:, actuated]), xp.constant(pick[:, ~actuated])
        self.held = QR(J @ self.free, xp, threshold(xp, LEAST) ** 0.5)
        turned, held = self.held.apply(J @ self.driven), self.held.columns
        self.P, self.N = turned[0:held, :], turned[held:, :]
        self.size = sum((x.T @ x)[0, 0] for x in (J[:, k : k + 1] for k in range(J.shape[1])))
        self.loads = QR(xp.vstack([self.N.T, weight * xp.eye(self.N.shape[0])]), xp)

    def solve(self, h: Array, s: Array | None = None) -> tuple[Array, Array, Array]:
        """tau, lam and y, for columns; with `s`, w^2 lam = J y + s instead of w^2 lam = J y.

        y are the multipliers of h = B tau + J^T lam: of joints with motors, tau.
        """
        xp, held = self.xp, self.held.columns
        p = self.held.solve_transposed(self.free.T @ h)
        t = self.driven.T @ h - self.P.T @ p
        z = self.loads.apply(xp.vstack([t, xp.zeros(self.N.shape[0], h.shape[1])]))[0 : self.N.shape[0], :]
        y = self.weight**2 * p
        if s is not None:
            turned = self.held.apply(s)
            z, y = z + self.loads.solve_transposed(turned[held:, :]), y - turned[0:held, :]
        z = self.loads.solve(z)
        tau = t - self.N.T @ z
        y = self.held.solve(y - self.P @ tau)
        return self.driven @ tau, self.held.expand(xp.vstack([p, z])), self.driven @ tau + self.free @ y

    def inverse(self) -> tuple[Array, Array]:
        """A and C of lam = A h + C s."""
        xp, held, rest = self.xp, self.held.columns, self.N.shape[0]
        Q = self.held.expand(xp.eye(held + rest))
        by_loads = self.loads.solve_transposed(Q[:, held:].T).T
        unloaded = self.loads.apply(xp.vstack([self.driven.T @ self.driven, xp.zeros(rest, self.N.shape[1])]))
        by_torque = by_loads @ unloaded[0:rest, :]
        by_hold = self.held.solve(Q[:, 0:held].T).T - by_torque @ self.held.solve(self.P).T
        return by_torque @ self.driven.T + by_hold @ self.free.T, xp.symmetric(by_loads @ by_loads.T)

    def known(self, h: Array, tau: Array, lam: Array) -> Array | float:
        """1 where rounding of N tau / R^2 is a small part of the solution's lam, or of h / |J|; else NaN."""
        flag, least = self.xp.constant([[1.0]])[0, 0], threshold(self.xp, DECIDED) ** 2
        rounding = least * self.size * self.size * (tau.T @ tau)[0, 0]
        forces = self.size * (lam.T @ lam)[0, 0] + (h.T @ h)[0, 0]
        for k in (k for k in range(self.loads.columns) if not self.xp.is_zero(self.N[k : k + 1, :])):
            square = self.loads.R[k, k] * self.loads.R[k, k]
            flag = self.xp.where(rounding <= square * square * forces, flag, float("nan"))
        return flag
