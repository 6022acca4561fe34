"""Gradients through steps and whole rollouts, against differences of the rollouts themselves."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, derivative, random_model, random_state
from linkwork.errors import LinkworkError
from linkwork.robots.mechanisms import planar_leg, quadruped, standing

STEPS, SPAN = 100, 1e-4
"""Steps of rollouts, and the step of differences: methods that iterate leave 1e-12 or so of it."""


def chain():
    model = random_model(7, 5, ("revolute", "spherical", "prismatic"), base="free")
    q, v, _ = random_state(model, 1)
    return model, q, 0.3 * v, None, 2e-3


def quadruped_on_its_feet():
    """It stands, lifts two feet for 40 steps, and stands again."""
    model = quadruped()
    q = standing(model)
    feet = [f"{leg}_foot" for leg in ("front_left", "front_right", "rear_left", "rear_right")]
    model = model.with_constraints(*(lw.point(f) for f in feet))
    active = np.ones((STEPS, 4))
    active[30:70, :2] = 0
    return model, q, np.zeros(model.nv), active, 2e-3


def leg_with_a_loop():
    model = planar_leg()
    return model, np.array([0.4, -0.5, -0.1, 0.5]), np.zeros(4), None, 2e-3


CASES = {"chain": chain, "quadruped": quadruped_on_its_feet, "leg": leg_with_a_loop}


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_a_rollout(name):
    """By start and forces at all times, along a random direction of all of them: 1e-6 of five-point differences."""
    model, q, v, active, dt = CASES[name]()
    rng, n, t = np.random.default_rng(0), model.nv, model.topology
    driven = np.zeros(n)
    for i in t.links:
        driven[t.v_slices[i]] = model.links[i].actuated
    step = lw.discrete_step(model, dt=dt, modes=active is not None)
    u = rng.normal(size=(STEPS, n)) * driven
    there = step.rollout(q, v, u, active)
    w_q, w_v = rng.normal(size=(2, STEPS + 1, n))
    g = step.rollout_vjp(q, v, u, w_q, w_v, active)
    dq, dv = (lw.project_velocity(model, q, x) for x in rng.normal(size=(2, n)))  # loops stay closed
    du = rng.normal(size=(STEPS, n)) * driven

    def loss(h):
        run = step.rollout(model.integrate(q, h * dq), v + h * dv, u + h * du, active)
        return np.array([(w_q * model.difference(there.q, run.q)).sum() + (w_v * run.v).sum()])

    expected = derivative(loss, SPAN)[0]
    parts = np.array([g.q @ dq, g.v @ dv, (g.u * du).sum()])
    assert abs(parts.sum() - expected) < 1e-6 * np.abs(parts).sum()


@pytest.mark.parametrize("name", ["chain", "leg"])
def test_the_product_with_a_step_is_that_with_its_linearization(name):
    model, q, v, _, dt = CASES[name]()
    rng, n = np.random.default_rng(1), model.nv
    u, w = rng.normal(size=(3, n)), rng.normal(size=(3, 2 * n))
    step = lw.discrete_step(model, dt=dt)
    g, r = step.vjp(q, v, u, w[:, :n], w[:, n:]), step.linearize(q, v, u)
    scale = float(np.abs(r.A).max())
    assert_close(np.hstack([g.q, g.v]), np.einsum("kij,ki->kj", r.A, w), 1e5, scale=scale)
    assert_close(g.u, np.einsum("kij,ki->kj", r.B, w), 1e5, scale=scale)


def test_parameters_batches_and_stored_states():
    """The gradient by inertias, of all states and of each; it does not depend on which states are stored."""
    model, q, v, _, dt = leg_with_a_loop()
    rng, own = np.random.default_rng(2), model.parameters().inertia
    step = lw.discrete_step(model, dt=dt, parameters=("inertia", "gravity"))
    u, w_q, w_v = rng.normal(size=(7, 3, 4)), rng.normal(size=(8, 3, 4)), rng.normal(size=(8, 3, 4))
    starts = np.stack([q, q, q])
    g = step.rollout_vjp(starts, v, u, w_q, w_v)
    assert g.parameters["inertia"].shape == own.shape
    assert g.parameters["gravity"].shape == (3,)
    assert (g.q.shape, g.u.shape) == ((3, 4), u.shape)
    change = 0.01 * own * rng.normal(size=own.shape)

    def loss(h):
        run = step.rollout(starts, v, u, inertia=own + h * change)
        return np.array([(w_q * run.q).sum() + (w_v * run.v).sum()])

    expected, found = derivative(loss, 1e-2)[0], (g.parameters["inertia"] * change).sum()
    assert abs(found - expected) < 1e-7 * abs(expected)
    each = step.rollout_vjp(starts, v, u, w_q, w_v, inertia=np.stack([own] * 3))
    assert_close(each.parameters["inertia"].sum(0), g.parameters["inertia"], 1e3, scale=10)
    for stored in (1, 3, 100):
        again = step.rollout_vjp(starts, v, u, w_q, w_v, stored=stored)
        assert np.array_equal(again.q, g.q)
        assert np.array_equal(again.u, g.u)


def test_what_a_step_refuses():
    model = leg_with_a_loop()[0]
    with pytest.raises(LinkworkError, match="does not depend on 'joint_friction'"):
        lw.discrete_step(model, parameters=("joint_friction",))
    with pytest.raises(LinkworkError, match="gravity"):
        lw.discrete_step(model)(np.zeros(4), np.zeros(4), np.zeros(4), gravity=np.zeros(3))
