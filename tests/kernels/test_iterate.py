"""Iterative programs: proximal least squares in NumPy, in a native loop and in C."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from kernels_examples import read_iteration

from linkwork.errors import InputError, KernelError
from linkwork.kernels import Kernel, Port, Program
from linkwork.kernels.programs.hoist import hoist
from linkwork.kernels.programs.iterate import Further, IterativeProgram
from linkwork.kernels.programs.trace import trace

ROWS, N = 6, 4


def proximal(finish: bool = False) -> IterativeProgram:
    """min |A x - b|: x <- (A^T A + mu)^-1 (A^T b + mu x); the inverse is made at the start and handed on."""
    A, b, mu = ca.SX.sym("A", ROWS, N), ca.SX.sym("b", ROWS), ca.SX.sym("mu")
    H = ca.inv_minor(A.T @ A + mu * ca.SX.eye(N))
    g = A.T @ b
    x0 = H @ g
    start = ca.Function(
        "proximal", [A, b, mu], [H, g, x0, ca.norm_2(x0)], ["A", "b", "mu"], ["H", "g", "x", "residual"]
    )
    Hs, gs, x = ca.SX.sym("H", N, N), ca.SX.sym("g", N), ca.SX.sym("x", N)
    new = Hs @ (gs + mu * x)
    step = [new, ca.norm_2(new - x)]
    iterate = ca.Function("step", [mu, Hs, gs, x], step, ["mu", "H", "g", "x"], ["x_next", "residual"])
    end = ca.Function("end", [A, b, x], [x, A @ x - b], ["A", "b", "x"], ["solution", "error"]) if finish else None
    return read_iteration(start, iterate, end)


def problem(batch: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(batch, ROWS, N))
    return [A, rng.normal(size=(batch, ROWS)), 10.0 ** rng.uniform(-3, 0, (batch, 1))]


@pytest.mark.parametrize("lanes", [1, 2, 8])
@pytest.mark.parametrize("batch", [1, 8, 21])
def test_the_native_loop_is_the_numpy_loop(lanes: int, batch: int) -> None:
    program = proximal().check()
    inputs = [*problem(batch), np.array([1e-9]), np.array([500.0])]
    got, expected = Kernel(program, lanes=lanes)(*inputs), program.interpret(*inputs)
    assert got._fields == ("x", "iterations", "residual")
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    for k in range(batch):
        best = np.linalg.lstsq(inputs[0][k], inputs[1][k], rcond=None)[0]
        np.testing.assert_allclose(got.x[k], best, atol=1e-6)
    assert (got.residual <= 1e-9).all()


def test_every_lane_counts_for_itself() -> None:
    kernel = Kernel(proximal(), lanes=8)
    A, b, mu = problem(16)
    together = kernel(A, b, mu, [1e-10], [300])
    assert len(np.unique(together.iterations)) > 3
    for k in range(16):
        alone = kernel(A[k], b[k], mu[k], [1e-10], [300])
        for x, y in zip(together, alone, strict=True):
            np.testing.assert_array_equal(x[k], y)


def test_limits_are_inputs_of_each_state() -> None:
    kernel = Kernel(proximal())
    A, b, mu = problem(12)
    limit = np.arange(12.0)[:, None]
    result = kernel(A, b, mu, [-1.0], limit)
    np.testing.assert_array_equal(result.iterations, limit)
    none = kernel(A, b, mu, [np.inf], [100])
    assert not none.iterations.any()


def test_a_residual_that_is_no_number_stops_its_lane_only() -> None:
    kernel = Kernel(proximal(), lanes=8)
    A, b, mu = problem(8)
    b[3, 0] = np.nan
    result = kernel(A, b, mu, [1e-9], [500])
    assert result.iterations[3] == 0
    assert np.isnan(result.residual[3])
    others = np.delete(np.arange(8), 3)
    assert (result.residual[others] <= 1e-9).all()


def test_a_finish_sees_inputs_and_state() -> None:
    program = proximal(finish=True)
    inputs = [*problem(9), np.array([1e-9]), np.array([400.0])]
    result = Kernel(program)(*inputs)
    assert result._fields == ("solution", "error", "iterations", "residual")
    np.testing.assert_allclose(
        result.error, np.einsum("bij,bj->bi", inputs[0], result.solution) - inputs[1], atol=1e-12
    )
    for a, b in zip(result, program.interpret(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_float32_and_bound_kernels_iterate() -> None:
    program = proximal()
    inputs = problem(10)
    narrow = Kernel(program, dtype="float32")(*inputs, [1e-4], [200])
    wide = Kernel(program)(*inputs, [1e-4], [200])
    np.testing.assert_allclose(narrow.x, wide.x, atol=2e-2)
    bound = Kernel(program).bind(10)
    for mine, given in zip(bound.inputs, [*inputs, [1e-4], [200]], strict=True):
        mine[...] = given
    np.testing.assert_array_equal(bound().x, wide.x)


def test_zero_states() -> None:
    result = Kernel(proximal())(*problem(0), [1e-9], [10])
    assert result.x.shape == (0, N)
    assert [x.shape for x in proximal().interpret(*problem(0), [1e-9], [10])] == [(0, N), (0, 1), (0, 1)]


def test_operations_are_counted_by_part() -> None:
    program = proximal()
    assert set(program.counts()) == {"start", "iterate", "finish"}
    assert program.operations == program.start.operations
    assert program.iterate.operations >= 2 * N * N


def plain(inputs: list[Port], outputs: list[Port], name: str = "f") -> Program:
    return Program(inputs, outputs, [("const", 1.0)], [[0] * port.size for port in outputs], name)


X, R = Port("x", (1,)), Port("residual", (1,))


@pytest.mark.parametrize(
    ("start", "iterate", "message"),
    [
        (plain([], [X]), plain([X], [X, R]), "no output 'residual'"),
        (plain([], [X, R]), plain([X], [X]), "no output 'residual'"),
        (plain([], [X, R]), plain([Port("z", (1,))], [X, R]), "'z' is unknown"),
        (plain([], [X, R]), plain([X], [Port("y", (1,)), R]), "'y' is unknown"),
        (plain([], [X, R]), plain([Port("x", (2,))], [X, R]), "shape"),
        (plain([X], [X, R]), plain([X], [X, R]), "same name"),
        (plain([Port("tolerance", (1,))], [X, R]), plain([X], [X, R]), "belong to the loop"),
    ],
)
def test_parts_that_do_not_fit_are_refused(start: Program, iterate: Program, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        IterativeProgram(start, iterate)


def test_missing_limits_are_reported() -> None:
    with pytest.raises(InputError, match="tolerance"):
        Kernel(proximal())(*problem(2))


def root() -> IterativeProgram:
    """The square root of s by Newton's method from 1, certified; no step is needed for s = 1."""

    def body(xp: Any, symbol: Any) -> dict[str, Any]:
        s, x = symbol("s", 1), symbol("x", 1)
        new, one = (x + s / x) * 0.5, xp.constant(1.0)
        off = {"residual_first": xp.apply("fabs", one - s), "residual": xp.apply("fabs", new * new - s)}
        certificate = {"violation": xp.apply("fabs", x * x - s), "bound": one}
        return {"x_first": one + 0 * s, "x_next": new, **off, "root": x + 0 * s, **certificate}

    return hoist(trace("root", body), hand_on=False)


