"""The contract between algorithms and backends.

Everything is a two-dimensional matrix: a vector is `n x 1`, and `A[i, j]` is a scalar. Operators `@ + - * / .T` and
slices come from Python; the functions below come from the backend, always called `xp`. An algorithm written against
this contract never mutates an array and never asks which backend it runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

Array = Any
"""A backend's matrix, or a scalar of it: `numpy.ndarray`, `casadi.SX`."""


SINGULAR = 1e-10
"""A pivot this small, relative to its diagonal entry, counts as zero where a factorisation is guarded: six digits
left."""


FUNCTIONS = ("tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log")
"""Functions of one number that every backend has beside those of the contract, by their names in C."""


def threshold(xp: Ops, double: float) -> float:
    """The rounding level of a backend, from that of float64: float32 has half the digits."""
    return double**0.5 if xp.single else double


def tiny(xp: Ops) -> float:
    """What is added to squares that may be zero, before they are divided by.

    Its root, and 1 divided by it, are numbers of the backend.
    """
    return 1e-36 if xp.single else 1e-150


class Factor(Protocol):
    """A factorised symmetric positive definite matrix A."""

    def solve(self, b: Array) -> Array:
        """A^-1 b, for a vector or for the columns of a matrix."""
        ...


class Ops(Protocol):
    """The operations of a backend."""

    name: str
    single: bool
    """Whether results are float32."""
    finer: float
    """Its rounding relative to that of float64, below 1 where numbers have more digits."""
    dense: bool
    """Whether products cost the same whatever zeros are in their matrices."""

    @property
    def longer(self) -> Any:
        """The backend whose numbers have more digits; None if there is none."""
        ...

    def constant(self, a: Any) -> Array:
        """Numbers as a matrix of the backend; zeros and ones in it fold away when traced."""
        ...

    def zeros(self, rows: int, cols: int = 1) -> Array: ...

    def eye(self, n: int) -> Array: ...

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        """A matrix from rows of scalars."""
        ...

    def vstack(self, parts: Sequence[Array]) -> Array: ...

    def hstack(self, parts: Sequence[Array]) -> Array: ...

    def cross(self, a: Array, b: Array) -> Array:
        """a x b for a 3-vector `a` and each column of a 3 x k matrix `b`."""
        ...

    def sin(self, x: Array) -> Array: ...

    def cos(self, x: Array) -> Array: ...

    def sqrt(self, x: Array) -> Array: ...

    def atan2(self, y: Array, x: Array) -> Array: ...

    def apply(self, function: str, x: Array) -> Array:
        """A function that dynamics does not need, but relations of users may: one of `FUNCTIONS`."""
        ...

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Elementwise choice; both sides are evaluated, so both must be finite."""
        ...

    def is_zero(self, a: Array) -> bool:
        """Whether all entries are zero, for this state or, traced, for every state."""
        ...

    def held(self, a: Array) -> Array:
        """`a` as values of their own: a trace that holds them fixed must not cancel them against their origin."""
        ...

    def symmetric(self, a: Array) -> Array:
        """`a`, known to be symmetric: a tracing backend computes one triangle only."""
        ...

    def square(self, a: Array, left: Sequence[Mapping[int, Array]], right: Sequence[Mapping[int, Array]]) -> Array:
        """`a`, known to be the symmetric product of these rows, left[i] . right[j], with entries by column.

        Both have entries in the same columns: a tracing backend records the product beside its operations.
        """
        ...

    def factor_spd(self, a: Array, least: Array | None = None) -> Factor:
        """Factorise a symmetric positive definite matrix.

        With `least`, a column, a pivot that is not above its entry there, or not above SINGULAR times its diagonal
        entry, counts as zero, and the solution is NaN: a matrix that is singular but for rounding never gives numbers.
        """
        ...

    def cholesky(self, a: Array) -> Array:
        """The lower triangular L of a = L L^T."""
        ...

    def solve_lower(self, l: Array, b: Array) -> Array:
        """l^-1 b for a lower triangular matrix."""
        ...

    def solve_upper(self, u: Array, b: Array) -> Array:
        """u^-1 b for an upper triangular matrix."""
        ...

    def least_squares(self, a: Array, b: Array, terms: Array | None = None) -> Array:
        """The x of least norm among those that minimise |a x - b|, for any rank of `a`.

        With `terms`, the squares of what entries of b are sums of, a backend without singular values gives NaN where
        a x = b does not hold but for rounding: where b is not consistent, or a is too near to a lower rank.
        """
        ...

    def fewest(self, candidates: Sequence[Callable[[], Array]], share: float = 1.0) -> Array:
        """The result of the candidate with the fewest operations; all compute the same, the first is a guess.

        Another one must have less than this `share` of the operations of those before it.

        The tracer of kernels traces all of them, and those not taken leave nothing behind; others take the guess.
        """
        ...

    def call(self, function: Any, *args: Array) -> tuple[Array, ...]:
        """The outputs of a user's CasADi function with several outputs: evaluated, or inlined in the trace."""
        ...
