"""Pushes: external forces on frames in rollouts and simulations."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends import get
from linkwork.errors import InputError, NotFound
from linkwork.model import Motion
from linkwork.robots.mechanisms import chain, quadruped


def floating() -> lw.Model:
    """A body with an arm, without gravity, and a frame at its tip."""
    b = lw.Builder("floating", gravity=np.zeros(3))
    body = lw.BodyInertia(2.0, np.array([0.1, 0.0, 0.05]), 0.1 * np.eye(3))
    b.link("base", joint="free", inertia=body)
    b.link("arm", "base", "revolute", axis="y", inertia=body, placement=lw.Placement.at((0, 0, 0.3), (0.2, 0.1, 0)))
    b.frame("tip", "arm", lw.Placement.at((0.1, 0.2, 0.3), (0.3, -0.4, 0.5)))
    return b.build()


@pytest.mark.parametrize("axes", ["world", "frame"])
@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_a_push_is_an_external_force(axes: str, integrator: str) -> None:
    """The first step has the accelerations of forward dynamics with the force moved to the link's origin."""
    model, rng = floating(), np.random.default_rng(0)
    q, v, f = model.random_q(rng), rng.normal(size=model.nv), rng.normal(size=6)
    run = lw.rollout(model, pushes=["tip"], push_axes=axes, steps=1, record=("a",), integrator=integrator)
    place = model.frame("tip").placement
    R = place.R
    if axes == "world":
        pose = Motion(model, q[:, None], v[:, None], get("numpy")).poses[model.link("arm")]
        R = np.asarray(pose[0]).T
    force = R @ f[:3]
    fext = np.zeros((model.nlinks, 6))
    fext[model.link("arm") - 1] = [*force, *(R @ f[3:] + np.cross(place.p.ravel(), force))]
    right = lw.forward_dynamics(model, external_forces=True)(q, v, np.zeros(model.nv), fext=fext.ravel()).a
    np.testing.assert_allclose(run(q, v, push=f).a[0], right, rtol=1e-10, atol=1e-10)
    options = {"steps": 1, "record": ("a",), "integrator": integrator, "backend": "numpy"}
    slow = lw.rollout(model, pushes=["tip"], push_axes=axes, **options)
    np.testing.assert_allclose(slow(q, v, push=f).a[0], right, rtol=1e-10, atol=1e-10)


def test_momentum_is_the_integral_of_pushes_over_time() -> None:
    model = floating()
    q, v, T = model.neutral(), np.zeros(model.nv), 50
    push = np.zeros((5, 6))
    push[1, :3] = [3.0, 0.0, -1.0]  # in the second fifth of the time
    run = lw.rollout(model, pushes=["tip"], steps=T, dt=1e-3)(q, v, push=push)
    momentum = lw.centroidal_momentum(model)(run.q[-1], run.v[-1])
    linear = np.asarray(momentum[0]).ravel()[:3]
    np.testing.assert_allclose(linear, 1e-2 * push[1, :3], atol=1e-5)
    same = lw.simulate(model, q, v, duration=T * 1e-3, pushes={"tip": lambda t: push[min(int(t * 1e3 + 0.5) // 10, 4)]})
    np.testing.assert_allclose(same.q[-1], run.q[-1], atol=1e-12)
    assert not same.tau.any()  # the record has the controller's


def test_constant_pushes_in_every_integrator() -> None:
    model = chain(2)
    q = np.array([0.3, -0.2])
    options = {"duration": 0.1, "pushes": {"link2": [5.0, 0.0, 9.0, 0.4, 0.3, 0.2]}}
    ends = {
        n: lw.simulate(model, q, integrator=n, **options).q[-1]
        for n in ("semi_implicit", "rk4", "midpoint", "dormand_prince")
    }
    for end in ends.values():
        np.testing.assert_allclose(end, ends["dormand_prince"], atol=5e-3)
    assert np.abs(ends["rk4"] - lw.simulate(model, q, duration=0.1).q[-1]).max() > 0.03


def test_a_robot_on_its_feet_is_pushed() -> None:
    model = quadruped()
    contacts = [lw.Contact(n) for n in model.frames if "foot" in n]
    q = model.neutral()
    q[2] = 0.5
    run = lw.rollout(model, contacts=contacts, pushes=["trunk"], steps=50, dt=2e-3)
    there, here = run(q, np.zeros(model.nv), push=[0, 40.0, 0, 0, 0, 0]), run(q, np.zeros(model.nv))
    assert there.v[-1, 1] - here.v[-1, 1] > 0.01


def test_wrong_pushes_are_refused() -> None:
    model = chain(2)
    with pytest.raises(NotFound, match="no frame called 'nothing'"):
        lw.rollout(model, pushes=["nothing"])
    with pytest.raises(InputError, match="each once"):
        lw.rollout(model, pushes=["link1", "link1"])
    with pytest.raises(InputError, match=r"pushes=\[...\]"):
        lw.rollout(model, steps=2)(np.zeros(2), np.zeros(2), push=np.zeros(6))
    with pytest.raises(InputError, match="six numbers"):
        lw.simulate(model, np.zeros(2), pushes={"link1": [1, 2]})
    with pytest.raises(InputError, match="has shape"):
        lw.simulate(model, np.zeros(2), pushes={"link1": lambda t: [1.0]}, duration=0.01)
