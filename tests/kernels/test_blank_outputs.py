"""Outputs that are zero in every state: written into arrays of the user's, left alone in buffers of a kernel's own."""

from __future__ import annotations

import numpy as np
import pytest

from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.codegen.driver import left_out, runs_of
from linkwork.kernels.programs.output_stores import blocks_of
from linkwork.kernels.programs.program import Port, Program

PATTERNS = {
    "few": [1, 0, 2],
    "none": [1] * 9,
    "all": [0] * 19,
    "blocks": [0] * 8 + [1] * 5 + [0] * 30 + [2] * 4 + [0] * 17,
    "end": [1] + [0] * 20 + [3],
    "short gaps": [1, 0, 0, 2, 0, 0, 0, 0, 1, 0] * 7,
}


def program(pattern: list[int]) -> Program:
    """Element k is zero, or x times the number in the pattern; and a second output, x itself."""
    nodes: list[tuple] = [("input", 0, 0), ("const", 0.0)]
    elements = []
    for k in pattern:
        if k:
            nodes += [("const", float(k)), ("mul", 0, len(nodes))]
        elements.append(len(nodes) - 1 if k else 1)
    outputs = [Port("y", (len(pattern),)), Port("same", (1,))]
    return Program([Port("x", (1,))], outputs, nodes, [elements, [0]], "blank").check()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_zeros_are_written_over_what_was_there(pattern: str, dtype: str) -> None:
    wanted = np.array(PATTERNS[pattern], float)
    kernel = Kernel(program(PATTERNS[pattern]), dtype=dtype, threads=1)
    for count in (None, 1, 16, 21):  # one state, whole tiles, and a part of one
        x = np.arange(1.0, 2.0)[:1] if count is None else np.arange(1.0, count + 1)[:, None]
        x = x.astype(dtype)
        shape = (len(wanted),) if count is None else (count, len(wanted))
        out = np.full(shape, 7.0, dtype), np.full(x.shape, 7.0, dtype)
        kernel(x, out=out)
        np.testing.assert_array_equal(out[0], x * wanted.astype(dtype))
        np.testing.assert_array_equal(kernel(x).y, out[0])
        bound = kernel.bind(count)
        bound.inputs.x[...] = x
        np.testing.assert_array_equal(bound().y, out[0])
        bound.inputs.x[...] = 2 * x
        np.testing.assert_array_equal(bound().y, 2 * out[0])


def test_bound_buffers_keep_their_zeros_and_nan_is_seen() -> None:
    pattern = PATTERNS["blocks"]
    kernel = Kernel(program(pattern), threads=1)
    for count in (None, 16):
        bound = kernel.bind(count)
        bound.outputs.y[..., 0] = 5.0  # what nobody should do shows that nothing is written there
        bound.inputs.x[...] = 1.0
        assert np.all(bound().y[..., 0] == 5.0)
    for x in (np.array([np.nan]), np.full((16, 1), np.nan), np.full((3, 1), np.nan)):
        assert not kernel.judged([x])[1]
        assert kernel.judged([np.ones_like(x)])[1]


@pytest.mark.parametrize("most", [1, 2, 4, 8])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_blocks_cover_all_columns(pattern: str, most: int) -> None:
    zeros = [k == 0 for k in PATTERNS[pattern]]
    size = len(zeros)
    width, full, blank = blocks_of(zeros, most)
    assert width == (min(most, 2) if size == 3 else most)
    assert {c for b in (*full, *blank) for c in range(b, b + width)} == set(range(size))
    assert {c for c in range(size) if not zeros[c]} <= {c for b in full for c in range(b, b + width)}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_runs_cover_all_columns(pattern: str) -> None:
    zeros = [k == 0 for k in PATTERNS[pattern]]
    copied, zeroed = runs_of(len(zeros), left_out(zeros))
    columns = sorted(c for first, length in (*copied, *zeroed) for c in range(first, first + length))
    assert columns == list(range(len(zeros)))
    assert all(zeros[c] for first, length in zeroed for c in range(first, first + length))
