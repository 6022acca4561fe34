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


@pytest.mark.parametrize("place", range(4))
def test_nan_is_seen_in_every_lane(place: int) -> None:
    kernel = Kernel(program(), threads=1)
    for count in (8, 11):
        for row in range(count):
            x = np.ones((count, 4))
            assert kernel.judged([x])[1]
            x[row, place] = np.nan
            assert not kernel.judged([x])[1]
