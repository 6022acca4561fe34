"""Terms are derivatives of each other: checked along motions, on mechanisms with every joint type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from helpers import FIVE_POINT, KINDS, MOVING, along, assert_close, cond, derivative, random_model, random_state
from linkwork.algorithms.tree.coriolis import coriolis_matrix
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.kinematics import REFERENCES
from linkwork.functions.terms import FRAME_TERMS, TERMS
from linkwork.joints import Free
from linkwork.model import Motion
from linkwork.rewrite.rewritten import rewritten_model

SEEDS = range(4)
ONE_OF_EACH = [pytest.param((0, 4, (k,)), id=k) for k in MOVING]
CASES = [*(pytest.param((s, 7, tuple(KINDS)), id=f"mixed {s}") for s in SEEDS), *ONE_OF_EACH]


@pytest.fixture(params=CASES)
def case(request):
    seed, n, kinds = request.param
    model = random_model(seed, n, kinds)
    return model, *random_state(model, seed)


def numbers(model, names, m: Motion, a=None, frames=(), reference="local"):
    f = lw.terms(model, names, frames, reference=reference, backend="numpy")
    return f(*(m.q[:, 0], m.v[:, 0], a)[: len(f.inputs)])


@pytest.mark.parametrize("reference", REFERENCES)
def test_velocities_and_accelerations_of_frames(case, reference):
    model, q, v, a = case
    at, frames = along(model, q, v, a), ["f1", "f3", "l2", "world"]

    def velocities(t):
        return numbers(model, "velocities", at(t), frames=frames, reference=reference).velocities

    now = numbers(model, tuple(FRAME_TERMS), at(0.0), a, frames, reference)
    assert_close(now.velocities, now.J @ v, scale=10.0)
    assert_close(now.accelerations, now.J @ a + now.Jdot_v, scale=10.0)
    assert_close(now.accelerations, derivative(velocities), scale=10.0, eps=FIVE_POINT)
    w, point = now.velocities[:, 3:], now.velocities[:, :3]
    excess = 0.0 if reference == "world_aligned" else np.cross(w, point)
    assert_close(now.classical_accelerations[:, :3] - now.accelerations[:, :3], excess + 0 * point, scale=10.0)
    if reference == "world_aligned":
        speed = derivative(lambda t: numbers(model, "positions", at(t), frames=frames).positions)
        assert_close(now.velocities[:, :3], speed, scale=10.0, eps=FIVE_POINT)


def test_centre_of_mass_and_momentum(case):
    model, q, v, a = case
    at, weight = along(model, q, v, a), model.mass * 10
    names = ("com", "com_velocity", "com_acceleration", "com_J", "com_Jdot_v", "h", "hdot", "A", "Adot_v")
    now = numbers(model, names, at(0.0), a)
    assert_close(now.com_velocity, derivative(lambda t: numbers(model, "com", at(t)).com), eps=FIVE_POINT)
    assert_close(now.com_velocity, now.com_J @ v)
    assert_close(now.com_acceleration, now.com_J @ a + now.com_Jdot_v, scale=10.0)
    assert_close(now.h, now.A @ v, scale=weight)
    assert_close(now.hdot, now.A @ a + now.Adot_v, scale=weight)
    assert_close(now.hdot, derivative(lambda t: numbers(model, "h", at(t)).h), scale=weight, eps=FIVE_POINT)


def test_forces(case):
    model, q, v, a = case
    m = along(model, q, v, a)(0.0)
    now = numbers(model, ("C", "g", "c", "M", "Minv"), m)
    size = float(np.abs(now.c).max())
    assert_close(now.C @ v + now.g, now.c, scale=size)
    assert_close(now.M @ now.Minv, np.eye(model.nv), cond(now.M), c=200)
    assert_close(lw.inverse_dynamics(model, backend="numpy")(q, 0 * v, 0 * v).tau, now.g, scale=size)


def test_rate_of_the_mass_matrix_is_C_and_its_transpose(case):
    model, q, v, a = case
    at = along(model, q, v, a)
    C, rate = coriolis_matrix(at(0.0)), derivative(lambda t: crba(at(t)))
    assert_close(C + C.T, rate, eps=FIVE_POINT, scale=float(np.abs(C).max()))


def test_a_rotor_in_the_axes_of_its_parent_turns():
    model = random_model(3, 5, base="free")
    base = replace(model.links[1], joint=Free("parent"), armature=np.array([2.0, 2, 2, 0.1, 0.2, 0.3]))
    model = replace(model, links=(model.links[0], base, *model.links[2:]))
    q, v, _ = random_state(model, 3)
    now = lw.terms(model, ["C", "g", "c"], backend="numpy")(q, v)
    assert_close(now.C @ v + now.g, now.c, scale=100.0)


@pytest.mark.parametrize("seed", range(6))
def test_rewritten_models_have_the_same_terms(seed):
    """Machine code computes with other link frames and lumped inertias, and no term may depend on that."""
    model = random_model(seed, 8, base="free" if seed % 2 else None)
    model = model.with_inertia("l3", model.links[4].inertia, weightless=model.links[4].inertia)
    q, v, a = random_state(model, seed)
    names, frames = (*FRAME_TERMS, *TERMS), [*model.frames, *(l.name for l in model.links)]
    found, expected = (lw.terms(m, names, frames, backend="numpy")(q, v, a) for m in (rewritten_model(model), model))
    for name in names:
        kappa = cond(expected.M) if name == "Minv" else 1.0
        assert_close(getattr(found, name), getattr(expected, name), kappa, scale=10 * model.mass)


def test_inputs_are_those_that_the_terms_need():
    model = random_model(1, 3)
    for names, inputs in ((["M", "com"], "q"), (["com", "c"], "qv"), ("hdot", "qva")):
        assert list(lw.terms(model, names).inputs) == list(inputs)
