"""NumPy's longest type (`longdouble`: three more digits on x86), for which LAPACK has no functions.

The functions work in the precision of their arguments, whatever that is, and never exchange rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwork.backends.numpy_ import NumpyOps
from linkwork.backends.ops import Array


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
    """The NumPy backend in the longest type, without `least_squares` (singular values)."""

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        return np.array(rows, dtype=np.longdouble)

    def cholesky(self, a: Array) -> Array:
        return cholesky(a)

    def solve_lower(self, l: Array, b: Array) -> Array:
        return solve_lower(l, b)

    def solve_upper(self, u: Array, b: Array) -> Array:
        return solve_upper(u, b)


LONGER = LongerOps()
