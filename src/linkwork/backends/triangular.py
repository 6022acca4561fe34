"""Cholesky factors and triangular solves in the precision of their arguments; rows keep their order.

LAPACK has none for NumPy's longest type. And NumPy solves triangular systems by LU factors only: that exchanges rows,
and loses digits of light links behind heavy ones that substitution keeps.
"""

from __future__ import annotations

import numpy as np


def cholesky(M: np.ndarray) -> np.ndarray:
    """L of M = L L^T; LinAlgError if M is not positive definite."""
    L = np.zeros(M.shape, M.dtype)
    for j in range(len(M)):
        left = M[j:, j] - L[j:, :j] @ L[j, :j]
        if not left[0] > 0:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        L[j:, j] = left / np.sqrt(left[0])
    return L


def solve_lower(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """L^-1 b for a lower triangular L: small pivots keep their digits."""
    x = np.array(b, L.dtype)
    for i in range(len(L)):
        x[i] = (x[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def solve_upper(U: np.ndarray, b: np.ndarray) -> np.ndarray:
    """U^-1 b for an upper triangular U."""
    return solve_lower(U[::-1, ::-1], b[::-1])[::-1]
