"""Dense linear algebra in scalar operations, for backends that trace and have no LAPACK."""

from __future__ import annotations

from typing import Any

from linkwork.backends.ops import SINGULAR, Array, Factor, threshold

NAN = float("nan")

ROUNDINGS = {False: 1e-13, True: 1e-5}
"""Some hundred times the rounding error of float64 and of float32."""


def above(pivot: Array, entry: Array, least: Array, xp: Any) -> Array:
    """The pivot, or NaN if it is zero but for rounding."""
    return xp.where(pivot > threshold(xp, SINGULAR) * entry, xp.where(pivot > least, pivot, NAN), NAN)


class LDL:
    """A = L D L^T without square roots, on the lower triangle of A."""

    def __init__(self, a: Array, xp: Any, least: Array | None = None) -> None:
        n = a.shape[0]
        low = [[a[i, j] for j in range(i + 1)] for i in range(n)]
        self._xp = xp
        self._d_inv: list[Array] = []
        self._l: list[list[Array]] = [[] for _ in range(n)]
        for j in range(n):
            pivot = low[j][j]
            if least is not None:
                pivot = above(pivot, a[j, j], least[j, 0], xp)
            d_inv = 1 / pivot
            column = [low[i][j] * d_inv for i in range(j + 1, n)]
            for i in range(j + 1, n):
                for k in range(j + 1, i + 1):
                    low[i][k] = low[i][k] - column[i - j - 1] * low[k][j]
            for i in range(j + 1, n):
                self._l[i].append(column[i - j - 1])
            self._d_inv.append(d_inv)

    def solve(self, b: Array) -> Array:
        n = len(self._d_inv)
        if n == 0:
            return b
        x = [b[i, :] for i in range(n)]
        for i in range(n):
            for j, lij in enumerate(self._l[i]):
                x[i] = x[i] - lij * x[j]
        x = [xi * d for xi, d in zip(x, self._d_inv, strict=True)]
        for i in reversed(range(n)):
            for j, lij in enumerate(self._l[i]):
                x[j] = x[j] - lij * x[i]
        return self._xp.vstack(x)


class WrittenOut:
    """The part of a tracing backend that is algebra on top of its scalar operations."""

    finer = 1.0
    longer = None

    def factor_spd(self: Any, a: Array, least: Array | None = None) -> Factor:
        return LDL(a, self, least)

    def cholesky(self: Any, a: Array) -> Array:
        """Column by column, on the lower triangle."""
        n = a.shape[0]
        columns: list[Array] = []
        for j in range(n):
            column = a[j:, j]
            for k, done in enumerate(columns):
                column = column - done[j - k :, 0] * done[j - k, 0]
            root = self.sqrt(column[0, 0])
            columns.append(column / (NAN if self.is_zero(root) else root))
        padded = (self.vstack([self.zeros(j), c]) for j, c in enumerate(columns))
        return self.hstack([self.zeros(n, 0), *padded])

    def solve_lower(self: Any, l: Array, b: Array) -> Array:
        x = self.zeros(0, b.shape[1])
        for i in range(l.shape[0]):
            x = self.vstack([x, (b[i, :] - l[i, :i] @ x) / l[i, i]])
        return x

    def solve_upper(self: Any, u: Array, b: Array) -> Array:
        x = self.zeros(0, b.shape[1])
        for i in reversed(range(u.shape[0])):
            x = self.vstack([(b[i, :] - u[i, i + 1 :] @ x) / u[i, i], x])
        return x

    def least_squares(self: Any, a: Array, b: Array, terms: Array | None = None) -> Array:
        """By proximal iteration, because singular values cannot be traced.

        x <- x + a^T (a a^T + rho)^-1 (b - a x).

        The error along a singular value s shrinks by rho / (s^2 + rho) each time, and b - a x is right to rounding,
        which a a^T is not. x stays in the range of a^T, whatever the rank. Singular values are resolved down to s^2 =
        rho, and the inconsistent part of b grows: `terms` detect it; without them it is isolated by e <- e - G (G +
        rho)^-1 e.
        """
        rounding, G = ROUNDINGS[self.single], self.symmetric(a @ a.T)
        rho = rounding * sum(G[i, i] for i in range(G.shape[0]))
        factor, aim = LDL(G + rho * self.eye(G.shape[0]), self), b
        if terms is None:
            null = b
            for _ in range(6):
                null = null - a @ (a.T @ factor.solve(null))
            aim = b - null
        x = a.T @ factor.solve(aim)
        for _ in range(5):
            x = x + a.T @ factor.solve(aim - a @ x)
        if terms is None:
            return x
        left, known = b - a @ x, rounding**2 * ((a * a) @ (x * x) + terms)
        return x + sum(self.where(known[i, 0] >= left[i, 0] * left[i, 0], 0.0, NAN) for i in range(a.shape[0]))
