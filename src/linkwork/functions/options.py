"""The options of all factories, by their kinds."""

from __future__ import annotations

from linkwork.checks import choice, optional, whole

BACKENDS = ("kernel", "numpy", "casadi")
PRECISIONS = ("float64", "float32")
OPTIONS = {
    "backend": choice("backend", BACKENDS),
    "dtype": choice("dtype", PRECISIONS),
    "threads": optional(whole(1, 4096, "a number of threads, at least 1")),
}
