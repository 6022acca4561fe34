"""Outputs of batches are stored by puts: every element in its row, nothing beside it, whatever the width."""

from __future__ import annotations

import numpy as np
import pytest

from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.output_stores import with_puts
from linkwork.kernels.programs.program import Port, Program

SIZES = (0, 1, 2, 3, 5, 9, 24)


def program() -> Program:
    """Outputs of many sizes: inputs as they are, constants, zeros, products, and values that several share."""
    nodes: list[tuple] = [("input", 0, k) for k in range(4)]
    nodes += [("const", 0.0), ("const", 2.5), ("mul", 0, 1), ("sin", 2), ("add", 6, 7)]
    results = [[(3 * k + size) % len(nodes) for k in range(size)] for size in SIZES]
    outputs = [Port(f"y{size}", (size,)) for size in SIZES]
    return Program([Port("x", (4,))], outputs, nodes, results, "many").check()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_every_row_is_written_and_nothing_beside_it(lanes: int, dtype: str) -> None:
    kernel = Kernel(program(), lanes=lanes, dtype=dtype, threads=2)
    for count in (2, 7, 8, 16, 19, 2 * lanes + 1):
        x = np.random.default_rng(count).normal(size=(count, 4)).astype(dtype)
        rooms = [np.full((count, size + 3), 7.0, dtype) for size in SIZES]
        kernel(x, out=[room[:, :size] for room, size in zip(rooms, SIZES, strict=True)])
        wanted = [kernel.program.interpret(row.astype(float)) for row in x]
        for k, (room, size) in enumerate(zip(rooms, SIZES, strict=True)):
            assert np.all(room[:, size:] == 7.0)
            np.testing.assert_allclose(
                room[:, :size], [w[k] for w in wanted], rtol=1e-12 if dtype == "float64" else 1e-5
            )


def test_equal_blocks_are_transposed_once_and_values_checked_once() -> None:
    nodes = [("input", 0, k) for k in range(4)]
    twice = Program([Port("x", (4,))], [Port("a", (8,)), Port("b", (4,))], nodes, [[0, 1, 2, 3] * 2, [0, 1, 2, 3]])
    slots = iter(range(100))
    made, outlet = with_puts(fuse(twice.check()), 8, 8, lambda count: next(slots))
    (put,) = outlet.puts.values()
    assert put.targets == ((0, 0), (0, 4), (1, 0))
    assert put.checked == (0, 1, 2, 3)
    assert made.nodes[-1] == ("put", 0, 1, 2, 3)


def long_program(results: int) -> Program:
    """So many results, each after the last by ten operations, in rows that do not end with a line; some are zero."""
    nodes: list[tuple] = [("input", 0, k) for k in range(4)]
    nodes.append(("const", 0.0))
    for k in range(10 * results):
        nodes.append(("mul" if k % 3 else "add", k % 4, len(nodes) - 1 - k % 2))
    made = [4 if 16 <= k < 40 else 5 + 10 * k + 9 for k in range(results)]
    cut = results - 7
    outputs = [Port("y", (cut,)), Port("z", (7,))]
    return Program([Port("x", (4,))], outputs, nodes, [made[:cut], made[cut:]], "long").check()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_large_outputs_leave_in_whole_lines(dtype: str) -> None:
    """And zeros that fill no line of their own with them; small ones in halves."""
    size, lanes, slots = np.dtype(dtype).itemsize, 64 // np.dtype(dtype).itemsize, iter(range(10_000))
    small, large = (with_puts(fuse(long_program(n)), lanes, size, lambda count: next(slots))[1] for n in (100, 700))
    assert (small.widths[0] * size, large.widths[0] * size) == (32, 64)
    assert len(large.blanks[0]) == (3 if size == 8 else 1)
    kernel, x = (
        Kernel(long_program(700), dtype=dtype, threads=1),
        np.random.default_rng(0).uniform(0.5, 1, size=(19, 4)),
    )
    room = np.full((19, 700 - 7 + 3), 7.0, dtype)
    result = kernel(x.astype(dtype), out=[room[:, :-3], np.empty((19, 7), dtype)])
    assert np.all(room[:, -3:] == 7.0)
    for mine, theirs in zip(result, kernel.program.interpret(x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11 if size == 8 else 1e-3)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", range(4))
def test_what_is_no_number_is_seen_in_every_lane(place: int, odd: float) -> None:
    kernel = Kernel(program(), threads=1)
    for count in (8, 11):
        for row in range(count):
            x = np.ones((count, 4))
            assert kernel.judged([x])[1]
            x[row, place] = odd
            assert not kernel.judged([x])[1]


@pytest.mark.parametrize("count", [8, 9])
@pytest.mark.parametrize("first", range(6))
def test_every_result_is_looked_at(first: int, count: int) -> None:
    """Whichever of them overflows, beside zeros and numbers of the other sign."""
    nodes = [("input", 0, k) for k in range(2)] + [("mul", 0, 0), ("sub", 1, 0), ("sub", 0, 0)]
    results = [[2 if k == first else 3 + k % 2 for k in range(6)]]
    kernel = Kernel(Program([Port("x", (2,))], [Port("y", (6,))], nodes, results, f"place {first}").check(), threads=1)
    x = np.tile([2.0, -3.0], (count, 1))
    assert kernel.judged([x])[1]
    x[-1] = 1e200, 1.0
    assert not kernel.judged([x])[1]
