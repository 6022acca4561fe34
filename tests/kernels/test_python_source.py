"""Programs as Python functions: every operation, and where Python has no number for a result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels_examples import everything, everything_inputs, random_function

from linkwork.kernels import Port, Program
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.python_source import python_function

ULP = 2 * float(np.finfo(float).eps)


def same(program: Program, *arrays: np.ndarray) -> None:
    """Results as interpreted, but for the last digit of functions that Python and NumPy compute differently."""
    for found, true in zip(python_function(program)(*arrays), program.interpret(*arrays), strict=True):
        assert found.shape == true.shape
        np.testing.assert_allclose(found, true, rtol=8 * ULP, atol=ULP)


@pytest.mark.parametrize("prepare", [lambda p: p, fuse], ids=["traced", "fused"])
def test_every_operation(prepare) -> None:
    program = prepare(read_program(everything()))
    for row in range(12):
        same(program, *(x[row] for x in everything_inputs(12, seed=4)))


@given(st.integers(0, 10_000))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    same(read_program(random_function(rng, 120)), rng.normal(size=4))


@pytest.mark.parametrize("kind", ["div", "log", "sqrt", "exp"])
def test_results_that_are_no_numbers_are_those_of_numpy(kind: str) -> None:
    node = ("div", 1, 0) if kind == "div" else (kind, 0)
    ports = [Port("x", (1,))], [Port("y", (1,)), Port("z", (1, 2))]
    program = Program(*ports, [("input", 0, 0), ("const", 1.0), node, ("const", 0.0)], [[2], [3, 1]])
    for x in (0.0, -1.0, 1e5, float("nan")):
        y, z = python_function(program)(np.array([x]))
        np.testing.assert_array_equal(y, program.interpret(np.array([x]))[0])
        np.testing.assert_array_equal(z, [[0.0, 1.0]])


def test_constants_that_are_not_finite() -> None:
    nodes = [("input", 0, 0), ("const", float("nan")), ("const", float("inf")), ("lt", 0, 2), ("select", 3, 0, 1)]
    same(Program([Port("x", (1,))], [Port("y", (3,))], nodes, [[4, 1, 2]]), np.array([0.3]))


def test_long_sums_are_not_nested_too_deep_for_the_parser() -> None:
    nodes: list[tuple] = [("input", 0, 0)]
    for k in range(5000):
        nodes.append(("sin", k) if k % 7 == 0 else ("add", k, 0))
    same(Program([Port("x", (1,))], [Port("y", (1,))], nodes, [[5000]]), np.array([0.1]))
