"""Batches of programs whose states take very different numbers of iterations: slow ones share tiles of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linkwork.kernels import Kernel
from linkwork.kernels.calls.arrays import table_of, take_inputs, take_outputs
from linkwork.kernels.calls.interruptible_run import Task
from linkwork.kernels.codegen import native_calls
from linkwork.kernels.codegen.driver import FUEL
from linkwork.kernels.codegen.gathering_driver import SOLVED
from linkwork.kernels.programs.hoist import hoist
from linkwork.kernels.programs.iterate import FEW, MORE, Further, IterativeProgram
from linkwork.kernels.programs.trace import trace

TOLERANCE, FIRST, LAST = 1e-10, 2.0, 200


def root(further: bool = True, uneven: bool = True) -> IterativeProgram:
    """root(1 + u^2), in none or some iterations, or (where u is large) in many, with a certificate.

    Two of Newton's method, then bisection in a further loop; without that, up to as many as are allowed.
    """

    def body(xp: Any, symbol: Any) -> dict[str, Any]:
        u, x = symbol("u", 2), symbol("x", 1)
        a = 1 + u[0, 0] * u[0, 0]

        def error(y: Any) -> Any:
            e = y * y / a - 1
            return xp.sqrt(e * e) * xp.eye(1)

        y = x[0, 0]
        new = (y + a / y) / 2
        out = {"root": x, "force": u * y + 0 * xp.sin(u)}
        out |= {"violation": error(y), "bound": xp.eye(1) + 0 * x}
        out |= {"x_first": xp.eye(1) + 0 * x, "residual_first": error(1.0), "x_next": new * xp.eye(1)}
        out |= {"residual": error(new)}
        if not further:
            return out
        z = symbol("z_b", 2)
        middle, half = z[0, 0], z[1, 0] / 2
        moved = middle + xp.where(middle * middle < a, half / 2, -half / 2)
        out |= {"z_first_b": xp.matrix([[(a + 1) / 2], [a + 1]]), "z_next_b": xp.matrix([[moved], [half]])}
        return out | {"x_next_b": moved * xp.eye(1), "residual_b": error(moved), "excess": error(y)}

    return hoist(trace("root", body), further=[Further(LAST, anew=True)] if further else [], uneven=uneven)


def drawn(batch: int, hard: float) -> list[np.ndarray]:
    """States of which a share is hard, some of these much less; some are not numbers."""
    rng = np.random.default_rng(batch)
    u = rng.choice([0.0, 0.03], size=(batch, 2))
    u[rng.random(batch) < hard] = 40.0
    u[rng.integers(0, batch, size=batch // 8)] = np.nan
    return [u, rng.choice([TOLERANCE, 1e-2], size=(batch, 1)), np.array([FIRST])]


def table(kernel: Kernel, inputs: list[np.ndarray]) -> tuple[list[Any], list[Any], int]:
    """All rows of a call, and its outputs."""
    given, batch = take_inputs(kernel.inputs, inputs, kernel.dtype)
    outputs = take_outputs(kernel.outputs, None, kernel.dtype, batch)
    return [*given, *outputs], [x.array for x in outputs], batch or 1


@pytest.mark.parametrize("hard", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("further", [True, False])
@pytest.mark.parametrize(("lanes", "batch", "dtype"), [(2, 11, "float64"), (8, 75, "float64"), (16, 70, "float32")])
def test_a_state_is_the_same_in_any_company(lanes, batch, dtype, further, hard):
    """Beside others, in tiles that wait for their slowest, and alone: to the bit."""
    inputs = drawn(batch, hard)
    inputs[1] = np.fmax(inputs[1], 1e-5) if dtype == "float32" else inputs[1]
    inputs[2] = inputs[2] if further else np.array([100.0])
    kernel = Kernel(root(further), lanes=lanes, dtype=dtype, threads=1)
    waiting = Kernel(root(further, uneven=False), lanes=lanes, dtype=dtype, threads=1)
    for f in (kernel, waiting):
        f.prepare()
    together = kernel(*inputs)
    for x, y in zip(together, waiting(*inputs), strict=True):
        np.testing.assert_array_equal(x, y)
    assert np.isfinite(together.report[np.isfinite(inputs[0]).all(axis=1)]).all()
    for k in range(batch):
        for x, y in zip(together, kernel(inputs[0][k], inputs[1][k], inputs[2]), strict=True):
            np.testing.assert_array_equal(x[k], y, err_msg=f"state {k}")


@pytest.mark.parametrize("batch", [64, 203])
def test_threads_change_nothing(batch):
    """Each has lists of its own."""
    inputs = [np.repeat(x, 50, axis=0) if len(x) == batch else x for x in drawn(batch, 0.2)]
    one, three = (Kernel(root(), lanes=8, threads=n).prepare(single=False)(*inputs) for n in (1, 3))
    for x, y in zip(one, three, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.usefixtures("empty_cache")
def test_a_call_goes_on_where_it_was(monkeypatch):
    """With fuel for one tile or so, it pauses between tiles, between those of states that are left, and at the end."""
    inputs, looks = drawn(203, 0.3), list[int]()
    expected = Kernel(root(uneven=False), lanes=8, threads=1)(*inputs)
    monkeypatch.setattr(native_calls, "AMOUNT", 1)
    kernel = Kernel(root(), lanes=8, threads=1)
    rows, outputs, batch = table(kernel, inputs)
    Task(kernel.native(True), table_of(rows), rows, batch, 1, 1).run(lambda: looks.append(0))
    assert len(looks) > 26 + 8
    for x, y in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def burnt(kernel: Kernel, inputs: list[np.ndarray]) -> float:
    """How many times the cost of a tile a call has used up."""
    rows, _, batch = table(kernel, inputs)
    form = kernel.native(True)
    Task(form, table_of(rows), rows, batch, form.image.cost, 1).run()
    fuel = form.borrow().array[form.image.workspace + FUEL :][:8].view(np.int64)[0]
    return float((native_calls.AMOUNT - fuel) / form.image.cost)


@pytest.mark.parametrize(("tolerance", "tiles"), [(1e-2, 5), (TOLERANCE, 10)])
def test_slow_states_share_tiles(tolerance, tiles):
    """One slow state in each of 40 tiles: five tiles of slow ones are solved again, not forty.

    Bisection takes 12 or 39 iterations, the second more than a second attempt makes: five tiles more.
    """
    kernel, u = Kernel(root(), lanes=8, threads=1), np.full((320, 2), 0.03)
    u[::8] = 40.0
    inputs = [u, np.full((320, 1), tolerance), np.array([FIRST])]
    iterations = kernel(*inputs).report[:, 0]
    assert iterations[1] <= FEW
    assert (iterations[0] > FEW + MORE) == (tiles == 10)
    turns = 40 + tiles * (1 + SOLVED) + 1  # attempts, shared tiles, the end
    assert burnt(kernel, inputs) == pytest.approx(turns, abs=1e-3)


def test_numbers_are_judged_when_all_is_done():
    """What an attempt leaves is no result: its NaN in the report is not found. That of a gathered state is."""
    inputs, kernel = drawn(80, 0.5), Kernel(root(), lanes=8, threads=1).prepare()
    inputs[0] = np.nan_to_num(inputs[0], nan=40.0)
    result, fine = kernel.judged(inputs)
    assert fine
    assert (result.report[:, 0] > FEW).any()
    inputs[2] = np.array([FIRST - LAST])  # no further loop may run: these states are not solved
    result, fine = kernel.judged(inputs)
    assert not fine
    np.testing.assert_array_equal(np.isnan(result.report[:, 2]), result.report[:, 1] > inputs[1][:, 0])


@pytest.mark.parametrize("uneven", [True, False])
def test_what_nobody_wrote_is_not_judged(uneven):
    """Rows of fewer elements than lanes: what is behind these in a new workspace may be NaN."""
    kernel = Kernel(root(uneven=uneven), lanes=8, threads=1)
    form = kernel.native(True)
    workspace = form.borrow()
    workspace.array[:] = 255
    form.give_back(workspace)
    assert kernel.judged([np.full((80, 2), 40.0), [TOLERANCE], [FIRST]])[1]


def test_inputs_that_serve_every_state_and_results_over_inputs():
    """Rows are read again when they are gathered: one row for all, and arrays that overlap results."""
    kernel, u = Kernel(root(), lanes=8, threads=1), drawn(75, 0.3)[0]
    u = np.nan_to_num(u, nan=0.5)
    separate = kernel(u, [TOLERANCE], [FIRST])
    out = [np.empty_like(separate.root), u, np.empty_like(separate.report)]
    kernel(u, [TOLERANCE], [FIRST], out=out)
    for x, y in zip(separate, out, strict=True):
        np.testing.assert_array_equal(x, y)
