"""NumPy's longest type (`longdouble`: three more digits on x86), for which LAPACK has no functions.

The functions work in the precision of their arguments, whatever that is, and never exchange rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwork.backends.numpy_ import RANK, NumpyOps
from linkwork.backends.ops import Array

REFINED = 3
"""Steps of refinement from float64 to the longest type: each adds the six digits or more that RANK leaves."""


def cholesky(M: np.ndarray) -> np.ndarray:
    """L of M = L L^T; LinAlgError if M is not positive definite."""
    L = np.zeros_like(M)
    for j in range(len(M)):
        left = M[j:, j] - L[j:, :j] @ L[j, :j]
        if not left[0] > 0:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        L[j:, j] = left / np.sqrt(left[0])
    return L


def solve_lower(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """L^-1 b for a lower triangular L: small pivots keep their digits."""
    x = b.astype(L.dtype)
    for i in range(len(L)):
        x[i] = (x[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def solve_upper(U: np.ndarray, b: np.ndarray) -> np.ndarray:
    """U^-1 b for an upper triangular U."""
    return solve_lower(U[::-1, ::-1], b[::-1])[::-1]


class LongerOps(NumpyOps):
    """The NumPy backend in the longest type."""

    finer = float(np.finfo(np.longdouble).eps / np.finfo(float).eps)

    @property
    def longer(self) -> None:
        """There is none."""

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        return np.array(rows, dtype=np.longdouble)

    def cholesky(self, a: Array) -> Array:
        return cholesky(a)

    def solve_lower(self, l: Array, b: Array) -> Array:
        return solve_lower(l, b)

    def solve_upper(self, u: Array, b: Array) -> Array:
        return solve_upper(u, b)

    def least_squares(self, a: Array, b: Array, terms: Array | None = None) -> Array:
        """By singular values in float64, refined."""
        u, s, vt = np.linalg.svd(np.asarray(a, dtype=float), full_matrices=False)
        keep = s > RANK * (s[0] if s.size else 0.0)
        inverse, x = (vt[keep].T / s[keep]) @ u[:, keep].T, np.zeros((a.shape[1], b.shape[1]), np.longdouble)
        for _ in range(1 + REFINED):
            x = x + inverse @ (b - a @ x)
        return x

    def call(self, function: Any, *args: Array) -> tuple[Array, ...]:
        return super().call(function, *(np.asarray(x, dtype=float) for x in args))


LONGER = LongerOps()
