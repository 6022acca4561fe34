"""Inverse dynamics with constraints and its derivatives, beside the same in 60 digits: loops of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import linkwork as lw
from linkwork.closure.actuation import actuated_freedoms
from linkwork.model import Model
from linkwork.robots import mechanisms as mech

OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "guarded": lambda a, b: a,
}
WEIGHT, STEP = mpmath.mpf(1e-3), mpmath.mpf(10) ** -20


def interpreted(program: Any, *inputs: Sequence[Any]) -> list[Any]:
    """The first output of a program, in the digits of its inputs."""
    values: list[Any] = []
    for kind, *arguments in program.nodes:
        if kind in ("const", "input"):
            values.append(mpmath.mpf(arguments[0]) if kind == "const" else inputs[arguments[0]][arguments[1]])
        else:
            values.append(OPERATIONS[kind](*(values[k] for k in arguments)))
    return [values[k] for k in program.results[0]]


def forces(model: Model, joints: list[str], given: Sequence[Sequence[Any]]) -> np.ndarray:
    """tau and lam of least cost: x = A^T (A A^T)^-1 h for A = [B, J^T / w]."""
    h = mpmath.matrix(interpreted(lw.inverse_dynamics(model.without_constraints()).program, *given))
    J = np.array(interpreted(lw.constraint_jacobian(model).program, given[0])).reshape(model.rows, model.nv)
    B = np.eye(model.nv)[:, actuated_freedoms(model, joints)]
    A = mpmath.matrix(np.hstack([B, J.T / WEIGHT]).tolist())
    x = np.array(list(A.T * mpmath.lu_solve(A * A.T, h)))
    n = B.shape[1]
    return np.concatenate([B @ x[:n], x[n:] / WEIGHT])


def both(model: Model, joints: list[str], given: Sequence[np.ndarray], change: np.ndarray) -> list[np.ndarray]:
    """tau, lam and their derivatives along one change of q, v and a."""
    with mpmath.workdps(60):
        exact = [np.array([mpmath.mpf(float(y)) for y in x]) for x in given]
        ends = [
            forces(model, joints, [x + s * STEP * dx for x, dx in zip(exact, change, strict=True)]) for s in (1, -1)
        ]
        slope, value = (ends[0] - ends[1]) / (2 * STEP), (ends[0] + ends[1]) / 2
        return [part.astype(float) for x in (value, slope) for part in np.split(x, [model.nv])]


def state(model: Model) -> list[np.ndarray]:
    q, v = lw.random_state(model, 0)
    tau = np.random.default_rng(0).normal(size=model.nv)
    return [q, v, lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a]


def along(d: Any, change: np.ndarray) -> list[np.ndarray]:
    return [sum(getattr(d, f"d{x}_d{n}") @ c for n, c in zip("qva", change, strict=True)) for x in ("tau", "lam")]


def off(found: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> list[float]:
    return [float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(found, right, strict=True)]


MECHANISMS = {
    "four-bar": (mech.four_bar(), ["crank_joint"]),
    "four-bar, weld": (mech.four_bar(cut="fixed"), ["rocker_joint"]),
    "5 mm": (mech.bricard(0.005), ["bar3_joint"]),
    "half a metre": (mech.bricard(), ["bar3_joint"]),
    "50 m": (mech.bricard(50.0), ["bar3_joint"]),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_loops_of_any_size(name: str) -> None:
    """Gram matrices of all forces lost them all at 50 m (torques 18 % off, and nothing said so)."""
    model, joints = MECHANISMS[name]
    given, change = state(model), np.random.default_rng(3).normal(size=(3, model.nv))
    right = both(model, joints, given, change)
    for backend, few in (("numpy", False), ("numpy", True), ("casadi", False), ("kernel", True), ("kernel", False)):
        inverse = lw.constrained_inverse_dynamics(model, joints, underactuated=few, backend=backend)
        assert max(off(inverse(*given)[:2], right[:2])) < 1e-8, (backend, few)
    for few in (True, False):
        inverse = lw.constrained_inverse_dynamics(model, joints, underactuated=few)
        assert max(off(along(inverse.derivatives()(*given), change), right[2:])) < 1e-8, few
        assert max(off(inverse.jvp()(*given, *change)[:2], right[2:])) < 1e-8, few
    # float32 says what float64 does of the same numbers, whose loop is open by their rounding
    rounded = [np.float32(x).astype(float) for x in given]
    single = lw.constrained_inverse_dynamics(model, joints, dtype="float32")
    assert max(off(single(*given)[:2], inverse(*rounded)[:2])) < 2e-3
    shown = along(single.derivatives()(*given), change), along(inverse.derivatives()(*rounded), change)
    assert max(off(*shown)) < 1e-2


def test_postures_in_which_rows_do_not_hold_joints_without_motors() -> None:
    """A stretched arm whose tip is held: machine code gives NaN, singular values the forces of a motion it can make."""
    arm = mech.chain(3).with_constraints(lw.point("linktip"))
    inverse, rest = lw.constrained_inverse_dynamics(arm, ["link2_joint"]), np.zeros(3)
    a = lw.forward_dynamics(arm, method="kkt", backend="numpy")(rest, rest, [0.0, 1.0, 0.0]).a
    right = lw.constrained_inverse_dynamics(arm, ["link2_joint"], underactuated=True, backend="numpy")(rest, rest, a)
    for found in (inverse(rest, rest, a), inverse([rest, rest], [rest, rest], [a, a])):
        for x, y in zip(found, right, strict=True):
            np.testing.assert_allclose(x, np.broadcast_to(y, x.shape), atol=1e-9)
