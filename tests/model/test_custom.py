"""Relations of the user's own: in plain NumPy or in CasADi, for joints of every kind, differentiated along motions."""

from __future__ import annotations

import math
import subprocess
import sys

import casadi
import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import ModelError
from linkwork.model import Model

EPS = float(np.finfo(float).eps)
BODY = lw.BodyInertia(1.0, (0.1, 0.2, 0.3), np.diag([0.2, 0.3, 0.4]))


def two_joints(kind: str) -> Model:
    b = lw.Builder()
    b.link("a", "world", "revolute", axis="z", inertia=BODY)
    b.link("b", "a", kind, inertia=BODY)
    return b.build()


def in_numpy(x, y):
    return [np.sin(x) * y[0] - y[-1] ** 2, np.arctan2(x * y[-1], 1 + y[0] * y[0]), np.exp(x / 3) * (y @ y)]


def in_casadi(x, y):
    angle = casadi.atan2(x * y[-1], 1 + y[0] * y[0])
    return casadi.vertcat(casadi.sin(x) * y[0] - y[-1] ** 2, angle, casadi.exp(x / 3) * casadi.dot(y, y))


def with_relation(model: Model, phi) -> Model:
    return model.with_constraints(lw.Custom(phi, ("a_joint", "b_joint")))


KINDS = ["cylindrical", "universal", "spherical", "planar", "free", "spherical_zyx", "translation"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["numpy", "casadi", "kernel"])
def test_numpy_and_casadi_give_the_same_rows(kind: str, backend: str) -> None:
    """phi, J and drift: two ways of differentiation, and two of writing phi."""
    mine, theirs = (with_relation(two_joints(kind), phi) for phi in (in_numpy, in_casadi))
    assert mine.rows == theirs.rows == 3
    rng = np.random.default_rng(3)
    q, v = mine.random_q(rng), rng.normal(size=mine.nv)
    for factory, given in ((lw.constraint_jacobian, (q,)), (lw.constraint_error, (q, v))):
        for x, y in zip(factory(mine, backend=backend)(*given), factory(theirs, backend=backend)(*given), strict=True):
            assert np.abs(x - y).max() <= 100 * EPS * max(1.0, np.abs(y).max())
    tau = rng.normal(size=mine.nv)
    found, true = (lw.forward_dynamics(m, method="kkt", backend=backend)(q, v, tau).a for m in (mine, theirs))
    assert np.abs(found - true).max() <= 1e4 * EPS * np.abs(true).max()


@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_about_as_many_as_casadis(kind: str) -> None:
    mine, theirs = (
        lw.constraint_jacobian(with_relation(two_joints(kind), f)).operations for f in (in_numpy, in_casadi)
    )
    assert mine <= 1.15 * theirs


def test_jacobian_and_drift_along_a_motion() -> None:
    """Richardson differences of phi along integrate(q, t v): J v and drift."""
    model = with_relation(two_joints("free"), in_numpy)
    rng = np.random.default_rng(0)
    q, v = model.random_q(rng), rng.normal(size=model.nv)
    error = lw.constraint_error(model, backend="numpy")

    def rate(t: float) -> np.ndarray:
        at = model.integrate(q, t * v)
        return lw.constraint_jacobian(model, backend="numpy")(at).J @ v

    def slope(f, h: float) -> np.ndarray:
        rough, fine = ((f(s) - f(-s)) / (2 * s) for s in (h, h / 2))
        return (4 * fine - rough) / 3

    drift = -lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, np.zeros(model.nv)).a
    h = EPS**0.2
    phi = lambda t: error(model.integrate(q, t * v), v).phi  # noqa: E731
    size = 1e3 * EPS ** (4 / 5)
    assert np.abs(slope(phi, h) - rate(0.0)).max() <= size * np.abs(rate(0.0)).max()
    J = lw.constraint_jacobian(model, backend="numpy")(q).J
    assert np.abs(slope(rate, h) - J @ drift).max() <= size * max(1.0, np.abs(J @ drift).max())


REFUSED = {
    "branch": (lambda x: x if x > 0 else -x, "run once for all configurations"),
    "math": (math.sin, "np.sin not math.sin"),
    "nothing": (lambda x: [], "returns no number"),
    "text": (lambda x: "x", "traced"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_differentiated_is_refused(case: str) -> None:
    phi, why = REFUSED[case]
    with pytest.raises(ModelError, match=why):
        two_joints("revolute").with_constraints(lw.Custom(phi, ["a_joint"]))


def test_plain_relations_leave_casadi_alone() -> None:
    code = """
import sys, numpy as np, linkwork as lw
from linkwork.robots.mechanisms import chain
m = chain(2).with_constraints(lw.Custom(lambda a, b: np.sin(a) - b, [l.joint_name for l in chain(2).links[1:]]))
lw.assemble(m, [0.3, 0.0])
try:
    m.with_constraints(lw.Custom(lambda a: a.no_such_thing, [m.joint_names[0]]))
except lw.errors.ModelError as problem:
    print(problem)
print("casadi" in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "no_such_thing" in out
    assert out.splitlines()[-1] == "False"