@pytest.mark.usefixtures("empty_cache")
def test_a_loop_that_is_rarely_needed_is_compiled_when_it_is() -> None:
    kernel, (tolerance, limit) = Kernel(root(), lanes=2), ([1e-12], [50.0])
    one, two = np.array([1.0]), np.array([2.0])
    for s in (one, np.ones((3, 1)), np.array([np.nan])):  # none of these iterates
        result, fine = kernel.judged([s, tolerance, limit])
        assert fine == bool(np.isfinite(s).all())
    assert {*kernel._forms} == {(1, False), (2, False)}
    direct = kernel.finite()
    limits = np.array(tolerance), np.array(limit)
    assert direct(one, *limits).root == 1.0
    assert direct(two, *limits) is None
    result, fine = kernel.judged([two, tolerance, limit])
    assert fine
    assert result.root == pytest.approx(2**0.5, abs=1e-12)
    assert result.report[0] > 3
    assert kernel.finite()(two, *limits).root == result.root  # from now on without Python
    batch, fine = kernel.judged([np.array([[1.0], [2.0], [4.0]]), tolerance, limit])
    assert fine
    assert batch.root[1] == result.root
    assert {*kernel._forms} == {(1, False), (1, True), (2, False), (2, True)}
    np.testing.assert_array_equal(batch.report[0], [1.0, 0.0, 1.0])
    assert {*Kernel(root(), lanes=2).prepare()._forms} == {(1, True), (2, True)}


def cube_root() -> IterativeProgram:
    """The cube root of a: Newton's method up to two steps, then a loop by bisection where that is not enough.

    The second loop needs sin a beforehand, and its state begins at the middle of 0 and a + 1.
    """

    def body(xp: Any, symbol: Any) -> dict[str, Any]:
        a, x, z = symbol("a", 1), symbol("x", 1), symbol("z_b", 2)

        def error(y: Any) -> Any:
            e = y * y * y - a[0, 0]
            return xp.sqrt(e * e) * xp.eye(1)

        y, middle, wide = x[0, 0], z[0, 0], z[1, 0]
        wave = xp.sin(a[0, 0])
        stepped = y - (y * y * y - a[0, 0]) / (3 * y * y)
        halved = wide / 2
        moved = middle + xp.where(middle * middle * middle < a[0, 0], halved / 2, -halved / 2)
        return {
            "x_first": xp.eye(1),
            "residual_first": error(1.0),
            "x_next": stepped * xp.eye(1),
            "residual": error(stepped),
            "z_first_b": xp.matrix([[(a[0, 0] + 1) / 2], [a[0, 0] + 1]]),
            "x_next_b": moved * xp.eye(1),
            "z_next_b": xp.matrix([[xp.where(wave > 2, wave, moved)], [halved]]),
            "residual_b": error(moved),
            "root": x,
            "excess": error(y),
        }

    return hoist(trace("cube_root", body), further=[Further(200, anew=True)])


@pytest.mark.parametrize("count", [1, 11])
def test_a_further_loop_takes_the_lanes_that_are_left(count: int) -> None:
    """It runs only where the first has not come to an end, and prepares what only it needs."""
    program = cube_root()
    a = np.linspace(1.0, 3000.0, count)[:, None]
    kernel = Kernel(program, threads=1)
    root, iterations, residual = kernel(a, np.array([1e-10]), np.array([2.0]))
    expected = program.interpret(a, np.array([1e-10]), np.array([2.0]))
    assert iterations[0, 0] == 0, "1 is its own root"
    for x, y in zip((root, iterations, residual), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(root, np.cbrt(a), rtol=1e-10)
    assert (iterations[1:] > 2).all()
    assert program.further[0].prepare.counts()["sin"] == 1
    assert "sin" not in program.start.counts()
