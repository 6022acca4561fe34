"""The loop over time: any number of lanes, holds, records and fates."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from linkwork.errors import KernelError
from linkwork.kernels.calls.rollout import RolloutKernel, RolloutProgram
from linkwork.kernels.programs.from_casadi import read_program


def spinning() -> RolloutProgram:
    """x' = x + h (A y + u), y' = sin(x) y: a step with a fixed input h, a timed one u, and an extra like an input."""
    x, y, u, h = ca.SX.sym("x", 3), ca.SX.sym("y", 2), ca.SX.sym("u", 3), ca.SX.sym("h", 1)
    after = x + h * (ca.vertcat(y[0], y[1], y[0] * y[1]) + u), ca.vertcat(ca.sin(x[0]) * y[0], ca.cos(x[1]) * y[1])
    f = ca.Function("step", [h, x, y, u], [*after, u * x], ["h", "x", "y", "u"], ["x_next", "y_next", "u_next"])
    return RolloutProgram(read_program(f).renamed(["x", "y", "u"]), ("x", "y"), ("u",))


def by_hand(steps, every, h, x, y, u):
    out, x, y = {"x": [], "y": [], "u": []}, x.copy(), y.copy()
    for k in range(steps):
        now = u[:, k * u.shape[1] // steps]
        extra = now * x
        x, y = (
            x + h * (np.column_stack([y, y[:, 0] * y[:, 1]]) + now),
            np.column_stack([np.sin(x[:, 0]) * y[:, 0], np.cos(x[:, 1]) * y[:, 1]]),
        )
        if (k + 1) % every == 0:
            for name, value in (("x", x), ("y", y), ("u", extra)):
                out[name].append(value)
    return {name: np.stack(values, axis=1) for name, values in out.items()}


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize(("batch", "steps", "every", "knots"), [(1, 4, 1, 4), (13, 12, 4, 3), (16, 6, 6, 1)])
def test_every_shape(lanes, batch, steps, every, knots):
    rng = np.random.default_rng(batch)
    x, y, u = rng.normal(size=(batch, 3)), rng.normal(size=(batch, 2)), rng.normal(size=(batch, knots, 3))
    kernel = RolloutKernel(spinning(), lanes=lanes, threads=2)
    out = kernel(steps, every, {"h": np.array([0.1]), "limit": np.array([1e6]), "x": x, "y": y, "u": u}, batch)
    for name, right in by_hand(steps, every, 0.1, x, y, u).items():
        np.testing.assert_allclose(out[name], right, rtol=1e-13, atol=1e-14)
    assert (out["survived"] == steps).all()


def test_lanes_fail_one_by_one():
    x = np.zeros((11, 3))
    u = np.zeros((11, 10, 3))
    for lane in range(10):
        u[lane, lane:] = 1e9
    inputs = {"h": np.array([0.1]), "limit": np.array([1e3]), "x": x, "y": np.zeros(2), "u": u}
    out = RolloutKernel(spinning())(10, 1, inputs, 11)
    np.testing.assert_array_equal(out["survived"], [*range(10), 10])
    assert not out["x"].any()


def test_ports_are_checked():
    program = spinning().step
    with pytest.raises(KernelError, match="state 'z'"):
        RolloutProgram(program, ("z",), ())
    with pytest.raises(KernelError, match="can change"):
        RolloutProgram(program, ("x",), ("nothing",))
    with pytest.raises(KernelError, match="belong to the loop"):
        RolloutProgram(program.renamed(["x", "alive", "u"]), ("x",), ())


@pytest.mark.parametrize("lanes", [1, 8])
def test_an_extra_that_is_not_a_number_ends_a_lane(lanes):
    """A force that is infinite while the state is not: x counts upwards, and 1 / (x - 3) is recorded."""
    x = ca.SX.sym("x")
    f = ca.Function("step", [x], [x + 1, 1 / (x - 3)], ["x"], ["x_next", "force"])
    program = RolloutProgram(read_program(f).renamed(["x", "force"]), ("x",), ())
    starts = np.arange(12.0)[:, None]
    out = RolloutKernel(program, lanes=lanes, threads=1)(3, 1, {"x": starts, "limit": np.array([1e6])}, 12)
    np.testing.assert_array_equal(out["survived"], [3, 2, 1, 0, *[3] * 8])
    assert np.isfinite(out["force"]).all()
    np.testing.assert_array_equal(out["x"][:4, -1, 0], 3.0)


def test_a_long_rollout_takes_many_turns_and_gives_the_same():
    """A pause keeps the state of a tile, the step it is at, and the value of an input that is being held."""
    program, steps = spinning(), 120_000
    rng = np.random.default_rng(0)
    x, y, u = rng.normal(size=(13, 3)), 1e-3 * rng.normal(size=(13, 2)), 1e-3 * rng.normal(size=(13, 4, 3))
    inputs = {"h": np.array([1e-4]), "limit": np.array([1e6]), "x": x, "y": y, "u": u}
    out = {lanes: RolloutKernel(program, lanes=lanes, threads=1)(steps, 30_000, inputs, 13) for lanes in (1, 8)}
    for name, right in by_hand(steps, 30_000, 1e-4, x, y, u).items():
        for lanes in out:
            np.testing.assert_allclose(out[lanes][name], right, rtol=1e-9, atol=1e-12)
    pieces, state = [], inputs
    for k in range(4):
        part = RolloutKernel(program, lanes=8, threads=1)(30_000, 30_000, {**state, "u": u[:, k : k + 1]}, 13)
        pieces.append(part["x"])
        state = {**state, "x": part["x"][:, -1], "y": part["y"][:, -1]}
    np.testing.assert_array_equal(np.concatenate(pieces, axis=1), out[8]["x"])
