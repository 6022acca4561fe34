"""Blocks of tiles: a state whose step takes long is solved again elsewhere, and nothing else about it changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linkwork.kernels.calls import rollout
from linkwork.kernels.calls.rollout import RolloutKernel, RolloutProgram
from linkwork.kernels.codegen import rollout_blocks as blocks
from linkwork.kernels.codegen.native_calls import AMOUNT
from linkwork.kernels.programs.hoist import hoist
from linkwork.kernels.programs.iterate import Further
from linkwork.kernels.programs.trace import trace

pytestmark = pytest.mark.usefixtures(
    "empty_cache"
)  # what is compiled depends on the size of blocks, which tests change
LIMITS = {"tolerance": np.array([1e-10]), "max_iterations": np.array([2.0]), "limit": np.array([1e3])}


def wandering(further: bool = True, counts: bool = False) -> RolloutProgram:
    """s <- s / 2 + h root(1 + u^2), where the root is found in none, some, or (where u is large) many iterations.

    Two of Newton's method, then bisection in a further loop; without that, up to as many as are allowed. The mean of
    s is carried from step to step, and u root is recorded. One that `counts` has s <- s + 1, hard where s is even.
    """

    def body(xp: Any, symbol: Any) -> dict[str, Any]:
        s, u, h, mean = symbol("s", 1), symbol("u", 2), symbol("h", 1), symbol("mean", 1)
        x = symbol("x", 1)
        even = xp.cos(s * np.pi / 2)[0, 0] if counts else 1.0
        a = 1 + u[0, 0] * u[0, 0] * even * even

        def error(y: Any) -> Any:
            e = y * y / a - 1
            return xp.sqrt(e * e) * xp.eye(1)

        y = x[0, 0]
        new = (y + a / y) / 2
        after = s + 1 + 0 * y if counts else s / 2 + h * y + 0 * xp.sin(u[1, 0])
        out = {"s": after, "mean": (mean + after) / 2, "force": u * y}
        out |= {"x_first": xp.eye(1) + 0 * s, "residual_first": error(1.0), "x_next": new * xp.eye(1)}
        out |= {"residual": error(new)}
        if not further:
            return out
        z = symbol("z_b", 2)
        middle, half = z[0, 0], z[1, 0] / 2
        moved = middle + xp.where(middle * middle < a, half / 2, -half / 2)
        out |= {"z_first_b": xp.matrix([[(a + 1) / 2], [a + 1]]), "z_next_b": xp.matrix([[moved], [half]])}
        return out | {"x_next_b": moved * xp.eye(1), "residual_b": error(moved), "excess": error(y)}

    step = hoist(trace("wandering", body), further=[Further(200, anew=True)] if further else [])
    return RolloutProgram(step, ("s",), ("u",), ("mean",))


def drawn(batch: int, knots: int, hard: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Steps of which a share is hard; some lanes leave the limit, some have NaN, each at a time of its own."""
    rng = np.random.default_rng(seed)
    u = rng.choice([0.0, 0.03], size=(batch, knots, 2))
    u[rng.random((batch, knots)) < hard] = 40.0
    for value in (1e7, np.nan):
        for lane in rng.integers(0, batch, size=batch // 8):
            u[lane, rng.integers(0, knots)] = value
    start = {"s": rng.normal(size=(batch, 1)), "h": rng.uniform(0.1, 1, size=(batch, 1)), "mean": np.zeros((batch, 1))}
    # where little is asked for, a further loop takes few iterations
    return {"u": u, **start, **LIMITS, "tolerance": rng.choice([1e-10, 1e-2], size=(batch, 1))}


def rows(inputs: dict[str, np.ndarray], lanes: Any) -> dict[str, np.ndarray]:
    return {n: x[lanes] if n in ("u", "s", "h", "mean", "tolerance") else x for n, x in inputs.items()}


@pytest.mark.parametrize("hard", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize(("lanes", "batch", "dtype"), [(2, 11, "float64"), (8, 75, "float64"), (16, 70, "float32")])
def test_a_state_is_the_same_in_any_company(monkeypatch, lanes, batch, dtype, hard):
    """Beside others in blocks of three tiles, and alone: to the bit."""
    monkeypatch.setattr(blocks, "TILES", 3)
    inputs, steps, every = drawn(batch, 12, hard), 24, 4
    if dtype == "float32":
        inputs["tolerance"] = np.fmax(inputs["tolerance"], 1e-5)
    kernel = RolloutKernel(wandering(), lanes=lanes, dtype=dtype, threads=1)
    kernel.form(lanes), kernel.form(1)
    together = kernel(steps, every, inputs, batch)
    assert (together["survived"] < steps).any()
    for k in range(batch):
        alone = kernel(steps, every, rows(inputs, slice(k, k + 1)), 1)
        for name, x in alone.items():
            np.testing.assert_array_equal(together[name][k], x[0], err_msg=f"{name} of state {k}")


def test_idle_lanes_do_not_end_a_block():
    """In an incomplete tile nobody solves them again: they stay behind, and are left where no state is."""
    batch, steps = 12, 9
    inputs = drawn(batch, 1, 1.0) | {"s": np.zeros((batch, 1)), "u": np.full((batch, 1, 2), 40.0)}
    out = RolloutKernel(wandering(counts=True), lanes=8, threads=1)(steps, 1, inputs, batch)
    assert out["survived"].tolist() == [steps] * batch
    np.testing.assert_array_equal(out["s"][:, :, 0], np.tile(1.0 + np.arange(steps), (batch, 1)))


def test_threads_take_whole_blocks_and_change_nothing(monkeypatch):
    monkeypatch.setattr(blocks, "TILES", 2)
    inputs, batch = drawn(203, 6, 0.1), 203
    one, three = (RolloutKernel(wandering(), lanes=8, threads=n)(3000, 500, inputs, batch) for n in (1, 3))
    for name, x in one.items():
        np.testing.assert_array_equal(three[name], x)


def test_many_turns(monkeypatch):
    """A call that pauses between attempts, and between tiles of states that were left, goes on where it was."""
    monkeypatch.setattr(blocks, "TILES", 3)
    inputs, batch = drawn(40, 100, 0.3), 40
    kernel, looks = RolloutKernel(wandering(), lanes=8, threads=1), []
    kernel.form(8)
    out = kernel(20_000, 5000, inputs, batch, lambda: looks.append(0))
    assert len(looks) > 3
    pieces, state = [], inputs
    for k in range(4):
        part = kernel(5000, 5000, {**state, "u": inputs["u"][:, 25 * k : 25 * k + 25]}, batch)
        pieces.append(part["s"])
        state = {**state, "s": part["s"][:, -1], "mean": part["mean"][:, -1]}
    alive = out["survived"] == 20_000
    assert alive.any()
    np.testing.assert_array_equal(np.concatenate(pieces, axis=1)[alive], out["s"][alive])


def test_one_loop_with_a_long_tail():
    """Without a further loop, a state that needs more iterations than an attempt makes is solved again, too."""
    program, batch = wandering(further=False), 50
    inputs = drawn(batch, 10, 0.1) | {"max_iterations": np.array([60.0])}
    kernel = RolloutKernel(program, lanes=8, threads=1)
    together = kernel(10, 1, inputs, batch)
    for k in range(batch):
        alone = kernel(10, 1, rows(inputs, slice(k, k + 1)), 1)
        for name, x in alone.items():
            np.testing.assert_array_equal(together[name][k], x[0])


def test_slow_states_share_tiles():
    """One slow state in each of 40 tiles: five tiles of slow ones are solved again, not forty. Counted by turns."""
    inputs, steps, looks = drawn(320, 1, 0.0) | LIMITS, 5000, []
    inputs["u"][:], inputs["u"][::8] = 0.03, 40.0
    kernel = RolloutKernel(wandering(), lanes=8, threads=1)
    cost = kernel.form(8).image.cost
    kernel(steps, steps, inputs, 320, lambda: looks.append(0))
    turns = (40 + 5 + 1) * steps * cost / AMOUNT  # attempts, shared tiles, the end of a sweep
    assert len(looks) == pytest.approx(turns, abs=1)


def test_states_that_take_as_long_are_side_by_side(monkeypatch):
    """All are slow, and every other one less: those that took more iterations in the last step are last in the list."""
    found = []

    def driver(frame: Any, block: Any, *rest: Any) -> str:
        found.append(block)
        return blocks.block_driver(frame, block, *rest)

    monkeypatch.setattr(rollout, "block_driver", driver)
    inputs = drawn(32, 1, 0.0)
    inputs["u"][:], inputs["tolerance"][::2], inputs["tolerance"][1::2] = 40.0, 1e-10, 1e-2
    kernel = RolloutKernel(wandering(), lanes=8, threads=1)
    form = kernel.form(8)
    kernel(10, 10, inputs, 32)
    memory, block = form.borrow().array, found[0]
    states = memory[block.list + blocks.HEADER :][: 8 * 32].view(np.int64)
    efforts = memory[block.efforts :][: 8 * 32].view(np.float64)
    np.testing.assert_array_equal(np.sort(states), np.arange(32))
    np.testing.assert_array_equal(states[:16] % 2, 1)
    assert (np.diff(efforts[states]) >= 0).all()
    assert efforts.min() < efforts.max() / 2
