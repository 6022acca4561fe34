"""Dense linear algebra written out in scalar operations, for backends that trace and have no LAPACK to call."""

from __future__ import annotations

from typing import Any

from linkwork.backends.ops import SINGULAR, Array, Factor, threshold

NAN = float("nan")


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

    def least_squares(self: Any, a: Array, b: Array) -> Array:
        """By proximal iteration on the smaller Gram matrix G, because singular values cannot be traced.

        z <- z + (G + rho)^-1 (c - G z) shrinks the error along an eigenvalue g by rho / (g + rho) each time. What lies
        in the null space of G, e <- rho (G + rho)^-1 e isolates; taken out, rank deficiency does no harm.
        """
        wide = a.shape[0] <= a.shape[1]
        G = self.symmetric(a @ a.T if wide else a.T @ a)
        rho = threshold(self, 1e-10) * sum(G[i, i] for i in range(G.shape[0]))
        factor = LDL(G + rho * self.eye(G.shape[0]), self)

        def range_part(x: Array) -> Array:
            null = x
            for _ in range(6):
                null = rho * factor.solve(null)
            return x - null

        c = range_part(b) if wide else a.T @ b
        z = factor.solve(c)
        for _ in range(5):
            z = z + factor.solve(c - G @ z)
        return a.T @ z if wide else range_part(z)
