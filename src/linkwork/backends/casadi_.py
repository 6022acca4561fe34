"""CasADi's SX records every scalar operation of an algorithm, for users of CasADi (an extra)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwork.backends.ops import Array
from linkwork.backends.written_out import WrittenOut
from linkwork.errors import MissingExtra

try:
    import casadi
except ImportError:
    raise MissingExtra("casadi", "casadi", "backend='casadi' or f.casadi()") from None

__all__ = ["CASADI", "CasadiOps", "casadi"]


class CasadiOps(WrittenOut):
    name = "casadi"
    single = False
    dense = False
    sin = staticmethod(casadi.sin)
    cos = staticmethod(casadi.cos)
    sqrt = staticmethod(casadi.sqrt)

    def atan2(self, y: Array, x: Array) -> Array:
        return casadi.atan2(y, x)

    def constant(self, a: Any) -> Array:
        return casadi.SX(casadi.DM(np.asarray(a, dtype=float)))

    def zeros(self, rows: int, cols: int = 1) -> Array:
        return casadi.SX.zeros(rows, cols)

    def eye(self, n: int) -> Array:
        return casadi.densify(casadi.SX.eye(n))

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Array:
        return casadi.vertcat(*(casadi.horzcat(*row) for row in rows))

    def vstack(self, parts: Sequence[Array]) -> Array:
        return casadi.vertcat(*parts)

    def hstack(self, parts: Sequence[Array]) -> Array:
        return casadi.horzcat(*parts)

    def cross(self, a: Array, b: Array) -> Array:
        return casadi.densify(casadi.skew(a) @ b)

    def apply(self, function: str, x: Array) -> Array:
        return getattr(casadi, function)(x)

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        return casadi.if_else(condition, yes, no)

    def is_zero(self, a: Array) -> bool:
        return bool(a.is_zero())

    def held(self, a: Array) -> Array:
        return a

    def symmetric(self, a: Array) -> Array:
        return casadi.tril2symm(casadi.tril(a))

    def square(self, a: Array, left: Sequence[Mapping[int, Array]], right: Sequence[Mapping[int, Array]]) -> Array:
        return a

    def fewest(self, candidates: Sequence[Callable[[], Array]], share: float = 1.0) -> Array:
        return candidates[0]()

    def call(self, function: Any, *args: Array) -> tuple[Array, ...]:
        return tuple(casadi.densify(out) for out in function.call(list(args), True, False))


CASADI = CasadiOps()
