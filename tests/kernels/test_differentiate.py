"""Derivatives of programs: every operation against 40 digits, programs against CasADi, forward and reverse."""

from __future__ import annotations

import casadi as ca
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels_examples import chain, everything, everything_inputs, random_function, states

from linkwork.kernels import Port, Program
from linkwork.kernels.programs.differentiate import SLOPES, jacobian, jvp, tangents, vjp
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.operations import ARITY, SEMANTICS
from linkwork.kernels.programs.value_numbering import ZERO, Values

EPS = float(np.finfo(float).eps)

SMOOTH = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "sqrt": mpmath.sqrt,
    "fabs": mpmath.fabs,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "exp": mpmath.exp,
    "log": mpmath.log,
    "expm1": mpmath.expm1,
    "log1p": mpmath.log1p,
    "pow": mpmath.power,
    "fmin": min,
    "fmax": max,
    "atan2": mpmath.atan2,
    "hypot": mpmath.hypot,
    "copysign": lambda a, b: mpmath.fabs(a) * mpmath.sign(b),
    "fmod": lambda a, b: a - b * int(a / b),
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
    "fnms": lambda a, b, c: -(a * b) - c,
    "select": lambda a, b, c: b if a else c,
    "if_else_zero": lambda a, b: b if a else 0,
    "guarded": lambda a, b: a,
}
STEPS = {"sign", "floor", "ceil", "lt", "le", "eq", "ne", "and", "or", "not"}
POINTS = [(0.37, 0.61, -0.45), (0.83, 0.29, 0.71)]


def one(kind: str) -> Program:
    n = ARITY[kind]
    nodes = [*(("input", 0, k) for k in range(n)), (kind, *range(n))]
    return Program([Port("x", (n,))], [Port("y", (1,))], nodes, [[n]])


def test_every_operation_has_slopes():
    assert SLOPES.keys() == SEMANTICS.keys()
    assert SMOOTH.keys() | STEPS | {"sincos", "sin_of", "cos_of"} == SEMANTICS.keys()


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("point", POINTS)
def test_operations_to_40_digits(kind, point):
    x = point[: ARITY[kind]]
    (found,) = jacobian(one(kind), "y", "x").interpret(np.array(x))
    with mpmath.workdps(40):
        for k in range(len(x)):
            order = tuple(int(j == k) for j in range(len(x)))
            exact = float(mpmath.diff(SMOOTH[kind], tuple(map(mpmath.mpf, x)), order))
            assert abs(found[0, k] - exact) <= 8 * EPS * max(1.0, abs(exact)), (kind, k)


@pytest.mark.parametrize("kind", sorted(STEPS))
def test_steps_have_none(kind):
    (found,) = jacobian(one(kind), "y", "x").interpret(np.array(POINTS[0][: ARITY[kind]]))
    assert not found.any()


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("make", [everything, lambda: chain(3)], ids=["everything", "chain"])
def test_programs_against_casadi(make, fused):
    function = make()
    program = read_program(function)
    program = fuse(program) if fused else program
    batch = everything_inputs(8) if function.name() == "everything" else states(3, 8)
    batch[0] = np.abs(batch[0])  # roots of negative numbers are none
    symbols = [ca.SX.sym(f"s{k}", *function.size_in(k)) for k in range(function.n_in())]
    results = function.call(symbols)
    judge = ca.Function("J", symbols, [ca.densify(ca.jacobian(results[0], symbols[0]))])
    mine = jacobian(program, program.outputs[0].name, program.inputs[0].name)
    for state in [tuple(x[b] for x in batch) for b in range(2, 8)]:  # without the kinks of the first two
        expected = np.array(judge(*state))
        assert np.abs(mine.interpret(*state)[0] - expected).max() <= 1e3 * EPS * (1 + np.abs(expected).max())


@given(st.integers(0, 10**6), st.integers(5, 60))
def test_forward_and_reverse_agree_with_casadi(seed, size):
    rng = np.random.default_rng(seed)
    function = random_function(rng, size)
    program, x = read_program(function), rng.normal(size=4)
    symbol = ca.SX.sym("x", 4)
    J = np.array(ca.Function("J", [symbol], [ca.densify(ca.jacobian(function(symbol), symbol))])(x))
    dx, w = rng.normal(size=4), rng.normal(size=12)
    bound = 1e4 * EPS * (1 + np.abs(J).max()) * size
    assert np.abs(jacobian(program, "y", "x").interpret(x)[0] - J).max() <= bound
    assert np.abs(jvp(program, ["x"]).interpret(x, dx)[0] - J @ dx).max() <= 10 * bound
    assert np.abs(vjp(program, ["x"]).interpret(x, w)[0] - J.T @ w).max() <= 10 * bound


def test_products_of_several_inputs():
    function = chain(4)
    program, (q, v, tau) = read_program(function), states(4, None)
    dq, dtau, w = (np.random.default_rng(k).normal(size=4) for k in (1, 2, 3))
    Jq, Jt = (jacobian(program, "a", name).interpret(q, v, tau)[0] for name in ("q", "tau"))
    forward = jvp(program, ["q", "tau"]).interpret(q, v, tau, dq, dtau)[0]
    np.testing.assert_allclose(forward, Jq @ dq + Jt @ dtau, rtol=1e-12)
    back = vjp(program, ["q", "tau"])
    assert [port.name for port in back.outputs] == ["gq", "gtau"]
    gq, gtau = back.interpret(q, v, tau, w, np.zeros((3, 3)), np.zeros(3))
    np.testing.assert_allclose(gq, Jq.T @ w, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gtau, Jt.T @ w, rtol=1e-12, atol=1e-13)


def test_reverse_costs_a_few_times_the_function():
    program = read_program(chain(8))
    assert vjp(program, ["q", "v", "tau"]).operations <= 4 * program.operations


def test_tangents_are_sparse_and_stop_at_seeds():
    v = Values()
    x, y = (2 * v.number(("input", 0, k)) for k in range(2))
    inner = v.mul(x, x)
    outer = v.add(v.apply("sin", inner), y)
    known = v.constant(5.0)
    found = tangents(v, [outer >> 1], {inner >> 1: {3: known}, y >> 1: {7: v.constant(2.0)}})
    assert found[outer >> 1].keys() == {3, 7}
    assert x >> 1 not in found
    assert found[outer >> 1][3] == v.mul(v.apply("cos", inner), known)
    assert ZERO not in found[outer >> 1].values()
