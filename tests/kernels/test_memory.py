"""Memory stays as it is, whatever a function is given: what it takes, and what it refuses."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import LinkworkError
from linkwork.robots.mechanisms import chain, four_bar

CALLS, LEFT = 300, 100
"""How often, and bytes that each may leave, free lists of Python included: a new method in each of them left 420."""

MODELS = {"straight": chain(3), "iterative": four_bar()}
GIVEN = {
    "arrays": lambda q, v: (q, v, v),
    "lists": lambda q, v: (q, list(v), list(v)),
    "all lists": lambda q, v: (list(q), list(v), list(v)),
    "strided": lambda q, v: (q, np.zeros(2 * len(v))[::2], v),
    "float32": lambda q, v: (q, v.astype("float32"), v),
    "integers": lambda q, v: (q, v.astype(int), v),
    "a batch": lambda q, v: (np.tile(q, (3, 1)), v, v),
    "an empty batch": lambda q, v: (np.tile(q, (0, 1)), v, v),
    "nan": lambda q, v: (q * np.nan, v, v),
    "a wrong shape": lambda q, v: (q, v, v[:-1]),
    "too few": lambda q, v: (q, v),
    "text": lambda q, v: (q, "x", v),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("form", MODELS)
def test_calls_leave_nothing_behind(form: str, given: str) -> None:
    model = MODELS[form]
    f, inputs = lw.forward_dynamics(model, threads=1), GIVEN[given](model.neutral(), np.zeros(model.nv))

    def call() -> None:
        try:
            f(*inputs)
        except LinkworkError:
            assert given in ("nan", "a wrong shape", "too few", "text")

    assert grown(call) < CALLS * LEFT


@pytest.mark.parametrize("number", [0.1, np.float64(0.1), 3, -1, 10**30, 10**400], ids=lambda x: repr(x)[:18])
def test_bare_numbers_leave_nothing_behind(number: float) -> None:
    fd, entry = lw.forward_dynamics(chain(1), threads=1), np.zeros(1)

    def call() -> None:
        try:
            fd(entry, entry, number)
        except LinkworkError:
            assert number >= 10**30

    assert grown(call) < CALLS * LEFT


def test_bound_kernels_leave_nothing_behind() -> None:
    kernel = lw.forward_dynamics(chain(3), threads=1).kernel
    assert grown(lambda: kernel.bind()()) < CALLS * LEFT


def grown(call) -> int:
    """Bytes that are there after many calls and were not before; the least of three times, because a leak goes on."""
    left = []
    gc.freeze()  # what the other tests left: looking through it takes longer than all the calls
    tracemalloc.start()
    try:
        for _ in range(3):
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(CALLS):
                call()
            gc.collect()
            left.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    return min(left)
