"""NumPy's longest type (`longdouble`: three more digits on x86), for which LAPACK has no functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwork.backends.numpy_ import NumpyOps
from linkwork.backends.ops import Array
from linkwork.backends.triangular import cholesky, solve_lower, solve_upper

__all__ = ["LONGER", "LongerOps", "cholesky", "solve_lower", "solve_upper"]


class LongerOps(NumpyOps):
    """The NumPy backend in the longest type, without `least_squares` (singular values)."""

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        return np.array(rows, dtype=np.longdouble)

    def cholesky(self, a: Array) -> Array:
        return cholesky(a)


LONGER = LongerOps()
