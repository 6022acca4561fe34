"""The reference backend: NumPy executes an algorithm directly, one state at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from linkwork.backends.ops import SINGULAR, Array, Factor
from linkwork.backends.triangular import solve_lower, solve_upper
from linkwork.value_objects import read_only

RANK = 1e-10
"""Singular values below this times the largest are rounding: loops closed to twelve digits leave no less."""


_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
"""NumPy's names where they are not those of C."""


class _Cholesky:
    """A = L L^T, solved by two triangular systems; NaN where A is not positive definite."""

    def __init__(self, xp: NumpyOps, a: Array, least: Array | None) -> None:
        self._xp = xp
        try:
            l = xp.cholesky(a)
            pivots = np.diagonal(l) ** 2
            singular = least is not None and not np.all((pivots > SINGULAR * np.diagonal(a)) & (pivots > least[:, 0]))
        except np.linalg.LinAlgError:
            singular = True
        self._l = np.full_like(a, np.nan) if singular else l

    def solve(self, b: Array) -> Array:
        return self._xp.solve_upper(self._l.T, self._xp.solve_lower(self._l, b))


class _Scalar:
    """A 1 x 1 matrix: its reciprocal."""

    def __init__(self, a: Array) -> None:
        self._inverse = 1.0 / a

    def solve(self, b: Array) -> Array:
        return self._inverse * b


SMALL = 36
"""Entries of zeros that are made once: a 6 x 6 matrix."""


@lru_cache(1024)
def _zeros(rows: int, cols: int) -> np.ndarray:
    return np.asarray(read_only(np.zeros((rows, cols))))


@lru_cache(256)
def _eye(n: int) -> np.ndarray:
    return np.asarray(read_only(np.eye(n)))


class NumpyOps:
    name = "numpy"
    single = False
    dense = True
    sin = staticmethod(np.sin)
    cos = staticmethod(np.cos)
    sqrt = staticmethod(np.sqrt)
    atan2 = staticmethod(np.arctan2)
    finer = 1.0

    @property
    def longer(self) -> NumpyOps | None:
        """The longest type, from float64."""
        from linkwork.backends.longer import LONGER

        return LONGER

    def constant(self, a: Any) -> Array:
        a = np.asarray(a, dtype=float)
        return a.reshape(-1, 1) if a.ndim == 1 else a

    # small constants are made once and cannot be written to: no algorithm writes to an array
    def zeros(self, rows: int, cols: int = 1) -> Array:
        return _zeros(rows, cols) if rows * cols <= SMALL else np.zeros((rows, cols))

    def eye(self, n: int) -> Array:
        return _eye(n) if n * n <= SMALL else np.eye(n)

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        return np.array(rows, dtype=float)

    def vstack(self, parts: Sequence[Array]) -> Array:
        return np.concatenate(parts, axis=0)

    def hstack(self, parts: Sequence[Array]) -> Array:
        return np.concatenate(parts, axis=1)

    def cross(self, a: Array, b: Array) -> Array:
        (x,), (y,), (z,) = a.tolist()
        return np.array((0.0, -z, y, z, 0.0, -x, -y, x, 0.0)).reshape(3, 3).dot(b)  # half the time of nested lists

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        if isinstance(condition, bool | np.bool_):  # a number: a twentieth of the time
            return a if condition else b
        return np.where(condition, a, b)

    def apply(self, function: str, x: Array) -> Array:
        return getattr(np, _NAMES.get(function, function))(x)

    def is_zero(self, a: Array) -> bool:
        return not a.any()

    def square(self, a: Array, left: Sequence[Mapping[int, Array]], right: Sequence[Mapping[int, Array]]) -> Array:
        return a

    def fewest(self, candidates: Sequence[Callable[[], Array]], share: float = 1.0) -> Array:
        return candidates[0]()

    def held(self, a: Array) -> Array:
        return a

    def symmetric(self, a: Array) -> Array:
        return a

    def factor_spd(self, a: Array, least: Array | None = None) -> Factor:
        if a.shape[0] == 1 and least is None:
            return _Scalar(a)
        return _Cholesky(self, a, least)

    def cholesky(self, a: Array) -> Array:
        return np.linalg.cholesky(a)

    def solve_lower(self, l: Array, b: Array) -> Array:
        return solve_lower(l, b)

    def solve_upper(self, u: Array, b: Array) -> Array:
        return solve_upper(u, b)

    def least_squares(self, a: Array, b: Array, terms: Array | None = None) -> Array:
        """By singular values; those below RANK of the largest count as zero.

        Refined once: singular vectors of rows of very different size are right to rounding of the largest.
        """
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        keep = s > RANK * (s[0] if s.size else 0.0)
        inverse = (vt[keep].T / s[keep]) @ u[:, keep].T
        x = inverse @ b
        return x + inverse @ (b - a @ x)

    def call(self, function: Any, *args: Array) -> tuple[Array, ...]:
        return tuple(np.array(out) for out in function.call(list(args)))


NUMPY = NumpyOps()
