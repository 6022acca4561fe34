"""Derivatives of inverse dynamics with constraints: beside differences."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import linkwork as lw
from helpers import derivative, motion
from linkwork.algorithms.constrained.inverse import constrained_inverse
from linkwork.closure.actuation import actuated_freedoms
from linkwork.errors import LoadError, SingularError
from linkwork.model import Model
from linkwork.robots import mechanisms as mech

MECHANISMS = {
    "crank": (mech.four_bar(), ["crank_joint"]),
    "two motors": (mech.four_bar(), ["crank_joint", "rocker_joint"]),
    "redundant rows": (mech.four_bar(cut="fixed"), ["rocker_joint"]),
    "leg": (mech.planar_leg(), None),
    "gears": (mech.geared_chain(3), None),
    "free base": (mech.chain(2, base="free").with_constraints(lw.surface("linktip"), lw.point("base", name="b")), None),
    "no rows": (mech.chain(3), None),
}


def state(model: Model, seed: int = 0) -> list[np.ndarray]:
    """A closed position, and accelerations that its loops allow."""
    q, v = lw.random_state(model, seed)
    tau = np.random.default_rng(seed).normal(size=model.nv)
    return [q, v, lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a]


FEW = {
    "crank": (mech.four_bar(), ["crank_joint"]),
    "flying": (mech.chain(2, base="free"), None),
    "on one foot": (mech.chain(3, base="free").with_constraints(lw.point("linktip")), None),
    "idle knee": (mech.planar_leg(), ["hip"]),
    "weld": (mech.four_bar(cut="fixed"), ["rocker_joint"]),
    "no motor": (mech.planar_leg(), []),
    "held twice": (mech.chain(5).with_constraints(lw.point("linktip"), lw.point("linktip", name="2")), ["link1_joint"]),
}
"""Mechanisms whose motors are too few for all motions, or might be."""

WEIGHT = 1e-3
"""The default, N m for 1 N of constraint force."""


def by_differences(model: Model, joints: list[str] | None, given: list[np.ndarray]) -> np.ndarray:
    """Derivatives of tau and lam, in units of equal cost, by q, v, a (and fext): of the solution by singular values.

    What motors cannot do is left over.
    """
    driven, widths = actuated_freedoms(model, joints), [model.nv] * 3 + [len(x) for x in given[3:]]

    def forces(x: np.ndarray) -> np.ndarray:
        dq, dv, da, *df = np.split(x, np.cumsum(widths)[:-1])
        there, pushed = motion(model, model.integrate(given[0], dq), given[1] + dv), None
        if df:
            pushed = (given[3] + df[0])[:, None]
        tau, lam, _ = constrained_inverse(there, (given[2] + da)[:, None], driven, WEIGHT, pushed)
        return np.concatenate([tau[:, 0], WEIGHT * lam[:, 0]])

    return np.array([derivative(lambda h, e=e: forces(h * e), 1e-4) for e in np.eye(sum(widths))]).T


def assert_derivatives(d: Any, wrt: Sequence[str], right: np.ndarray, bound: float = 1e-7) -> None:
    torques, held = (np.hstack([getattr(d, f"d{name}_d{w}") for w in wrt]) for name in ("tau", "lam"))
    np.testing.assert_allclose(np.vstack([torques, WEIGHT * held]), right, rtol=0, atol=bound * np.abs(right).max())


@pytest.mark.parametrize("name", MECHANISMS)
def test_beside_differences(name: str) -> None:
    model, joints = MECHANISMS[name]
    given, wrt = [*state(model), np.random.default_rng(1).normal(size=6 * model.nlinks)], ["q", "v", "a", "fext"]
    right = by_differences(model, joints, given)
    for backend in ("numpy", "kernel"):
        inverse = lw.constrained_inverse_dynamics(model, joints, external_forces=True, backend=backend)
        assert_derivatives(inverse.derivatives(wrt)(*given), wrt, right)


@pytest.mark.parametrize("name", FEW)
def test_too_few_motors(name: str) -> None:
    """For accelerations that they cause; others are errors. Products and singular values say the same."""
    model, joints = FEW[name]
    driven, (q, v, _) = actuated_freedoms(model, joints), state(model)
    tau = np.where(driven, np.random.default_rng(3).normal(size=model.nv), 0.0)
    given = [q, v, lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a]
    inverse = lw.constrained_inverse_dynamics(model, joints, underactuated=True)
    right = by_differences(model, joints, given)
    found = inverse.derivatives()
    assert_derivatives(found(*given), "qva", right)
    dense = found._dense(given)  # type: ignore[attr-defined]
    assert_derivatives(SimpleNamespace(**dense), "qva", right)
    change, size = np.random.default_rng(4).normal(size=(3, model.nv)), np.abs(right).max()
    forward, weights = inverse.jvp()(*given, *change), np.random.default_rng(5).normal(size=len(right))
    along = right @ change.ravel()
    np.testing.assert_allclose(np.concatenate([forward[0], WEIGHT * forward[1]]), along, rtol=0, atol=1e-6 * size)
    back = inverse.vjp()(*given, weights[: model.nv], WEIGHT * weights[model.nv :], [0.0])
    np.testing.assert_allclose(np.concatenate(back), weights @ right, rtol=0, atol=1e-6 * size)
    if name not in ("crank", "weld"):
        for function, more in ((found, []), (inverse.jvp(), change)):
            with pytest.raises(SingularError):
                function(q, v, given[2] + 1, *more)


def test_by_parameters() -> None:
    """At the solution as well: redundant rows and few motors, by masses and gravity."""
    model, (q, v, a) = mech.four_bar(cut="fixed"), state(mech.four_bar(cut="fixed"))
    inverse = lw.constrained_inverse_dynamics(
        model, ["rocker_joint"], underactuated=True, parameters=("gravity", "inertia"), backend="numpy"
    )
    d = inverse.derivatives(["q", "gravity", "inertia"])(q, v, a)
    g, inertia = (inverse.defaults[n].ravel() for n in ("gravity", "inertia"))
    change, turn = np.random.default_rng(2).normal(size=len(inertia)), np.array([0.3, -1.0, 0.5])

    def at(t: float) -> np.ndarray:
        r = inverse(q, v, a, gravity=g + t * turn, inertia=(inertia + t * 1e-2 * change).reshape(-1, 10))
        return np.concatenate([r.tau, WEIGHT * r.lam])

    mine = [getattr(d, f"d{n}_dgravity") @ turn for n in ("tau", "lam")]
    mine = [x + 1e-2 * getattr(d, f"d{n}_dinertia").reshape(len(x), -1) @ change for n, x in zip(("tau", "lam"), mine)]
    right = derivative(at, 1e-3)
    np.testing.assert_allclose(np.concatenate([mine[0], WEIGHT * mine[1]]), right, rtol=0, atol=1e-9 * abs(right).max())


def test_a_humanoid() -> None:
    """Talos, beside differences: operation by operation it takes more than a million operations."""
    try:
        model = lw.load("talos", base="free", passive=False)
    except LoadError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")
    model = model.with_constraints(lw.surface("leg_left_6_link"), lw.surface("leg_right_6_link"))
    inverse = lw.constrained_inverse_dynamics(model)
    found, given, h = inverse.derivatives(), state(model), 1e-6
    assert len(found.program.nodes) < 100_000
    d = dict(zip([port.name for port in found.program.outputs], found.program.interpret(*given), strict=True))
    columns = np.random.default_rng(2).permutation(model.nv)[:6]
    for n, name in enumerate(("q", "v", "a")):
        ends = []
        for sign in (1.0, -1.0):
            changes = sign * h * np.eye(model.nv)[columns]
            moved = list(given)
            moved[n] = np.array([model.integrate(given[0], x) for x in changes]) if name == "q" else given[n] + changes
            ends.append(inverse.program.interpret(*moved))
        for k, output in enumerate(("tau", "lam")):
            slopes = (ends[0][k] - ends[1][k]).T / (2 * h)
            ours = d[f"d{output}_d{name}"]
            size = max(np.abs(slopes).max(), np.abs(ours).max())
            np.testing.assert_allclose(ours[:, columns], slopes, rtol=0, atol=1e-5 * size, err_msg=name + output)


def test_where_rows_do_not_hold_a_joint_without_a_motor() -> None:
    """A stretched arm, whose tip is held: singular values, and no numbers for accelerations that nothing causes."""
    arm, rest = mech.chain(3).with_constraints(lw.point("linktip")), np.zeros(3)
    inverse = lw.constrained_inverse_dynamics(arm, ["link2_joint"])
    with pytest.raises(SingularError):
        inverse.derivatives()(rest, rest, np.ones(3))
    a = lw.forward_dynamics(arm, method="kkt", backend="numpy")(rest, rest, [0.0, 1.0, 0.0]).a
    d = inverse.derivatives(["a"])([rest, rest], [rest, rest], [a, a])
    right = by_differences(arm, ["link2_joint"], [rest, rest, a])[:, 6:9]
    for k in range(2):
        assert_derivatives(SimpleNamespace(dtau_da=d.dtau_da[k], dlam_da=d.dlam_da[k]), "a", right)
