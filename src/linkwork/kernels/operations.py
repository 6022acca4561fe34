"""The operations of a program: their names, what CasADi calls them, and what they mean in NumPy.

Truth values are numbers, 1.0 and 0.0, as in CasADi and C; anything that is not zero counts as true.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

FREE = frozenset({"const", "input", "sin_of", "cos_of", "guarded"})
"""Kinds that do not count: data, the two halves of a ``sincos``, and what only tells whether inputs are numbers."""

_UNARY = {
    "sq": "SQ", "twice": "TWICE", "inv": "INV", "assign": "ASSIGN", "neg": "NEG", "sqrt": "SQRT", "fabs": "FABS",
    "sign": "SIGN", "not": "NOT", "floor": "FLOOR", "ceil": "CEIL", "sin": "SIN", "cos": "COS", "tan": "TAN",
    "asin": "ASIN", "acos": "ACOS", "atan": "ATAN", "sinh": "SINH", "cosh": "COSH", "tanh": "TANH", "exp": "EXP",
    "log": "LOG", "expm1": "EXPM1", "log1p": "LOG1P",
}  # fmt: skip
_BINARY = {
    "add": "ADD", "sub": "SUB", "mul": "MUL", "div": "DIV", "pow": "POW", "fmin": "FMIN", "fmax": "FMAX",
    "lt": "LT", "le": "LE", "eq": "EQ", "ne": "NE", "and": "AND", "or": "OR", "if_else_zero": "IF_ELSE_ZERO",
    "atan2": "ATAN2", "copysign": "COPYSIGN", "hypot": "HYPOT", "fmod": "FMOD",
}  # fmt: skip


@cache
def casadi_operations() -> dict[int, str]:
    """Our names of CasADi's operations."""
    import casadi as ca

    return {
        **{getattr(ca, "OP_" + code): kind for kind, code in {**_UNARY, **_BINARY}.items()},
        ca.OP_CONST: "const",
        ca.OP_INPUT: "input",
        ca.OP_OUTPUT: "output",
        ca.OP_CONSTPOW: "pow",
        ca.OP_LIFT: "assign",
    }


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
    **{kind: 1 for kind in _UNARY if kind in SEMANTICS},
    **dict.fromkeys(_BINARY, 2),
    "guarded": 2,
    **dict.fromkeys(("select", "fma", "fms", "fnma", "fnms"), 3),
    **dict.fromkeys(("sincos", "sin_of", "cos_of"), 1),
}
