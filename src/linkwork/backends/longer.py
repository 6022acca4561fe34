"""NumPy's longest type (`longdouble`: three more digits on x86), for which LAPACK has no functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwork.backends.numpy_ import RANK, NumpyOps
from linkwork.backends.ops import Array
from linkwork.backends.triangular import cholesky

REFINED = 3
"""Steps of refinement from float64 to the longest type: each adds the six digits or more that RANK leaves."""


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
