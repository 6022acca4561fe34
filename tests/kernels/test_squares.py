"""Symmetric products for one state: every element right, exactly symmetric, and NaN seen wherever it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends import Array, Ops
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.codegen.target import Target, runnable
from linkwork.kernels.object_code.image import Options, build
from linkwork.kernels.programs.program import Program
from linkwork.kernels.programs.symmetric_products import blocks
from linkwork.kernels.programs.trace import Symbol, trace
from linkwork.robots.mechanisms import chain, humanoid, quadruped

ROUNDING = {"float64": 1e-13, "float32": 1e-5}


def product(pattern: Sequence[Sequence[int]], guard: bool = False) -> Program:
    """x -> (B D B^T, x), where B has entries in these columns of its rows: numbers of x, some negative, and ones."""

    def body(xp: Ops, symbol: Symbol) -> dict[str, Array]:
        size, n = sum(map(len, pattern)), len(pattern)
        x, count = symbol("x", size), iter(range(size))
        B = [{k: 1.0 if k == i else (-1) ** (i + k) * x[next(count), 0] for k in row} for i, row in enumerate(pattern)]
        A = [{k: b * x[k % size, 0] for k, b in row.items()} for row in B]
        C = [
            [sum((a * B[min(i, j)][k] for k, a in A[max(i, j)].items() if k in B[min(i, j)]), 0.0) for j in range(n)]
            for i in range(n)
        ]
        found = xp.square(xp.matrix(C), A, B)
        corner = np.zeros((n, n))
        corner[0, 0] = 1.0
        return {"C": found + xp.constant(corner) * xp.sin(x[0, 0]) if guard else found, "copied": x}

    return trace("product", body)


def sparse(n: int, seed: int) -> list[list[int]]:
    """The pattern of a tree: every row has the columns of an earlier one, and its own."""
    rng, rows = np.random.default_rng(seed), list[list[int]]()
    for i in range(n):
        parent = int(rng.integers(-1, i)) if i else -1
        rows.append([*(rows[parent] if parent >= 0 else []), i])
    return rows


def alone(program: Program) -> Program:
    """The same in straight-line code."""
    return Program(program.inputs, program.outputs, program.nodes, program.results, program.name)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("n", [8, 9, 10, 11, 12, 15, 17, 30])
def test_every_element_is_right_and_nothing_beside_it_is_written(n: int, guard: bool, dtype: str) -> None:
    for pattern in (sparse(n, n), [list(range(i + 1)) for i in range(n)]):
        program = product(pattern, guard)
        assert guard is False or program.squared is None or program.squared.rest == (0,)
        x = np.random.default_rng(n).normal(size=program.inputs[0].size).astype(dtype)
        room = np.full(n * n + 16, 7.0, dtype)
        C, copied = Kernel(program, dtype=dtype)(x, out=[room[8:-8].reshape(n, n), np.empty_like(x)])
        wanted = program.interpret(x)[0]
        np.testing.assert_allclose(C, wanted, rtol=0, atol=ROUNDING[dtype] * np.abs(wanted).max())
        np.testing.assert_array_equal(C, C.T)
        np.testing.assert_array_equal(copied, x)
        assert np.all(room[:8] == 7.0)
        assert np.all(room[-8:] == 7.0)


def test_nan_and_infinity_are_seen_in_every_element() -> None:
    program = product([[0, *([i] if i else [])] for i in range(40)], guard=True)
    assert program.squared is not None
    kernel = Kernel(program)
    x = np.ones(program.inputs[0].size)
    assert kernel.judged([x])[1]
    for place in range(x.size):
        for bad in (np.nan, np.inf):
            y = x.copy()
            y[place] = bad
            assert not kernel.judged([y])[1]


@pytest.mark.parametrize("name", sorted(runnable(Target.host())))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_older_processors(name: str, dtype: str) -> None:
    program = product(sparse(21, 3), guard=True)
    assert program.squared is not None
    x = np.random.default_rng(0).normal(size=program.inputs[0].size).astype(dtype)
    C = Kernel(program, dtype=dtype, target=runnable(Target.host())[name])(x).C
    wanted = program.interpret(x)[0]
    np.testing.assert_allclose(C, wanted, rtol=0, atol=ROUNDING[dtype] * np.abs(wanted).max())


def test_mass_matrices_are_inverted_this_way_with_less_code_and_the_same_operations() -> None:
    for model in (humanoid(), quadruped()):
        program = lw.inverse_mass_matrix(model).program
        assert isinstance(program, Program)
        assert program.squared is not None
        assert program.operations == alone(program).operations
    options = Options("double", 1, Target.host())
    sizes = [sum(map(len, build(p, options).objects)) for p in (program, alone(program))]
    assert sizes[0] < sizes[1]


def test_one_among_other_terms_and_beside_a_batch() -> None:
    model = quadruped()
    f = lw.terms(model, ["M", "Minv", "g"])
    assert f.program.squared is not None
    q, _ = lw.random_state(model, 1, batch=3)
    whole = f(q)
    for k in range(3):
        one = f(q[k])
        for a, b in zip(one, (x[k] for x in whole), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(b).max())
        np.testing.assert_allclose(one.M @ one.Minv, np.eye(model.nv), atol=1e-9)


def test_small_matrices_and_other_outputs_are_straight_line_code() -> None:
    assert lw.inverse_mass_matrix(chain(4)).program.squared is None
    assert lw.mass_matrix(quadruped()).program.squared is None


def test_blocks_are_full_and_cover_all_rows() -> None:
    for n in range(4, 30):
        for w in (2, 4):
            found = [set(range(first, first + w)) for first in blocks(n, w)]
            assert set().union(*found) == set(range(n))
