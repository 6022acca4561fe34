"""Delassus methods traced and compiled: the same numbers as in NumPy."""

from __future__ import annotations

import casadi
import numpy as np
import pytest

from helpers import assert_close, col, cond, motion
from linkwork.algorithms.tree.crba import crba
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.programs.from_casadi import read_program
from row_cases import ANY_ROWS, ONE_LINK, loop_cases, method, one_link_cases, traced

CASES = one_link_cases()
TRACED = ("chain all joints", "humanoid mixed", "stem 6", "floating tree 1")


@pytest.mark.parametrize("case", TRACED)
@pytest.mark.parametrize("name", ["dense", *ANY_ROWS, *ONE_LINK])
def test_trace_agrees(name, case):
    model = CASES[case]
    q = model.random_q(3)
    m = motion(model, q)
    f = traced(model, method(name))
    assert_close(f(q, np.zeros(model.nv)), method(name)(m), cond(crba(m)))


@pytest.mark.parametrize("name", ANY_ROWS)
def test_loops_trace_agrees(name):
    model = loop_cases()["mechanism 1"]
    q = model.random_q(3)
    m = motion(model, q)
    assert_close(traced(model, method(name))(q, np.zeros(model.nv)), method(name)(m), cond(crba(m)))


@pytest.mark.parametrize("name", [*ANY_ROWS, *ONE_LINK])
def test_kernel_agrees_on_a_batch(name):
    model = CASES["quadruped 4"]
    kernel = Kernel(read_program(traced(model, method(name))), threads=1)
    q = np.array([model.random_q(s) for s in range(9)])
    (out,) = kernel(q, np.zeros((9, model.nv)))
    for state, matrix in zip(q, out.reshape(9, model.rows, model.rows), strict=True):
        m = motion(model, state)
        assert_close(matrix, method(name)(m), cond(crba(m)))


def test_fast_operator_is_traced_and_compiled():
    model = CASES["quadruped 4"]
    b = np.random.default_rng(0).normal(size=model.rows)
    q = model.random_q(0)
    f = traced(model, lambda m: (method("pv_fast")(m).solve(casadi.SX(b)), method("pv_fast")(m).multiply(casadi.SX(b))))
    operator, m = method("pv_fast")(motion(model, q)), motion(model, q)
    kappa = cond(crba(m)) * max(cond(limb.L) for limb in operator.limbs)
    solved, multiplied = Kernel(read_program(f), threads=1)(q, np.zeros(model.nv))
    assert_close(np.ravel(solved), operator.solve(col(b))[:, 0], kappa * cond(method("pv")(m)))
    assert_close(np.ravel(multiplied), operator.multiply(col(b))[:, 0], kappa)
