"""Derivatives of inverse dynamics with constraints where motors may be too few for all motions.

The equations are those of inverse_derivatives.py. With tau and y of joints with motors eliminated, and columns of J of
joints with motors (a) and without (u),

    G dlam - J_u dy_u = J_a r_a + s,    J_u^T dlam = r_u,    dtau = r_a - J_a^T dlam        G = w^2 + J_a J_a^T

Both are solved by G and T = J_u^T G^-1 J_u, O(m^2 + m n) for each column. Where rows do not hold the joints without
motors, T is singular, and T^+ takes its place: as in the function itself, what no force causes is left over of r.
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.derivatives.kkt_solution import Equations, Multipliers
from linkwork.backends.ops import Array, Ops, threshold, tiny
from linkwork.constraints.rows import constraint_rows, jacobian

UNFELT = 1e-9
"""The share of J_u^T J_u, about, below which rows do not feel a motion."""

UNSURE = 1e-3
"""The most that may be undecided, summed over x (1 - x) for eigenvalues x of the projection before its last step: that
leaves 3e-6 of it. Motions that rows feel count 1e-12 at a share of 1e-6, and those of rounding 1e-6."""


class UnderactuatedSolution(Multipliers):
    """Torques and multipliers of least cost that cause the accelerations `a`, as far as they can, and y.

    `residual` is the relative error of the equation of motion, as in constrained/inverse.py.
    """

    def __init__(self, given: Equations, *, a: Array, actuated: np.ndarray, weight: float) -> None:
        motion, M, c, tau, *_ = given  # rows of any softness and mode cost and push alike
        xp, m, pick = motion.xp, motion.model.rows, np.eye(motion.model.nv)
        self.a, self.M, self.rows, self.roots = a, M, constraint_rows(motion), xp.constant(np.ones((m, 1)))
        self.J = jacobian(motion)
        self.driven, self.free = xp.constant(pick[:, actuated]), xp.constant(pick[:, ~actuated])
        self.Ja, self.Ju = self.J @ self.driven, self.J @ self.free
        self.G = xp.factor_spd(xp.symmetric(self.Ja @ self.Ja.T) + weight**2 * xp.eye(m)) if m else None
        if self.G is not None and self.Ju.shape[1]:
            self.X = self.G.solve(self.Ju)
            self.T = _pseudoinverse(xp.symmetric(self.Ju.T @ self.X), self.Ju, xp)
        h = M @ a + c - tau
        tau, lam, y = self._solve(h, xp.zeros(m))
        left = self.free.T @ (h - self.J.T @ lam)
        self.residual = xp.sqrt(left.T @ left / (h.T @ h + tiny(xp)))
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
            y = self.T @ (y - self.Ju.T @ lam)
            lam = lam + self.X @ y
        return ra - self.Ja.T @ lam, lam, y


def _pseudoinverse(T: Array, Ju: Array, xp: Ops) -> Array:
    """T^+ = (T + N t)^-1 (1 - N), where N projects on the motions that J_u does not feel.

    These are far from others in J_u^T J_u, and not in T, which has w^2 in it. N is NaN where they are not.
    """
    one, P = xp.eye(T.shape[0]), xp.symmetric(Ju.T @ Ju)
    least = threshold(xp, UNFELT) * _trace(P) + tiny(xp)
    E = least * xp.factor_spd(P + least * one).solve(one)
    E = xp.symmetric(E @ E)
    E = xp.symmetric(E @ E)
    E2 = xp.symmetric(E @ E)
    N = 3 * E2 - 2 * xp.symmetric(E2 @ E)  # eigenvalues near 0 and 1 square their distance from these
    N = N * xp.where(_trace(E - E2) <= UNSURE, 1.0, float("nan"))
    return xp.symmetric(xp.factor_spd(T + (1 + _trace(T)) * N).solve(one - N))


def _trace(x: Array) -> Array:
    return sum((x[i, i] for i in range(1, x.shape[0])), x[0, 0])
