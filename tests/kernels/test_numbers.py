"""The machine code itself finds whether results are numbers: all of them, in every form of a kernel."""

from __future__ import annotations

import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

from linkwork.errors import SingularError
from linkwork.functions.function import Function
from linkwork.functions.options import BACKENDS
from linkwork.kernels import Kernel
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.robots.mechanisms import chain

ODD = [np.nan, np.inf, -np.inf]
SIZES = {"few": 3, "many": 21, "matrix": (5, 7)}


def copying(lanes: int, dtype: str) -> Kernel:
    """Outputs of several sizes, all made of one input."""
    inputs = [ca.SX.sym(name, *np.atleast_1d(size)) for name, size in SIZES.items()]
    function = ca.Function("copy", inputs, [1 * x for x in inputs], list(SIZES), [n + "_out" for n in SIZES])
    return Kernel(read_program(function), lanes=lanes, dtype=dtype, threads=1)


@pytest.mark.parametrize(
    ("lanes", "dtype"), [(1, "float64"), (1, "float32"), (2, "float64"), (8, "float64"), (16, "float32")]
)
def test_every_output_of_every_state_counts(lanes: int, dtype: str) -> None:
    kernel, rng, batch = copying(lanes, dtype), np.random.default_rng(0), 2 * lanes + 1
    good = [rng.normal(size=(batch, *np.atleast_1d(n))).astype(dtype) * 1e30 for n in SIZES.values()]
    assert kernel.judged(good)[1]
    for port, x in enumerate(good):
        for place in range(x[0].size):
            row, value = int(rng.integers(batch)), ODD[place % 3]
            given = [y.copy() for y in good]
            given[port][row].reshape(-1)[place] = value
            results, fine = kernel.judged(given)
            assert not fine, (port, row, place)
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(results, given, strict=True))
            one = [y[row] for y in given]
            assert not kernel.judged(one)[1]
            assert kernel.finite()(*one) is None
    assert kernel.judged([x[0] for x in good])[1]
    assert kernel.finite()(*(x[0] for x in good)) is not None


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_second_output_that_is_not_a_number_is_an_error(backend: str) -> None:
    """Forces of redundant constraints were NaN beside finite accelerations, and nobody said so."""
    model = chain(2)
    f = Function("halves", model, {"v": 2}, lambda xp, x: {"a": 2 * x["v"], "lam": 1 / x["v"]}, backend=backend)
    good, bad = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    with np.errstate(divide="ignore"):
        for _ in range(2):
            np.testing.assert_array_equal(f(good).lam, [1.0, 0.5])
            with pytest.raises(SingularError, match="no solution:"):
                f(bad)
            with pytest.raises(SingularError, match="in 2 of 3 states"):
                f(np.array([bad, good, bad]))


BUSY = """
import time, numpy as np
import linkwork as lw
from linkwork.robots.mechanisms import chain
f = lw.mass_matrix(chain(12), threads=1)
q = np.zeros((2000, 12))
f(q)
time.sleep(0.2)
mine, all_ = time.thread_time(), time.process_time()
for _ in range(200):
    f(q)
mine, all_ = time.thread_time() - mine, time.process_time() - all_
assert all_ < 1.2 * mine + 0.02, (mine, all_)
"""


def test_a_call_uses_no_thread_that_was_not_asked_for() -> None:
    """As BLAS does for products of more than ten thousand numbers: 0.16 ms became 30 on a machine with other work."""
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1000:]
