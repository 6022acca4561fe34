"""The operations of a program: their names, and what they mean in NumPy.

Truth values are numbers, 1.0 and 0.0, as in CasADi and C; anything that is not zero counts as true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FREE = frozenset({"const", "input", "sin_of", "cos_of", "guarded"})
"""Kinds that do not count: data, the two halves of a ``sincos``, and checks that inputs are numbers."""

UNARY = (
    "neg", "sqrt", "fabs", "sign", "not", "floor", "ceil", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "exp", "log", "expm1", "log1p",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "div", "pow", "fmin", "fmax", "lt", "le", "eq", "ne", "and", "or", "if_else_zero", "atan2",
    "copysign", "hypot", "fmod",
)  # fmt: skip
COMPARISONS = frozenset({"lt", "le", "eq", "ne", "and", "or", "not"})
COMMUTATIVE = frozenset({"add", "mul", "fmin", "fmax", "eq", "ne", "and", "or", "hypot"})
LIBM = {
    "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "exp": "exp", "log": "log", "expm1": "expm1", "log1p": "log1p", "pow": "pow", "atan2": "atan2",
    "hypot": "hypot", "fmod": "fmod",
}  # fmt: skip
"""Kinds that are rare in dynamics: one call of the C library per lane."""


def _truth(value: Any) -> Any:
    return np.asarray(value, float)


SEMANTICS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "fabs": np.fabs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "pow": np.power,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "lt": lambda a, b: _truth(a < b),
    "le": lambda a, b: _truth(a <= b),
    "eq": lambda a, b: _truth(a == b),
    "ne": lambda a, b: _truth(a != b),
    "and": lambda a, b: _truth((a != 0) & (b != 0)),
    "or": lambda a, b: _truth((a != 0) | (b != 0)),
    "not": lambda a: _truth(a == 0),
    "if_else_zero": lambda c, a: np.where(c != 0, a, np.zeros_like(a)),
    "select": lambda c, a, b: np.where(c != 0, a, b),
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
    "fnms": lambda a, b, c: -(a * b) - c,
    "guarded": lambda a, b: a + (b - b),
    "sincos": lambda a: (np.sin(a), np.cos(a)),
    "sin_of": lambda pair: pair[0],
    "cos_of": lambda pair: pair[1],
}

ARITY: dict[str, int] = {
    **dict.fromkeys(UNARY, 1),
    **dict.fromkeys(BINARY, 2),
    "guarded": 2,
    **dict.fromkeys(("select", "fma", "fms", "fnma", "fnms"), 3),
    **dict.fromkeys(("sincos", "sin_of", "cos_of"), 1),
}
