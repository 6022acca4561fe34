"""A symmetric matrix as Q T Q^T, T tridiagonal: solves with any multiple of the identity added.

    (A + rho I) x = b   is   (T + rho I) y = Q^T b,   x = Q y

Householder's reduction, without pivots and without a branch: a column that is zero (to 15 digits) already has no
reflection. Golub and Van Loan, Matrix computations, 8.3.1. O(4/3 m^3) once; then O(4 m^2) for every rho and b, where a
factorisation costs O(m^3 / 3) for every rho.
"""

from __future__ import annotations

from linkwork.backends.ops import Array, Ops

LEAST = 1e-30
"""The square of the shortest column that counts, relative to the mean of the diagonal."""


class Tridiagonal:
    """Q T Q^T of a symmetric matrix that is positive semidefinite."""

    def __init__(self, A: Array, xp: Ops) -> None:
        self.xp, self.size = xp, A.shape[0]
        self.diagonal: list[Array] = []
        self.beside: list[Array] = []
        self.reflections: list[tuple[Array, Array]] = []  # v and beta of I - beta v v^T
        mean = sum((A[k, k] for k in range(self.size)), start=0.0) / max(self.size, 1)
        least = LEAST * mean * mean
        for _ in range(self.size - 2):
            self.diagonal.append(A[0, 0])
            x, A = A[1:, 0:1], A[1:, 1:]
            x0, square = x[0, 0], (x.T @ x)[0, 0]
            counts = square > least
            length = xp.sqrt(xp.where(counts, square, 1.0))
            away = xp.where(x0 < 0, -length, length)
            v = xp.vstack([x[0:1, :] + away, x[1:, :]])
            beta = xp.where(counts, 1.0 / (length * (length + xp.where(x0 < 0, -x0, x0))), 0.0)
            w = beta * (A @ v)
            w = w - (beta / 2 * (w.T @ v)[0, 0]) * v
            A = xp.symmetric(A - v @ w.T - w @ v.T)
            self.reflections.append((v, beta))
            self.beside.append(xp.where(counts, -away, x0))
        if self.size > 1:
            self.beside.append(A[1, 0])
            self.diagonal.append(A[0, 0])
            A = A[1:, 1:]
        if self.size:
            self.diagonal.append(A[0, 0])

    def solve(self, rho: Array, b: Array) -> Array:
        """(A + rho I)^-1 b, m x 1, for rho above zero."""
        xp, m = self.xp, self.size
        for k, (v, beta) in enumerate(self.reflections):
            b = xp.vstack([b[0 : k + 1, :], self._reflected(b[k + 1 :, :], v, beta)])
        pivots, y, x = list[Array](), list[Array](), list[Array]()
        for k in range(m):
            pivots.append(self.diagonal[k] + rho)
            y.append(b[k : k + 1, :])
            if k:
                share = self.beside[k - 1] / pivots[k - 1]
                pivots[k] = pivots[k] - share * self.beside[k - 1]
                y[k] = y[k] - share * y[k - 1]
        for k in reversed(range(m)):
            x.append((y[k] - self.beside[k] * x[-1] if x else y[k]) / pivots[k])
        out = xp.vstack([xp.zeros(0), *reversed(x)])
        for k, (v, beta) in reversed(list(enumerate(self.reflections))):
            out = xp.vstack([out[0 : k + 1, :], self._reflected(out[k + 1 :, :], v, beta)])
        return out

    def _reflected(self, x: Array, v: Array, beta: Array) -> Array:
        return x - (beta * (v.T @ x)[0, 0]) * v
