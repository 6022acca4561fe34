"""Linkages that a moving robot carries: their loops open in steps, and their rows must not feel the robot then.

A ball closes a planar linkage: of its three rows one is across the plane, and no joint moves it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.closure import SeenPoints
from linkwork.constraints.rows import curvature, evaluated, jacobian
from linkwork.errors import ConvergenceWarning, LoadError, OpenLoopWarning
from linkwork.model import Model, Motion
from linkwork.robots import mechanisms as mech
from linkwork.simulation.steps.constrained_step import stabilised


def leg(axes: str = "a") -> Model:
    """A leg with a parallelogram on a free trunk, closed by a ball."""
    model = mech.planar_leg(base="free")
    loop = model.constraints[0]
    return model.without_constraints().with_constraints(lw.Closure(loop.a, loop.b, "spherical", name="knee", axes=axes))


def thrown(model: Model, count: int = 8) -> tuple[np.ndarray, np.ndarray]:
    return lw.random_state(model, 3, batch=count)


@pytest.mark.parametrize("axes", ["a", "b"])
@pytest.mark.parametrize("stabilisation", [False, True])
def test_thrown_legs_converge(axes: str, stabilisation: bool) -> None:
    """With forces on two points that are apart, none did: residuals of 2e-4, and of 0.15 stabilised."""
    model = leg(axes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lw.rollout(model, dt=1e-3, stabilisation=stabilisation)(*thrown(model), steps=200)
    assert found.converged.all()
    assert found.residual.max() < 1e-10
    phi = lw.constraint_error(model)(found.q[:, -1], found.v[:, -1]).phi
    assert np.abs(phi).max() < (1e-7 if stabilisation else 1e-4)


@pytest.mark.parametrize("axes", ["a", "b"])
def test_forces_of_an_open_loop_move_nothing_outside(axes: str) -> None:
    """The trunk is in no row, and nothing at all in that across the plane."""
    model = stabilised(leg(axes), False, 1e-3)
    q = model.integrate(lw.random_state(leg(axes), 1)[0], 0.05 * np.random.default_rng(0).normal(size=model.nv))
    J = jacobian(Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY))
    assert np.abs(J[:, :6]).max() < 1e-14
    assert sorted(np.abs(J).max(axis=1))[0] < 1e-14 < 1e-3 < sorted(np.abs(J).max(axis=1))[1]
    points = jacobian(Motion(leg(axes), q[:, None], np.zeros((model.nv, 1)), NUMPY))
    assert np.abs(points[:, 3:6]).max() > 1e-4, "the loop is open"


@pytest.mark.parametrize("axes", ["a", "b"])
def test_rows_and_their_curvature_are_derivatives(axes: str) -> None:
    """J of the error as `b` sees it (in its axes), and d/dt (J v), by differences, in an open position."""
    model = stabilised(leg(axes), True, 1e-3)
    assert isinstance(model.constraints[0], SeenPoints)
    rng = np.random.default_rng(0)
    q = model.integrate(lw.random_state(leg(axes), 1)[0], 0.05 * rng.normal(size=model.nv))
    v, h = rng.normal(size=model.nv), 1e-5

    def at(t: float) -> Motion:
        return Motion(model, model.integrate(q, t * v)[:, None], v[:, None], NUMPY)

    rates = [jacobian(at(t)) @ v for t in (-h, h)]
    here = at(0.0)
    np.testing.assert_allclose(curvature(here, evaluated(here, 0))[:, 0], (rates[1] - rates[0]) / (2 * h), atol=1e-7)
    if axes == "b":
        errors = [model.constraints[0].position_error(at(t))[:, 0] for t in (-h, h)]
        np.testing.assert_allclose(jacobian(here) @ v, (errors[1] - errors[0]) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("stabilisation", [False, True])
def test_cassie(stabilisation: bool) -> None:
    """Her plantar rods are such linkages: by default all motions warned."""
    try:
        model = lw.load("cassie.xml")
    except LoadError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")
    rng = np.random.default_rng(0)
    q = [lw.assemble(model, model.integrate(model.neutral(), s * rng.normal(size=model.nv))) for s in (0, 0.05, 0.05)]
    v = lw.project_velocity(model, np.array(q), 0.1 * rng.normal(size=(3, model.nv)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.simplefilter("error", OpenLoopWarning)
        found = lw.rollout(model, dt=1e-3, stabilisation=stabilisation)(np.array(q), v, steps=100)
    assert found.converged.all()
    assert found.residual.max() < 1e-9
