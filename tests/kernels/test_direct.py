"""The direct call for one state: it counts references right, and tells numbers from what is none."""

from __future__ import annotations

import sys

import casadi
import numpy as np

from linkwork.kernels.kernel import Kernel
from linkwork.kernels.program import Program


def kernel(dtype: str = "float64") -> Kernel:
    x = casadi.SX.sym("x", 3)
    f = casadi.Function("f", [x], [casadi.sqrt(x), x[0] * x], ["x"], ["root", "scaled"])
    return Kernel(Program.from_casadi(f), dtype=dtype)


def test_answers_are_returned_with_a_reference_each() -> None:
    direct, good, bad = kernel().finite(), np.ones(3), np.array([1.0, -1.0, 1.0])
    direct(good)
    before = [sys.getrefcount(x) for x in (None, True, False)]
    for _ in range(20_000):
        direct(good)
        direct(bad)
        direct(good, good)
    after = [sys.getrefcount(x) for x in (None, True, False)]
    assert all(abs(a - b) < 1000 for a, b in zip(before, after, strict=True))


def test_results_that_are_no_numbers_and_arrays_that_do_not_fit_give_none() -> None:
    direct = kernel().finite()
    np.testing.assert_array_equal(direct(np.array([4.0, 9.0, 16.0])).root, [2.0, 3.0, 4.0])
    assert direct(np.array([4.0, -9.0, 16.0])) is None
    assert direct(np.array([4.0, np.inf, 16.0])) is None
    assert direct(np.ones(4)) is None
    assert direct(np.ones(3, np.float32)) is None
    assert direct([1.0, 2.0, 3.0]) is None
    assert direct() is None


def test_float32() -> None:
    root = kernel("float32").finite()(np.array([4, 9, 16], np.float32)).root
    np.testing.assert_array_equal(root, np.array([2, 3, 4], np.float32))
