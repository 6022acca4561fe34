"""The tracer: matrices of references obey the backends' contract, fold what is known, and leave small programs."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, random_model, random_state
from linkwork.backends import get
from linkwork.errors import InputError
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.kernels.programs.matrices import Tracer
from linkwork.kernels.programs.trace import trace
from linkwork.kernels.programs.value_numbering import ONE, ZERO, Values
from linkwork.robots.mechanisms import chain, four_bar, quadruped, standing


def program(body, **sizes):
    return trace("f", lambda xp, symbol: body(xp, *(symbol(n, k) for n, k in sizes.items())))


def test_every_operation_of_the_contract_means_what_numpy_means():
    rng = np.random.default_rng(1)
    x, y, c = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(3, 4))
    spd = c @ c.T + np.eye(3)

    def body(xp, x, y):
        K = xp.constant(c)
        A = K * x.T
        S = xp.symmetric(A @ A.T + xp.constant(spd))
        low = xp.cholesky(S)
        return {
            "arithmetic": (2 * x - y) / 3 + 1 / (x * x + 1) - y * 0.5 + (-x) ** 2,
            "product": A @ y,
            "constants": c @ x,
            "slices": xp.hstack([A[0:2, 1:3], A[[2, 0], :][:, -1:]]),
            "cross": xp.cross(x[:3, :], xp.hstack([y[:3, :], y[1:, :]])),
            "functions": xp.vstack([xp.sin(x), xp.cos(y), xp.sqrt(x * x), xp.atan2(y, x)]),
            "choice": xp.where(x < y, x, 2.0) + xp.where(x[0, 0] >= y[0, 0], y, x),
            "factor": xp.factor_spd(S).solve(A),
            "triangles": xp.solve_upper(low.T, xp.solve_lower(low, A)),
            "spread": A + y.T - x[:3, :],
            "matrix": xp.matrix([[x[0, 0], 1.0], [y[1, 0], x[3, 0]]]),
        }

    expected = body(get("numpy"), x[:, None], y[:, None])
    traced = program(body, x=4, y=4)
    for port, got in zip(traced.outputs, traced.interpret(x, y), strict=True):
        assert_close(got, np.reshape(expected[port.name], port.shape), 100.0)


def test_what_is_known_costs_nothing():
    def body(xp, x):
        a, b = x[0, 0], x[1, 0]
        s, c = xp.sin(a), xp.cos(a)
        return {
            "y": xp.vstack(
                [
                    (a - b) + b - a,
                    a * (1 / a) - 1,
                    s * s + c * c - 1,
                    b * (a / b) - a,
                    (a * b) - (b * a),
                    (a / b) * b - a,
                    a * 0.0,
                    xp.where(xp.constant([[1.0]]) < 2.0, a, b) - a,
                    (0 - (-a)) - a,
                    b / b - 1,
                ]
            )
        }

    assert program(body, x=2).operations == 0


def test_equal_values_are_computed_once():
    assert program(lambda xp, x: {"y": x * x + x * x, "z": -(x * x)}, x=1).counts() == {"add": 1, "mul": 1, "neg": 1}
    assert program(lambda xp, x: {"y": x[0, 0] - x[1, 0], "z": x[1, 0] - x[0, 0]}, x=2).counts() == {"neg": 1, "sub": 1}


def test_one_division_for_each_divisor():
    counts = program(lambda xp, x: {"y": xp.vstack([x[k, 0] / x[0, 0] for k in range(1, 5)])}, x=5).counts()
    assert counts == {"div": 1, "mul": 4}


def test_zero_has_one_reference():
    values = Values()
    x = 2 * values.number(("input", 0, 0))
    assert values.neg(ZERO) == values.constant(-0.0) == values.mul(x, ZERO) == values.sub(x, x) == ZERO
    assert values.mul(ONE, x) == x
    assert values.mul(values.neg(ONE), x) == values.neg(x)


@pytest.mark.parametrize("seed", range(4))
def test_no_more_operations_than_by_casadi_and_the_same_results(seed):
    """CasADi folds and cancels on its own; reading its graph gives the program that the tracer must match."""
    model = random_model(seed, 7)
    f = lw.forward_dynamics(model, method="aba")
    other = read_program(f.casadi())
    checks = 12 * f.program.counts().get("select", 0)  # of quaternions, which CasADi's form leaves out
    assert f.program.operations - checks <= 1.002 * other.operations
    q, v, tau = random_state(model, seed)
    for x, y in zip(f.program.interpret(q, v, tau), other.interpret(q, v, tau), strict=True):
        assert_close(x, y, 1e4, scale=float(np.abs(y).max(initial=1.0)))


def test_operations_of_a_chain_grow_linearly():
    sizes = [lw.forward_dynamics(chain(n), method="aba").operations for n in (10, 20, 30)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]


def test_casadi_functions_are_inlined():
    a, b = ca.SX.sym("a", 2), ca.SX.sym("b")
    function = ca.Function("g", [a, b], [ca.sin(a) * b, ca.horzcat(a, a + b)])
    inlined = program(lambda xp, x, y: dict(zip(("u", "w"), xp.call(function, x, y), strict=True)), x=2, y=1)
    for got, expected in zip(inlined.interpret([0.3, 0.4], [2.0]), function([0.3, 0.4], 2.0), strict=True):
        assert_close(got, np.array(expected).reshape(got.shape))


def test_mistakes_are_errors_and_not_guesses():
    xp = Tracer()
    x = xp.symbol("x", 3)
    with pytest.raises(TypeError, match=r"xp\.where"):
        bool(x[0, 0] < 1)
    with pytest.raises(ValueError, match="3 x 1 matrix times a 3 x 1"):
        x @ x
    with pytest.raises(ValueError, match="does not broadcast"):
        x + xp.zeros(2)
    with pytest.raises(ValueError, match="do not stack"):
        xp.vstack([x, xp.zeros(2, 2)])
    with pytest.raises(IndexError):
        x[3, 0]
    with pytest.raises(IndexError):
        x[[0, 5], 0]


def test_kernels_still_know_their_casadi_form():
    f = lw.forward_dynamics(four_bar(), method="ltl")
    assert f.kernel.casadi().name_in() == ["q", "v", "tau"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_inputs_that_no_output_depends_on_are_looked_at_and_not_counted(bad):
    def body(xp, symbol):
        x, y = symbol("x", 3), symbol("y", 2)
        return {"sum": x[1:3, :] + 1, "square": y[0, 0] * y[0, 0]}

    guarded, plain = trace("guarded", body, guard=True), trace("plain", body)
    assert guarded.operations == plain.operations
    kernel = Kernel(guarded)
    for evaluate in (guarded.interpret, kernel):
        x, y = np.array([[1.0, 2, 3]] * 9), np.array([[1.0, 2]] * 9)
        x[2, 0], y[5, 1] = bad, bad
        lost = np.isnan(np.asarray(evaluate(x, y)[0])[:, 0])
        assert lost.nonzero()[0].tolist() == [2, 5]
        assert np.isfinite(np.asarray(evaluate(x, y)[1])).all()
    assert np.isnan(kernel(x[2], y[0])[0][0])


@pytest.mark.parametrize("method", ["aba", "constrained_aba", "prox_bbo", "pv"])
@pytest.mark.parametrize("entry", [0, 1, 2])
def test_a_free_base_that_is_nowhere_is_refused(method, entry):
    model = quadruped()
    if method != "aba":
        model = model.with_constraints(lw.point("front_left_foot"), lw.point("rear_right_foot"))
    fd = lw.forward_dynamics(model, method=method)
    q, v = standing(model), np.zeros(model.nv)
    fd(q, v, v)
    for bad in (np.nan, np.inf):
        lost = q.copy()
        lost[entry] = bad
        for state in ((lost, v, v), (np.array([q, lost]), v, v)):
            with pytest.raises(InputError, match="'q' has entries that are NaN or infinite"):
                fd(*state)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_impulses_to_start_from_are_numbers(bad):
    """Newton's method only compares normal ones: NaN among them was taken."""
    model = quadruped()
    feet = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
    step, q, v = lw.step(model, [lw.Contact(f) for f in feet]), standing(model), np.zeros(model.nv)
    good = step(q, v, v, 1e-3).impulses
    for k in range(len(good)):
        start = good.copy()
        start[k] = bad
        with pytest.raises(InputError, match="'impulses' has entries that are NaN or infinite"):
            step(q, v, v, 1e-3, impulses=start)


def test_a_joint_that_the_mass_does_not_depend_on_is_still_a_number():
    model = chain(2)
    with pytest.raises(InputError, match="NaN or infinite"):
        lw.mass_matrix(model)(np.array([np.nan, 0.1]))
    with pytest.raises(InputError, match="NaN or infinite"):
        lw.delassus(model.with_constraints(lw.point("linktip")), method="ltl")(np.array([[np.nan, 0.1]] * 3))
