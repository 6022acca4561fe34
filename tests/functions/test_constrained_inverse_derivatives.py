"""Derivatives of inverse dynamics with constraints: beside those of every operation, and beside differences."""

from __future__ import annotations

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
    "bricard": (mech.bricard(), ["bar3_joint"]),
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


def assert_same(found: tuple[np.ndarray, ...], right: tuple[np.ndarray, ...], bound: float) -> None:
    assert found._fields == right._fields  # type: ignore[attr-defined]
    for name in ("tau", "lam"):
        parts = [(x, y) for n, x, y in zip(found._fields, found, right, strict=True) if n.startswith(f"d{name}_")]  # type: ignore[attr-defined]
        size = max(float(np.abs(y).max(initial=0.0)) for _, y in parts)
        for x, y in parts:
            np.testing.assert_allclose(x, y, rtol=0, atol=bound * size)


FEW = {
    "crank": (mech.four_bar(), ["crank_joint"]),
    "flying": (mech.chain(2, base="free"), None),
    "on one foot": (mech.chain(3, base="free").with_constraints(lw.point("linktip")), None),
    "idle knee": (mech.planar_leg(), ["hip"]),
}
"""Mechanisms whose motors are too few for all motions, or might be."""

WEIGHT = 1e-3
"""The default, N m for 1 N of constraint force."""


def by_operations(inverse: lw.Function) -> lw.Function:
    """The function whose every operation is differentiated, those of least squares, too: another way to the same."""
    inverse.least, inverse._identity = None, None  # type: ignore[attr-defined]
    return inverse


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_same_as_operation_by_operation(name: str) -> None:
    model, joints = MECHANISMS[name]
    given, wrt = [*state(model), np.random.default_rng(1).normal(size=6 * model.nlinks)], ["q", "v", "a", "fext"]

    def of(few: bool, backend: str) -> lw.Function:
        options = {"underactuated": few, "external_forces": True, "backend": backend}
        return lw.constrained_inverse_dynamics(model, joints, **options)  # type: ignore[arg-type]

    theirs = by_operations(of(True, "numpy")).derivatives(wrt)
    right = theirs(*given)
    for backend in ("numpy", "kernel"):
        ours = of(False, backend).derivatives(wrt)
        assert ours.program.digest != theirs.program.digest, "two programs"
        # both square condition numbers, of up to 1e5 (a unit of lam costs 1e-3)
        assert_same(ours(*given), right, 1e-7)


@pytest.mark.parametrize("name", FEW)
def test_too_few_motors(name: str) -> None:
    """For accelerations that they cause, beside differences of the solution by singular values; others are errors."""
    model, joints = FEW[name]
    driven, (q, v, _) = actuated_freedoms(model, joints), state(model)
    tau = np.where(driven, np.random.default_rng(3).normal(size=model.nv), 0.0)
    a = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a
    found = lw.constrained_inverse_dynamics(model, joints, underactuated=True).derivatives()
    d = found(q, v, a)

    def forces(x: np.ndarray) -> np.ndarray:
        """Torques and constraint forces, in units of equal cost, after a change; what motors cannot do is left over."""
        dq, dv, da = np.split(x, 3)
        there = motion(model, model.integrate(q, dq), v + dv)
        tau, lam, _ = constrained_inverse(there, (a + da)[:, None], driven, WEIGHT)
        return np.concatenate([tau[:, 0], WEIGHT * lam[:, 0]])

    right = np.array([derivative(lambda h, e=e: forces(h * e), 1e-4) for e in np.eye(3 * model.nv)]).T
    torques, held = ([getattr(d, f"d{name}_d{w}") for w in "qva"] for name in ("tau", "lam"))
    mine = np.vstack([np.hstack(torques), WEIGHT * np.hstack(held)])
    np.testing.assert_allclose(mine, right, rtol=0, atol=1e-7 * np.abs(right).max())
    if name != "crank":
        with pytest.raises(SingularError):
            found(q, v, a + 1)


def test_too_few_motors_and_redundant_rows() -> None:
    """Forces of redundant rows are 2e-5 off there, since G squares the ratio of lengths to weights: an error."""
    model, (q, v, a) = mech.four_bar(cut="fixed"), state(mech.four_bar(cut="fixed"))
    with pytest.raises(SingularError, match="larger weight"):
        lw.constrained_inverse_dynamics(model, ["rocker_joint"], underactuated=True).derivatives()(q, v, a)


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
    """A stretched arm, whose tip is held: an error, no numbers."""
    inverse = lw.constrained_inverse_dynamics(mech.chain(3).with_constraints(lw.point("linktip")), ["link2_joint"])
    rest = np.zeros(3)
    with pytest.raises(SingularError):
        inverse.derivatives()(rest, rest, rest)
