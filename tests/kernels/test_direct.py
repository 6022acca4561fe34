"""The direct call for one state: it counts references right, and tells numbers from what is none."""

from __future__ import annotations

import gc
import sys

import casadi
import numpy as np
import pytest

from linkwork.errors import InputError
from linkwork.kernels.calls import executable
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.kernels.programs.program import Port, Program


def kernel(dtype: str = "float64") -> Kernel:
    x = casadi.SX.sym("x", 3)
    f = casadi.Function("f", [x], [casadi.sqrt(x), x[0] * x], ["x"], ["root", "scaled"])
    return Kernel(read_program(f), dtype=dtype)


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


def test_results_are_new_arrays_that_nobody_else_holds() -> None:
    one, x = kernel(), np.array([4.0, 9.0, 16.0])
    one(x)
    gc.collect()  # others' arrays
    dtype = sys.getrefcount(np.dtype("float64"))
    counted = 2000 if dtype < 2**31 else 0  # NumPy's own types are immortal from 2.5 on: their count stays
    results = [one(x) for _ in range(1000)]
    assert {type(r) for r in results} == {type(results[0])}
    assert results[0]._fields == ("root", "scaled")
    assert len({a.ctypes.data for r in results for a in r}) == 2000
    made_by_python = type(results[0])(np.empty(3), np.empty(3))  # what Python counts itself differs by its version
    assert [sys.getrefcount(a) for a in results[0]] == [sys.getrefcount(a) for a in made_by_python]
    assert all(a.flags.owndata and a.flags.writeable for a in results[0])
    assert abs(sys.getrefcount(np.dtype("float64")) - dtype - counted) < 100
    assert gc.is_tracked(results[0])
    del results
    gc.collect()
    assert abs(sys.getrefcount(np.dtype("float64")) - dtype) < 100


def test_given_outputs_are_filled_or_refused() -> None:
    one, x = kernel(), np.array([4.0, 9.0, 16.0])
    outs = np.empty(3), np.empty(3)
    result = one(x, out=list(outs))
    assert result.root is outs[0]
    np.testing.assert_array_equal(outs[1], [16.0, 36.0, 64.0])
    locked = np.empty(3)
    locked.flags.writeable = False
    with pytest.raises(InputError, match="writable"):
        one(x, out=[np.empty(3), locked])


def test_bound_calls_keep_references_whether_short_or_long(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([4.0, 9.0, 16.0])
    for limit in (executable.LONG, -1):
        monkeypatch.setattr(executable, "LONG", limit)
        bound = kernel().bind()
        bound.inputs.x[...] = x
        before = sys.getrefcount(None)
        for _ in range(5000):
            bound()
        assert abs(sys.getrefcount(None) - before) < 1000
        np.testing.assert_array_equal(bound.outputs.root, [2.0, 3.0, 4.0])


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


def test_calls_outlive_their_kernel() -> None:
    """A built-in function keeps its code and the type of its results alive by itself."""
    nodes = [("input", 0, 0), ("add", 0, 0)]
    program = Program([Port("x", (1,))], [Port("y", (1,)), Port("none", (0, 3))], nodes, [[1], []])
    finite, one = Kernel(program).finite(), Kernel(program)._single_call(strict=False)
    gc.collect()
    junk = [bytes(4096) for _ in range(1000)]
    for result in (finite(np.ones(1)), one((np.ones(1),), None), one((np.ones(1),), [np.empty(1), np.empty((0, 3))])):
        assert result.y == 2.0
        assert result.none.shape == (0, 3)
    assert len(junk) == 1000


def test_bound_to_a_negative_number_of_states_is_refused() -> None:
    with pytest.raises(InputError, match="batch=-1"):
        kernel().bind(-1)
