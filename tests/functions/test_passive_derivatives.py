"""Derivatives of functions with springs, damping and parameters, by differences."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots import mechanisms as mech

H = 1e-6


def sprung(contact: bool) -> lw.Model:
    """A free body with a ball joint and a hinge, all on springs with damping."""
    b, body = lw.Builder("sprung"), lw.BodyInertia(1.5, np.array([0.1, 0.05, -0.1]), np.diag([0.02, 0.03, 0.04]))
    b.link("base", joint="free", inertia=body, stiffness=3.0, damping=0.4)
    place = lw.Placement.at((0.2, 0, 0.1), (0.3, 0.2, 0.1))
    b.link("arm", "base", "spherical", placement=place, inertia=body, stiffness=2.0, damping=0.3)
    b.link("hand", "arm", "revolute", axis="y", placement=place, inertia=body, stiffness=5.0, rest=0.4, damping=0.1)
    model = b.build()
    return model.with_constraints(lw.point("hand")) if contact else model


def by_differences(f, model: lw.Model, q, v, x) -> dict[str, np.ndarray]:
    out = {n: [] for n in ("q", "v", "x")}
    for k in range(model.nv):
        d = H * np.eye(model.nv)[k]
        out["q"].append((f(model.integrate(q, d), v, x) - f(model.integrate(q, -d), v, x)) / (2 * H))
        out["v"].append((f(q, v + d, x) - f(q, v - d, x)) / (2 * H))
        out["x"].append((f(q, v, x + d) - f(q, v, x - d)) / (2 * H))
    return {n: np.array(columns).T for n, columns in out.items()}


@pytest.mark.parametrize("contact", [False, True])
def test_forward_and_inverse_dynamics(contact: bool) -> None:
    model = sprung(contact)
    rng = np.random.default_rng(0)
    q, v, x = model.random_q(0), rng.normal(size=model.nv), rng.normal(size=model.nv)
    fd = lw.forward_dynamics(model, method="pv" if contact else "aba")
    right = by_differences(lambda *s: fd(*s).a, model, q, v, x)
    got = fd.derivatives()(q, v, x)
    for n, name in (("q", "q"), ("v", "v"), ("x", "tau")):
        size = float(np.abs(right[n]).max())
        np.testing.assert_allclose(getattr(got, f"da_d{name}"), right[n], atol=2e-5 * size)
    change, weight = rng.normal(size=(3, model.nv)), rng.normal(size=model.nv)
    along = sum(right[n] @ d for n, d in zip(("q", "v", "x"), change, strict=True))
    np.testing.assert_allclose(fd.jvp()(q, v, x, *change).da, along, atol=1e-4 * float(np.abs(along).max()))
    back = fd.vjp()(q, v, x, weight, np.zeros(model.rows))
    np.testing.assert_allclose(back.g_q, right["q"].T @ weight, atol=1e-4 * float(np.abs(right["q"]).max()))
    if not contact:
        inverse = lw.inverse_dynamics(model)
        right = by_differences(lambda *s: inverse(*s).tau, model, q, v, x)
        got = inverse.derivatives()(q, v, x)
        for n, name in (("q", "q"), ("v", "v"), ("x", "a")):
            np.testing.assert_allclose(getattr(got, f"dtau_d{name}"), right[n], atol=2e-5 * np.abs(right[n]).max())


def test_by_parameters() -> None:
    """Accelerations by the inertia of a link and a stiffness, and by q beside them."""
    rng, p = np.random.default_rng(1), mech.arm(3).parameters()
    q, v, tau = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
    fd = lw.forward_dynamics(mech.arm(3), method="aba", parameters=("inertia", "stiffness"))
    slopes = fd.derivatives(["q", "inertia", "stiffness"])(q, v, tau)
    for n, k in (("inertia", 12), ("stiffness", 1)):
        moved = {s: p[n].copy() for s in (1, -1)}
        for s, x in moved.items():
            x.reshape(-1)[k] += s * H
        change = (fd(q, v, tau, **{n: moved[1]}).a - fd(q, v, tau, **{n: moved[-1]}).a) / (2 * H)
        np.testing.assert_allclose(getattr(slopes, f"da_d{n}")[:, k], change, atol=1e-4 * (1 + np.abs(change).max()))
    right = lw.forward_dynamics(mech.arm(3), method="aba").derivatives()(q, v, tau).da_dq
    np.testing.assert_allclose(slopes.da_dq, right, atol=1e-9 * float(np.abs(right).max()))


def test_by_softness_and_targets() -> None:
    """J a + R lam = k + targets, by R and the targets: Jacobians and both products."""
    model, rng = sprung(True), np.random.default_rng(2)
    q, (v, tau, w), x = model.random_q(1), rng.normal(size=(3, model.nv)), rng.normal(size=3)
    given = {"softness": np.array([0.3, 0.5, 0.2]), "targets": rng.normal(size=3)}
    fd = lw.forward_dynamics(model, R=0.1, parameters=tuple(given))
    slopes = fd.derivatives([*given])(q, v, tau, **given)
    for n in given:
        there, back = (fd(q, v, tau, **given | {n: given[n] + s * H * x}) for s in (1, -1))
        for output in ("a", "lam"):
            change = (getattr(there, output) - getattr(back, output)) / (2 * H)
            assert np.abs(change).max() > 1e-3
            np.testing.assert_allclose(getattr(slopes, f"d{output}_d{n}") @ x, change, atol=1e-7)
        along = fd.jvp([n])(q, v, tau, x, **given)
        np.testing.assert_allclose(along.da, getattr(slopes, f"da_d{n}") @ x, atol=1e-10)
        pulled = fd.vjp([n])(q, v, tau, w, np.zeros(3), **given)
        np.testing.assert_allclose(getattr(pulled, f"g_{n}"), w @ getattr(slopes, f"da_d{n}"), atol=1e-10)
