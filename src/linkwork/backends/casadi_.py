"""The tracing backend: CasADi SX records every scalar operation of an algorithm.

Constant zeros and ones fold while the graph is built, so a trace costs what the structure of the robot needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi
import numpy as np

from linkwork.backends.ops import SINGULAR, Array, Factor


class _LDL:
    """A = L D L^T without square roots, on the lower triangle of A."""

    def __init__(self, a: Array, guard: bool = False) -> None:
        n = a.shape[0]
        low = [[a[i, j] for j in range(i + 1)] for i in range(n)]
        self._d_inv: list[Array] = []
        self._l: list[list[Array]] = [[] for _ in range(n)]
        for j in range(n):
            pivot = low[j][j]
            if guard:
                pivot = casadi.if_else(pivot < SINGULAR * a[j, j], casadi.SX.nan(), pivot)
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
        return casadi.vertcat(*x)


class CasadiOps:
    name = "casadi"
    sin = staticmethod(casadi.sin)
    cos = staticmethod(casadi.cos)
    sqrt = staticmethod(casadi.sqrt)

    def atan2(self, y: Array, x: Array) -> Array:
        return casadi.atan2(y, x)

    def constant(self, a: Any) -> Array:
        return casadi.SX(casadi.DM(np.asarray(a, dtype=float)))

    def zeros(self, rows: int, cols: int = 1) -> Array:
        return casadi.SX.zeros(rows, cols)

    def eye(self, n: int) -> Array:
        return casadi.densify(casadi.SX.eye(n))

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        return casadi.vertcat(*(casadi.horzcat(*row) for row in rows))

    def vstack(self, parts: Sequence[Array]) -> Array:
        return casadi.vertcat(*parts)

    def hstack(self, parts: Sequence[Array]) -> Array:
        return casadi.horzcat(*parts)

    def cross(self, a: Array, b: Array) -> Array:
        return casadi.densify(casadi.skew(a) @ b)

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        return casadi.if_else(condition, yes, no)

    def is_zero(self, a: Array) -> bool:
        return bool(a.is_zero())

    def symmetric(self, a: Array) -> Array:
        return casadi.tril2symm(casadi.tril(a))

    def factor_spd(self, a: Array, guard: bool = False) -> Factor:
        return _LDL(a, guard)

    def cholesky(self, a: Array) -> Array:
        """Column by column, on the lower triangle."""
        n = a.shape[0]
        columns: list[Array] = []
        for j in range(n):
            column = a[j:, j]
            for k, done in enumerate(columns):
                column = column - done[j - k :] * done[j - k]
            root = casadi.sqrt(column[0])
            columns.append(column / (casadi.SX.nan() if root.is_zero() else root))
        padded = (casadi.vertcat(casadi.SX(j, 1), c) for j, c in enumerate(columns))
        return casadi.densify(casadi.horzcat(casadi.SX(n, 0), *padded))

    def solve_lower(self, l: Array, b: Array) -> Array:
        x = casadi.SX(0, b.shape[1])
        for i in range(l.shape[0]):
            row = (b[i, :] - l[i, :i] @ x) / l[i, i]
            x = casadi.vertcat(x, row)
        return x

    def solve_upper(self, u: Array, b: Array) -> Array:
        n, x = u.shape[0], casadi.SX(0, b.shape[1])
        for i in reversed(range(n)):
            row = (b[i, :] - u[i, i + 1 :] @ x) / u[i, i]
            x = casadi.vertcat(row, x)
        return x

    def least_squares(self, a: Array, b: Array) -> Array:
        """By proximal iteration on the smaller Gram matrix G, because singular values cannot be traced.

        z <- z + (G + rho)^-1 (c - G z) shrinks the error along an eigenvalue g by rho / (g + rho) each time. What lies
        in the null space of G, e <- rho (G + rho)^-1 e isolates; taken out, rank deficiency does no harm.
        """
        wide = a.shape[0] <= a.shape[1]
        G = self.symmetric(a @ a.T if wide else a.T @ a)
        rho = 1e-10 * casadi.trace(G)
        factor = _LDL(G + rho * casadi.SX.eye(G.shape[0]))

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

    def call(self, function: Any, *args: Array) -> tuple[Array, ...]:
        return tuple(casadi.densify(out) for out in function.call(list(args), True, False))


CASADI = CasadiOps()
