"""Dry friction of joints: a joint sticks up to its force, and is slowed by just that when it slides."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import UnmodelledWarning
from linkwork.robots.mechanisms import four_bar

MASS, DRY, G = 2.0, 3.0, 9.81


def slider(friction: float = DRY, **joint) -> lw.Model:
    """A mass on a horizontal guide."""
    b = lw.Builder("slider")
    body = lw.BodyInertia(MASS, np.zeros(3), 0.01 * np.eye(3))
    b.link("mass", joint="prismatic", axis="x", inertia=body, friction=friction, **joint)
    return b.build()


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_a_mass_sticks_slides_and_stops(backend: str) -> None:
    run = lw.rollout(slider(), contacts=[], steps=400, backend=backend)
    sticks = run([0.1], [0.0], tau=np.array([0.99 * DRY]))
    np.testing.assert_allclose(sticks.q[:, 0], 0.1, atol=1e-14)
    slides = run([0.1], [0.0], tau=np.array([DRY + 4.0]))
    np.testing.assert_allclose(slides.v[:, 0], 4.0 / MASS * slides.t, rtol=1e-9)
    stops = run([0.0], [-0.5])
    when = 0.5 * MASS / DRY  # 0.333 s, at constant deceleration
    moving = stops.t < when - 1e-3
    np.testing.assert_allclose(stops.v[moving, 0], -0.5 + DRY / MASS * stops.t[moving], rtol=1e-9)
    assert np.abs(stops.v[stops.t > when + 1e-3]).max() < 1e-14
    assert stops.converged


def test_friction_and_limits_meet_in_one_joint() -> None:
    """Driven against its stop, the joint ends there; released, friction keeps it there."""
    model = slider(limits=lw.model.Limits(-1.0, 0.2))
    run = lw.rollout(model, contacts=[], steps=600)
    there = run([0.1], [0.0], tau=np.array([DRY + 5.0]))
    assert there.q[-1, 0] == pytest.approx(0.2, abs=1e-6)
    assert run(there.q[-1], [0.0], tau=np.array([-0.9 * DRY])).q[-1, 0] == pytest.approx(0.2, abs=1e-6)


def test_friction_is_an_input_for_each_state() -> None:
    run = lw.rollout(slider(0.0), contacts=[], steps=100, parameters=("joint_friction",))
    force = np.array([[0.0], [1.0], [5.0]])
    found = run(np.zeros((3, 1)), np.zeros((3, 1)), tau=np.array([4.0]), joint_friction=force)
    np.testing.assert_allclose(found.v[:, -1, 0], [0.2, 0.15, 0.0], rtol=1e-9, atol=1e-14)
    with pytest.raises(lw.LinkworkError, match="negative"):
        run([0.0], [0.0], joint_friction=[-1.0])


def test_a_loop_feels_the_friction_of_its_joints() -> None:
    """A four-bar sticks where friction exceeds what gravity pulls with, else its crank is slowed as by a motor."""
    model = four_bar()
    q, v = lw.random_state(model, 2)
    crank, none = model.links[1].joint_name, np.zeros(model.nv)
    still = lw.step(model.with_friction(crank, 100.0))(q, none, none, [1e-3])
    assert np.abs(still.v).max() < 1e-9
    assert still.converged
    against = none.copy()
    against[0] = -0.3 * np.sign(v[0])
    rough = lw.step(model.with_friction(crank, 0.3))(q, v, none, [1e-3])
    np.testing.assert_allclose(rough.v, lw.step(model)(q, v, against, [1e-3]).v, rtol=1e-7)


def test_smooth_motions_say_that_they_have_none() -> None:
    with pytest.warns(UnmodelledWarning, match="dry friction of 1 joint"):
        lw.rollout(slider(), steps=2)([0.0], [1.0])
    with pytest.warns(UnmodelledWarning, match="dry friction of 1 joint"):
        lw.simulate(slider(), [0.0], [1.0], duration=0.002)
