"""A discrete step and its A, B: against differences of the step itself, and the step against rollouts."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from helpers import FIVE_POINT, assert_close, derivative, random_model, random_state
from linkwork.errors import InputError
from linkwork.robots.mechanisms import quadruped

DT = 0.01


def free():
    return random_model(3, 3, ("spherical", "planar", "universal"), base="free")


def springy():
    """Damping of 40 N m s/rad at 10 ms: an explicit step of it would be unstable."""
    model = free()
    for link in model.links[2:]:
        model = model.with_damping(link.joint_name, 40.0).with_springs(link.joint_name, 300.0)
    return model


CASES = {
    "arm": lambda: random_model(1, 4, ("revolute", "prismatic")),
    "flying": free,
    "springy": springy,
    "standing": lambda: free().with_constraints(lw.point("f2", stabilisation=lw.Stabilisation(0.3))),
}


@pytest.mark.parametrize("name", CASES)
def test_linearization_is_the_derivative_of_the_step(name):
    model = CASES[name]()
    q, v, u = random_state(model, 2)
    step = lw.discrete_step(model, dt=DT, method="prox_ltl" if model.rows else None)
    r = step.linearize(q, v, u)
    there = step(q, v, u)
    assert_close(r.q, there.q, 1e3)
    assert_close(r.v, there.v, 1e3, scale=10)
    n = model.nv

    def moved(x):
        out = step(model.integrate(q, x[:n]), v + x[n : 2 * n], u + x[2 * n :])
        return np.concatenate([model.difference(there.q, out.q), out.v])

    expected = np.array([derivative(lambda h, e=e: moved(h * e)) for e in np.eye(3 * n)]).T
    assert_close(np.hstack([r.A, r.B]), expected, 1e3, scale=float(np.abs(expected).max()), eps=FIVE_POINT)


@pytest.mark.parametrize("name", CASES)
def test_a_step_is_that_of_a_rollout(name):
    model = CASES[name]()
    q, v, u = random_state(model, 3)
    run = lw.rollout(model, dt=DT, steps=1, method="prox_ltl" if model.rows else None, iterations=4)(q, v, u)
    there = lw.discrete_step(model, dt=DT, method="prox_ltl" if model.rows else None)(q, v, u)
    assert_close(there.q, run.q[-1], 1e4)
    assert_close(there.v, run.v[-1], 1e4, scale=10)


def test_it_takes_hardly_more_operations_than_derivatives_of_accelerations():
    """A quadruped on four feet: columns limb by limb, where one factor of all rows takes 64 500 operations."""
    feet = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
    model = quadruped().with_constraints(*(lw.point(foot) for foot in feet))
    step, dynamics = lw.discrete_step(model, dt=DT), lw.forward_dynamics(model)
    assert step._linear.operations < 1.15 * dynamics.derivatives().operations


@pytest.mark.parametrize("name", ["flying", "standing"])
def test_derivatives_by_parameters(name):
    """Of a horizon, beside differences: gravity of all states, and damping of each."""
    model = CASES[name]()
    step = lw.discrete_step(
        model, dt=DT, method="prox_ltl" if model.rows else None, parameters=("damping", "gravity"), threads=1
    )
    states = [random_state(model, k) for k in range(3)]
    q, v, u = (np.array(x) for x in zip(*states, strict=True))
    gravity, damping = np.array([0.3, -0.2, -9.0]), np.random.default_rng(0).uniform(0.1, 0.3, size=(3, model.nv))
    found = step.by_parameters(q, v, u, gravity=gravity, damping=damping)
    for k in range(3):
        there = step(q[k], v[k], u[k], gravity=gravity, damping=damping[k])

        def moved(dg, dd, k=k, there=there):
            out = step(q[k], v[k], u[k], gravity=gravity + dg, damping=damping[k] + dd)
            return np.concatenate([model.difference(there.q, out.q), out.v])

        by_gravity = np.array([derivative(lambda h, e=e: moved(h * e, 0)) for e in np.eye(3)]).T
        by_damping = np.array([derivative(lambda h, e=e: moved(0, h * e)) for e in np.eye(model.nv)]).T
        for mine, theirs in ((found["gravity"][k], by_gravity), (found["damping"][k], by_damping)):
            assert_close(mine, theirs, 1e3, scale=float(np.abs(theirs).max()), eps=FIVE_POINT)
    assert step.by_parameters(q, v, u)["gravity"].shape == (3, 2 * model.nv, 3)


def test_contact_modes_of_knots():
    """A contact that is off at a knot is as good as none, in the step and in its derivatives."""
    flying = random_model(3, 4, ("revolute", "prismatic"), base="free")
    model = flying.with_constraints(lw.point("f2", stabilisation=lw.Stabilisation(0.3)), lw.point("f3"))
    q, v, u = random_state(model, 4)
    active = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    step = lw.discrete_step(model, dt=DT, modes=True)
    r, there = step.linearize(q, v, u, active), step(q, v, u, active)
    one = lw.discrete_step(replace(model, constraints=model.constraints[:1]), dt=DT)
    found = one.linearize(q, v, u)
    assert_close(there.v[1], found.v, 1e6, scale=10)
    scale = float(np.abs(found.A).max())
    assert_close(r.A[1], found.A, 1e6, scale=scale)
    assert_close(r.B[1], found.B, 1e6, scale=scale)
    assert np.abs(r.A[1] - r.A[[0, 2]]).max(axis=(1, 2)).min() > 1e-3
    with pytest.raises(InputError, match="modes=True"):
        lw.discrete_step(flying, dt=DT)(q, v, u, active)


def test_horizons_of_batches():
    model = CASES["arm"]()
    rng = np.random.default_rng(0)
    q, v, u = (rng.normal(size=(3, 5, model.nv)) for _ in range(3))
    step = lw.discrete_step(model, dt=DT)
    r = step.linearize(q, v, u)
    assert r.A.shape == (3, 5, 2 * model.nv, 2 * model.nv)
    assert r.B.shape == (3, 5, 2 * model.nv, model.nv)
    one = step.linearize(q[2, 4], v[2, 4], u[2, 4])
    assert_close(r.A[2, 4], one.A, 1e3)
    assert step.linearize(q, v[0, 0], u[0]).B.shape == r.B.shape
    copy = pickle.loads(pickle.dumps(step))
    assert np.array_equal(copy.linearize(q, v, u).A, r.A)
    with pytest.raises(InputError, match="this model needs"):
        step.linearize(q[..., :-1], v, u)
    with pytest.raises(InputError, match="do not fit"):
        step(q, v[:, :2], u)
