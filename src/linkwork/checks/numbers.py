"""Numbers: real, finite, and of a size with which products of a few of them stay so."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwork.checks.declared import Kind, Refused

LARGEST, SMALLEST = 1e30, 1e-30
"""Bounds of numbers that describe a mechanism, in SI units: the square of a square of them is still a number."""


def _real(value: Any) -> float:
    """A real number of any type but text and truth values; also in an array without axes."""
    if isinstance(value, np.ndarray) and value.shape == () and not np.ma.is_masked(value):
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise Refused
    try:
        return float(value)
    except OverflowError:
        raise Refused("too large") from None
    except Exception:  # raised by a foreign type's own conversion
        raise Refused from None


def number(low: float = -LARGEST, high: float = LARGEST, what: str = "a finite number") -> Kind:
    """A real number from `low` to `high`."""

    def take(value: Any) -> float:
        x = _real(value)
        if not low <= x <= high:  # NaN is not, either
            odd = np.isfinite(x) and x != 0 and not SMALLEST <= abs(x) <= LARGEST
            raise Refused(f"from {SMALLEST:g} to {LARGEST:g} in size" if odd else "")
        return x

    return Kind(what, take)


NUMBER = number()
POSITIVE = number(SMALLEST, what="a finite number above 0")
TIME = number(SMALLEST, what="a time above 0 s")
NOT_NEGATIVE = number(0.0, what="a finite number of at least 0")


def whole(least: int = 0, most: int = 2**62, what: str = "") -> Kind:
    """A whole number from `least` to `most`."""

    def take(value: Any) -> int:
        if isinstance(value, np.ndarray) and value.shape == () and not np.ma.is_masked(value):
            value = value[()]
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise Refused
        if not least <= value <= most:
            raise Refused(f"at most {most}" if value > most else "")
        return int(value)

    return Kind(what or f"a whole number of at least {least}", take)


def _seed(value: Any) -> Any:
    if isinstance(value, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence):
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise Refused
    return int(value)


SEED = Kind("a whole number of at least 0, or a numpy.random.Generator", _seed)
