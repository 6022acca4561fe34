"""Derivatives of inverse dynamics with constraints, at its solution.

    M a + c = h = B tau + J^T lam,    tau = B^T y,    w^2 lam = J y

The last two say that |tau|^2 + (w |lam|)^2 is least (common/least_forces.py). With tau, lam and y held fixed, r = dh -
d(J^T) lam and s = (dJ) y,

    r = B dtau + J^T dlam,    dtau = B^T dy,    w^2 dlam = J dy + s

are the same equations with s: dlam = A r + C s, with A and C from their columns, O(m n) for each column. r is that of
forward dynamics (forward_derivatives.py).

Motors may be too few. Of joints without motors, rows hold some independently of each other (i), and the motions of the
others (d) are those of these for all that rows feel, J_d = J_i X: motions along Z = [-X; 1] no row and no motor feels.
With A x = h for all forces x, the derivative of x = A^+ h at constant rank (Golub and Pereyra 1973) is

    dx = A^+ (dh - dA x) + (1 - A^+ A) dA^T y        where A x = h is solved without a residual

So what is left over of r, Z c with (1 + X^T X) c = Z^T r, is projected out, and y may have any part along Z: as J Z = 0
in all postures, (dJ) Z = -J dZ is in the range of J, which C takes to zero. y_d = 0 leaves the equations above with the
columns of motors and of i. Independent columns are factored as they are, so rows may be redundant: nothing is squared.
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.common.least_forces import LeastForces
from linkwork.algorithms.derivatives.kkt_solution import Multipliers
from linkwork.backends.ops import Array, threshold, tiny
from linkwork.constraints.rows import constraint_rows, jacobian
from linkwork.lazy import cached_property
from linkwork.model import Motion

FOLLOWED = 1e-9
"""The part of a column of J_d, relative to it, that J_i X may not have: more is a motion that rows feel."""

ROUNDING = 1e-12
"""Pivots of J_i, relative to J, that may be rounding."""


class InverseSolution(Multipliers):
    """Multipliers of least cost that cause joint forces `h` with motors' torques, and y.

    `held` are the degrees of freedom i above. All is NaN where these are not what they should be, where rounding
    decides, or where more than `residual` of h is left over.
    """

    M: Array

    def __init__(
        self, motion: Motion, h: Array, *, actuated: np.ndarray, held: np.ndarray, weight: float, residual: float
    ) -> None:
        self.xp, pick = motion.xp, np.eye(motion.model.nv)
        xp = self.xp
        self.rows, self.roots = constraint_rows(motion), xp.constant(np.ones((motion.model.rows, 1)))
        self.J, self.motors = jacobian(motion), xp.constant(np.diag(actuated.astype(float)))
        self.kept, self.moved = xp.constant(pick[:, actuated | held]), xp.constant(pick[:, ~(actuated | held)])
        self.forces = LeastForces(self.J @ self.kept, actuated[actuated | held], weight, xp)
        self.known = self._held()
        if self.moved.shape[1]:
            self._follow(h, residual)
        tau, lam, y = self.forces.solve(self._felt(h))
        self.known = self.known * self.forces.known(h, tau, lam)
        self.multipliers, self.y = xp.held(lam), xp.held(self.kept @ y)

    def _held(self) -> Array | float:
        """1, or NaN where rows hold a joint by rounding alone."""
        flag: Array | float = 1.0
        R, least = self.forces.held.R, threshold(self.xp, ROUNDING) ** 2 * self.forces.size
        for k in range(self.forces.held.columns):
            flag = flag * self.xp.where(R[k, k] * R[k, k] > least, 1.0, float("nan"))
        return flag

    def _follow(self, h: Array, residual: float) -> None:
        """X, and whether it is right: of rows, and of h."""
        xp, nan, Jd = self.xp, float("nan"), self.J @ self.moved
        turned, n = self.forces.held.apply(Jd), self.forces.held.columns
        X = self.forces.held.solve(turned[0:n, :])
        self.Z = self.moved - self.kept @ self.forces.free @ X
        self.across = xp.factor_spd(xp.eye(X.shape[1]) + xp.symmetric(X.T @ X))
        for j in range(X.shape[1]):
            felt, size = turned[n:, j : j + 1], Jd[:, j : j + 1]
            most = threshold(xp, FOLLOWED) ** 2 * (size.T @ size)
            if not xp.is_zero(felt):
                self.known = self.known * xp.where(felt.T @ felt <= most, 1.0, nan)[0, 0]
        left = self.Z.T @ h
        share = (left.T @ self.across.solve(left))[0, 0] / ((h.T @ h)[0, 0] + tiny(xp))
        self.known = self.known * xp.where(share <= residual**2, 1.0, nan)

    def _felt(self, r: Array) -> Array:
        """What forces can cause of r, of motors and of the joints that rows hold."""
        if not self.moved.shape[1]:
            return self.kept.T @ r
        return self.kept.T @ (r - self.Z @ self.across.solve(self.Z.T @ r))

    def solve(self, r: Array, s: Array) -> tuple[Array, Array]:
        """dy, without a part along Z, and dlam, for a few columns."""
        _, lam, y = self.forces.solve(self._felt(r), s)
        y = self.kept @ y
        if self.moved.shape[1]:
            y = y - self.Z @ self.across.solve(self.Z.T @ y)
        return self.known * y, self.known * lam

    def by_columns(self, r: Array, s: Array) -> tuple[Array, Array]:
        """The derivatives of tau (nv rows, zero without actuators) and lam, for many columns."""
        A, C = self.inverse
        lam = self.known * (A @ r + C @ s)
        tau = self.motors @ (r - self.J.T @ lam)
        return tau if self.rows else self.known * tau, lam

    @cached_property
    def inverse(self) -> tuple[Array, Array]:
        """A and C."""
        A, C = self.forces.inverse()
        A = A @ self.kept.T
        if self.moved.shape[1]:
            A = A - self.across.solve((A @ self.Z).T).T @ self.Z.T
        return A, C
