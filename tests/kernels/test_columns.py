"""Programs with a loop over columns: the loop, its unrolled form and machine code of any width agree."""

from __future__ import annotations

import numpy as np
import pytest

from linkwork.kernels import Kernel, Port, Program
from linkwork.kernels.c_source import c_source
from linkwork.kernels.columns import ColumnProgram, Group, columns
from linkwork.kernels.trace import trace


def solves(widths: dict[str, int], n: int = 3, extra: int = 1) -> ColumnProgram:
    """x = A^-1 b and y = sum x for the columns of matrices that depend on the input, with A = u u^T + 2."""

    def body(xp, symbol):
        u, column = symbol("u", n), symbol("column", n)
        A = u @ u.T + 2 * xp.eye(n)
        rights = {
            f"right_{k}": xp.hstack([(c + 1) * xp.sin(u) + c * u[0, 0] for c in range(w)]) for k, w in widths.items()
        }
        x = xp.factor_spd(A).solve(column)
        below = [xp.constant(np.ones((1, n))) @ x] * extra
        return {"v": 2 * u, **rights, "found": xp.vstack([x, *below])}

    shapes = {f"right_{k}": (n, w) for k, w in widths.items()}
    groups = [Group(f"right_{k}", (Port(f"x_{k}", (n, w)), Port(f"y_{k}", (extra, w)))) for k, w in widths.items()]
    names = ["v", *(f"{x}_{k}" for x in "xy" for k in widths)]
    return columns(trace("solves", body, shapes=shapes), groups, names)


def judged(u: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    A = np.outer(u, u) + 2 * np.eye(u.size)
    X = np.linalg.solve(A, np.array([(c + 1) * np.sin(u) + c * u[0] for c in range(width)]).T)
    return X, X.sum(axis=0, keepdims=True)


WIDTHS = [{"a": 1}, {"a": 8, "b": 3}, {"a": 13, "b": 5, "c": 17}]


@pytest.mark.parametrize("widths", WIDTHS)
def test_the_loop_is_what_it_says(widths):
    program = solves(widths).check()
    assert "sin" not in program.counts()["column"], "what does not depend on the column is in the start"
    u = np.random.default_rng(0).normal(size=(4, 3))
    whole, straight = program.interpret(u), program.unrolled().interpret(u)
    assert isinstance(program.unrolled(), Program)
    for mine, theirs in zip(whole, straight, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-14)
    for b in range(4):
        for k, (name, w) in enumerate(widths.items()):
            X, y = judged(u[b], w)
            np.testing.assert_allclose(whole[1 + k][b], X, rtol=1e-12, atol=1e-13, err_msg=name)
            np.testing.assert_allclose(whole[1 + len(widths) + k][b], y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 2, None])
@pytest.mark.parametrize("widths", WIDTHS)
def test_machine_code(widths, lanes, dtype):
    program = solves(widths)
    kernel = Kernel(program, lanes=lanes, dtype=dtype, threads=1)
    u = np.random.default_rng(1).normal(size=(19, 3)).astype(dtype)
    expected = program.interpret(u, dtype=dtype)
    tolerance = 1e-13 if dtype == "float64" else 1e-5
    for mine, theirs in zip(kernel(u), expected, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
    for mine, theirs in zip(kernel(u[7]), expected, strict=True):
        np.testing.assert_allclose(mine, theirs[7], rtol=tolerance, atol=tolerance)


def test_empty_outputs_and_c():
    program = solves({"a": 5}, extra=0)
    u = np.array([0.3, -0.2, 0.5])
    v, x, y = Kernel(program, threads=1)(u)
    assert y.shape == (0, 5)
    np.testing.assert_allclose(x, judged(u, 5)[0], rtol=1e-13)
    np.testing.assert_allclose(v, 2 * u)
    assert "void solves(" in c_source(program)


def test_results_that_are_no_numbers_are_found():
    program = solves({"a": 9})
    kernel = Kernel(program, threads=1)
    u = np.random.default_rng(2).normal(size=(5, 3))
    assert kernel.judged([u])[1]
    u[3, 1] = np.nan
    result, fine = kernel.judged([u])
    assert not fine
    assert np.isfinite(result.x_a[[0, 1, 2, 4]]).all()
