"""The reference backend: NumPy executes an algorithm directly, one state at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwork.backends.any_precision import cholesky, solve_lower, solve_upper
from linkwork.backends.ops import SINGULAR, Array, Factor

RANK = 1e-10
"""Singular values below this times the largest are rounding: loops closed to twelve digits leave no less."""


_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
"""NumPy's names where they are not those of C."""


class _Cholesky:
    """A = L L^T, solved by two triangular systems; NaN where A is not positive definite."""

    factored: Callable[[Array], Array] = staticmethod(np.linalg.cholesky)

    def __init__(self, a: Array, least: Array | None) -> None:
        try:
            l = self.factored(a)
            pivots = np.diagonal(l) ** 2
            singular = least is not None and not np.all((pivots > SINGULAR * np.diagonal(a)) & (pivots > least[:, 0]))
        except np.linalg.LinAlgError:
            singular = True
        self._l = np.full_like(a, np.nan) if singular else l

    def solve(self, b: Array) -> Array:
        return np.linalg.solve(self._l.T, np.linalg.solve(self._l, b))


class _Scalar:
    """A 1 x 1 matrix: its reciprocal."""

    def __init__(self, a: Array) -> None:
        self._inverse = 1.0 / a

    def solve(self, b: Array) -> Array:
        return self._inverse * b


class NumpyOps:
    name = "numpy"
    single = False
    dense = True
    sin = staticmethod(np.sin)
    cos = staticmethod(np.cos)
    sqrt = staticmethod(np.sqrt)
    atan2 = staticmethod(np.arctan2)
    where = staticmethod(np.where)
    _factor: type[_Cholesky] = _Cholesky
    finer = 1.0

    @property
    def longer(self) -> NumpyOps | None:
        """The longest type, from float64."""
        return LONGER if self is NUMPY else None

    def constant(self, a: Any) -> Array:
        a = np.asarray(a, dtype=float)
        return a.reshape(-1, 1) if a.ndim == 1 else a

    def zeros(self, rows: int, cols: int = 1) -> Array:
        return np.zeros((rows, cols))

    def eye(self, n: int) -> Array:
        return np.eye(n)

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        return np.array(rows, dtype=float)

    def vstack(self, parts: Sequence[Array]) -> Array:
        return np.concatenate(parts, axis=0)

    def hstack(self, parts: Sequence[Array]) -> Array:
        return np.concatenate(parts, axis=1)

    def cross(self, a: Array, b: Array) -> Array:
        (x,), (y,), (z,) = a.tolist()
        return np.array((0.0, -z, y, z, 0.0, -x, -y, x, 0.0)).reshape(3, 3).dot(b)  # half the time of nested lists

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
        return self._factor(a, least)

    def cholesky(self, a: Array) -> Array:
        return np.linalg.cholesky(a)

    def solve_lower(self, l: Array, b: Array) -> Array:
        return np.linalg.solve(l, b)

    def solve_upper(self, u: Array, b: Array) -> Array:
        return np.linalg.solve(u, b)

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


REFINED = 3
"""Steps of refinement from float64 to the longest type: each adds the six digits or more that RANK leaves."""


class _LongerCholesky(_Cholesky):
    """The same in the longest type."""

    factored = staticmethod(cholesky)

    def solve(self, b: Array) -> Array:
        return solve_upper(self._l.T, solve_lower(self._l, b))


class LongerOps(NumpyOps):
    """The same in the longest type that NumPy has."""

    _factor = _LongerCholesky
    finer = float(np.finfo(np.longdouble).eps / np.finfo(float).eps)

    def cholesky(self, a: Array) -> Array:
        return cholesky(a)

    def solve_lower(self, l: Array, b: Array) -> Array:
        return solve_lower(l, b)

    def solve_upper(self, u: Array, b: Array) -> Array:
        return solve_upper(u, b)

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        return np.array(rows, dtype=np.longdouble)

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


NUMPY, LONGER = NumpyOps(), LongerOps()
