"""Integrators have the order they claim and keep what they must keep."""

from __future__ import annotations

import numpy as np
import pytest
from motions import angular_momentum, ball_chain, energy, free_body, julia_four_bar, pendulum

import linkwork as lw
from linkwork.backends import get
from linkwork.errors import InputError, NotFound, SingularError
from linkwork.simulation.steps.dormand_prince import dormand_prince
from linkwork.simulation.steps.integrators import ORDERS, TRACEABLE, midpoint

STARTS = {
    "pendulum": (pendulum, [0.8], [1.5]),
    "free body": (free_body, [0, 0, 0, 0, 0, 0, 1], [0.3, -0.2, 0.1, 2.0, -1.5, 1.0]),
    "ball chain": (ball_chain, [0.3, 0, 0, np.sqrt(1 - 0.09), 0, 0.2, 0, np.sqrt(1 - 0.04)], [1, -0.5, 2, 0.3, 1, -1]),
}


def start(name):
    make, q, v = STARTS[name]
    return make(), np.array(q, dtype=float), np.array(v, dtype=float)


def reference(model, q, v, duration):
    fd = lw.forward_dynamics(model)
    return dormand_prince(model, lambda t, x, y: fd(x, y, np.zeros(model.nv)).a, q, v, duration, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("method", ["semi_implicit", "rk4", "midpoint"])
def test_order_by_convergence(name, method):
    """Halving the step divides the error by 2^order; a semi-implicit step errs by forces only, which a body lacks."""
    model, q, v = start(name)
    duration, counts = 0.4, (20, 40, 80)
    right = reference(model, q, v, duration)(duration)
    errors = []
    for n in counts:
        run = lw.simulate(model, q, v, dt=duration / n, duration=duration, integrator=method, every=n)
        errors.append(np.abs(model.difference(right[0], run.q[-1])).max() + np.abs(right[1] - run.v[-1]).max())
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    order = 2 if (name, method) == ("free body", "semi_implicit") else ORDERS[method]
    assert slope == pytest.approx(-order, abs=0.25)


def test_dormand_prince_has_order_five_and_dense_output_of_order_four():
    model, q, v = start("ball chain")
    fd = lw.forward_dynamics(model)
    right = reference(model, q, v, 1.0)

    def run(rtol):
        return dormand_prince(model, lambda t, x, y: fd(x, y, np.zeros(model.nv)).a, q, v, 1.0, rtol=rtol, atol=rtol)

    coarse, fine = run(1e-6), run(1e-11)
    assert len(fine.t) > 2 * len(coarse.t)
    ends = [np.abs(s.v[-1] - right.v[-1]).max() for s in (coarse, fine)]
    slope = np.log(ends[1] / ends[0]) / np.log(len(fine.t) / len(coarse.t))
    assert -6.5 < slope < -4
    times = np.linspace(0, 1, 173)
    between = np.abs(fine(times)[1] - right(times)[1]).max()
    assert between < 1e-8
    np.testing.assert_allclose(fine(fine.t)[1], fine.v, atol=1e-14)
    with pytest.raises(InputError, match="from 0 to 1"):
        fine(1.5)


@pytest.mark.parametrize("method", ["semi_implicit", "rk4", "midpoint", "dormand_prince"])
def test_quaternions_stay_unit(method):
    model, q, v = start("ball chain")
    run = lw.simulate(model, q, 5 * v, dt=2e-3, duration=1.0, integrator=method)
    for k in (0, 4):
        np.testing.assert_allclose(np.linalg.norm(run.q[:, k : k + 4], axis=1), 1, atol=4e-16)


def test_midpoint_keeps_energy_and_the_size_of_the_momentum_of_a_free_body():
    """Both are quadratic in the body's velocity."""
    model, q, v = start("free body")
    centred = lw.Builder("centred")
    centred.link("brick", joint="free", inertia=lw.BodyInertia(2.0, np.zeros(3), np.diag([0.1, 0.2, 0.25])))
    model = centred.build().with_gravity((0, 0, 0))
    run = lw.simulate(model, q, v, dt=0.02, duration=4.0, integrator="midpoint")
    E = energy(model, run.q, run.v)
    L = np.linalg.norm(angular_momentum(model, run.q, run.v), axis=1)
    np.testing.assert_allclose(E, E[0], rtol=1e-11)
    np.testing.assert_allclose(L, L[0], rtol=1e-11)


def test_rk4_keeps_the_momentum_of_a_free_body_to_its_order():
    model, q, v = start("free body")
    drift = []
    for dt in (0.02, 0.01):
        run = lw.simulate(model, q, v, dt=dt, duration=2.0, integrator="rk4")
        spin = angular_momentum(model, run.q, run.v)
        drift.append(np.abs(spin - spin[0]).max())
    assert drift[1] < 1e-6
    assert drift[0] / drift[1] > 12


def test_a_symplectic_pendulum_does_not_gain_energy():
    """Over a hundred swings semi-implicit Euler's error stays where it is after the first."""
    model, q, v = start("pendulum")
    run = lw.rollout(model, dt=5e-3)(q, 0 * v, steps=40_000, every=10)
    E = energy(model, run.q, run.v)
    first, last = (np.ptp(part) for part in (E[:400], E[-400:]))
    assert last < 1.05 * first
    assert abs(E[-400:].mean() - E[:400].mean()) < 0.05 * first


def test_the_four_bar_of_rigid_body_dynamics_jl():
    """Its test: 1 s from rest, steps of 1 ms, no stabilisation; energy to 1e-8, loop to 1e-10."""
    model, q = julia_four_bar()
    run = lw.simulate(model, q, None, dt=1e-3, duration=1.0, integrator="rk4")
    E = energy(model, run.q, run.v)
    assert np.abs(run.v[-1]).max() > 0.1
    assert np.abs(E - E[0]).max() < 1e-8
    error = lw.constraint_error(model)(run.q, run.v)
    assert np.abs(error.phi).max() < 1e-10


def test_stiff_midpoint_uses_newton_and_refuses_the_impossible():
    model, q, v = start("pendulum")

    def spring(x, y):
        return -1e6 * np.asarray(x) - 0 * np.asarray(y)

    after = midpoint(model, spring, q, v, 0.01)
    w = (v + after[1]) / 2
    np.testing.assert_allclose(after[1] - v, 0.01 * spring(model.integrate(q, 0.005 * w), w), rtol=1e-9)
    with pytest.raises(SingularError, match="shorter"):
        midpoint(model, lambda x, y: np.asarray(x) * np.nan, q, v, 0.01)


@pytest.mark.parametrize("method", TRACEABLE)
def test_a_step_is_the_same_in_every_backend(method):
    model, q, v = start("ball chain")
    import casadi

    fd = lw.forward_dynamics(model, backend="numpy")
    f = fd.casadi()
    step = TRACEABLE[method]
    plain = (
        step(
            model, lambda x, y: fd(x[:, 0], y[:, 0], np.zeros(6)).a[:, None], q[:, None], v[:, None], 0.01, get("numpy")
        )
        if method == "semi_implicit"
        else None
    )
    x, y = casadi.SX.sym("q", model.nq), casadi.SX.sym("v", model.nv)
    traced = step(model, lambda a, b: f(a, b, np.zeros(6))[0], x, y, 0.01, get("casadi"))
    at = casadi.Function("step", [x, y], list(traced))(q, v)
    run = lw.simulate(model, q, v, dt=0.01, duration=0.01, integrator=method)
    np.testing.assert_allclose(np.array(at[0])[:, 0], run.q[-1], atol=1e-14)
    np.testing.assert_allclose(np.array(at[1])[:, 0], run.v[-1], atol=1e-13)
    if plain is not None:
        np.testing.assert_allclose(plain[1][:, 0], run.v[-1], atol=1e-13)


def test_unknown_integrators_are_refused():
    model, q, v = start("pendulum")
    with pytest.raises(NotFound, match="semi_implicit"):
        lw.simulate(model, q, v, integrator="euler")
    with pytest.raises(NotFound, match="rk4"):
        lw.rollout(model, integrator="midpoint")
