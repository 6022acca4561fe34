"""The options of all factories, by their kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwork.checks import Kind, choice, optional, whole

BACKENDS = ("kernel", "numpy", "casadi")
PRECISIONS = ("float64", "float32")


def _precision(value: Any) -> Any:
    """A name, NumPy's type or dtype."""
    named = value.name if isinstance(value, np.dtype) else getattr(value, "__name__", value)
    return choice("dtype", PRECISIONS).take(named)


PRECISION = Kind(f"one of {', '.join(PRECISIONS)}", _precision)
OPTIONS = {
    "backend": choice("backend", BACKENDS),
    "dtype": PRECISION,
    "threads": optional(whole(1, 4096, "a number of threads, at least 1")),
}
