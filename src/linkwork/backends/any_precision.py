"""Cholesky's factorisation and triangular systems in any precision: LAPACK has no longer type.

Rows are not exchanged, so that small pivots keep their digits.
"""

from __future__ import annotations

import numpy as np


def cholesky(M: np.ndarray) -> np.ndarray:
    """L of M = L L^T; LinAlgError if M is not positive definite."""
    L = np.zeros_like(M)
    for j in range(len(M)):
        left = M[j:, j] - L[j:, :j] @ L[j, :j]
        if not left[0] > 0:
            raise np.linalg.LinAlgError
        L[j:, j] = left / np.sqrt(left[0])
    return L


def solve_lower(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """L^-1 b, in the precision of L."""
    x = b.astype(L.dtype)
    for i in range(len(L)):
        x[i] = (x[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def solve_upper(U: np.ndarray, b: np.ndarray) -> np.ndarray:
    """U^-1 b, in the precision of U."""
    return solve_lower(U[::-1, ::-1], b[::-1])[::-1]
