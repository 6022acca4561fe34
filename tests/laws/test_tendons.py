"""Tendons: springs and dampers over several joints have an energy, in every function, and are kept by models."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends import get
from linkwork.errors import ModelError, StepWarning
from linkwork.model.springs_and_dampers import spring_energy
from linkwork.robots.mechanisms import chain, geared_chain

ONE, TWO = "link1_joint", "link2_joint"


def strung(slack: float = 0.0) -> lw.Model:
    """Two links without gravity and a tendon over both joints."""
    tendon = lw.Tendon({ONE: 1.0, TWO: -2.0}, stiffness=30.0, damping=0.4, rest=(0.1 - slack, 0.1 + slack), name="t")
    return chain(2).with_gravity([0, 0, 0]).with_tendons(tendon)


def pull(q: np.ndarray, v: np.ndarray, slack: float) -> np.ndarray:
    """The joint forces of `strung`, written out."""
    l, rate = q[0] - 2 * q[1] - 0.1, v[0] - 2 * v[1]
    return np.array([1.0, -2.0]) * (-30 * (l - np.clip(l, -slack, slack)) - 0.4 * rate)


@pytest.mark.parametrize("slack", [0.0, 0.2])
def test_forces_and_derivatives(slack: float) -> None:
    model, rng = strung(slack), np.random.default_rng(1)
    bare = model.without_passive()
    assert not bare.tendons
    for q, v, a in rng.normal(size=(6, 3, 2)) * 0.3:
        more = lw.inverse_dynamics(bare)(q, v, a).tau - lw.inverse_dynamics(model)(q, v, a).tau
        np.testing.assert_allclose(more, pull(q, v, slack), atol=1e-13)
    q, v, tau = np.array([0.9, 0.1]), np.array([0.3, -0.4]), np.ones(2)
    fd, h = lw.forward_dynamics(model), 1e-6
    slopes = fd.derivatives()(q, v, tau)
    for name, x in (("q", 0), ("v", 1)):
        ends = ([(y + s * h * e * (n == x)) for n, y in enumerate((q, v))] for e in np.eye(2) for s in (1, -1))
        found = np.array([fd(*at, tau).a for at in ends]).reshape(2, 2, 2)
        numeric = (found[:, 0] - found[:, 1]).T / (2 * h)
        np.testing.assert_allclose(getattr(slopes, f"da_d{name}"), numeric, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("slack", [0.0, 0.2])
def test_steps_agree_and_energy_is_accounted_for(slack: float) -> None:
    """Rollouts, simulations and discrete steps take the same steps; the energy of springs and damping adds up."""
    model, q0 = strung(slack), np.array([0.8, -0.2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", StepWarning)
        run = lw.rollout(model, dt=1e-3, steps=400)(q0, np.zeros(2))
        assert lw.rollout(model, dt=1e-3, steps=400, integrator="rk4")(q0, np.zeros(2)).ok
    step, q, v = lw.discrete_step(model, dt=1e-3), q0, np.zeros(2)
    for _ in range(5):
        q, v = step(q, v, np.zeros(2))
    np.testing.assert_allclose(run.q[4], q, atol=1e-14)
    l = q0[0] - 2 * q0[1] - 0.1 - slack
    assert spring_energy(model, q0[:, None], get("numpy"))[0, 0] == pytest.approx(15 * l * l)


def test_any_stiffness_is_stable() -> None:
    stiff = chain(2).with_tendons(lw.Tendon({ONE: 1.0, TWO: -2.0}, stiffness=1e7, damping=1.0))
    run = lw.rollout(stiff, dt=1e-2, steps=200, every=20)(np.array([0.2, 0.1]), np.array([1.0, 0.0]))
    assert np.abs(run.q).max() < 10


def test_models_keep_their_tendons() -> None:
    model = strung()
    assert pickle.loads(pickle.dumps(model)) == model != model.without_passive()
    twice = lw.combine(lw.Part(model, "a/"), lw.Part(model, "b/"))
    assert [dict(t.joints) for t in twice.tendons][1] == {f"b/{ONE}": (1.0,), f"b/{TWO}": (-2.0,)}
    geared = geared_chain(1)
    rotor = next(l.joint_name for l in geared.links[1:] if "rotor" in l.name)
    moved = lw.approximate(geared.with_tendons(lw.Tendon(rotor, stiffness=2.0)))
    assert rotor not in moved.tendons[0].joints


def test_what_no_tendon_has() -> None:
    with pytest.raises(ModelError, match="2 gears"):
        chain(2).with_tendons(lw.Tendon({ONE: (1.0, 2.0)}))
    with pytest.raises(ModelError, match="are there twice"):
        strung().with_tendons(lw.Tendon(ONE, name="t"))
    with pytest.raises(ModelError, match="at least one joint"):
        lw.Tendon({})


@pytest.mark.parametrize("slack", [0.0, 0.2])
def test_parameters_of_tendons(slack: float) -> None:
    """As inputs they give what a model with these tendons gives, one for all states or one for each."""
    names = ("tendon_stiffness", "tendon_damping", "tendon_rest")
    model, (q, v, tau) = strung(slack), np.random.default_rng(2).normal(size=(3, 4, 2)) * 0.5
    other = lw.Tendon({ONE: 1.0, TWO: -2.0}, stiffness=12.0, damping=0.7, rest=(-0.3, 0.2), name="t")
    values = dict(zip(names, ([12.0], [0.7], [[-0.3, 0.2]]), strict=True))
    bare = chain(2).with_gravity([0, 0, 0])
    expected = lw.forward_dynamics(bare.with_tendons(other))(q, v, tau).a
    own = lw.forward_dynamics(model)(q, v, tau).a
    for backend in ("kernel", "numpy"):
        fd = lw.forward_dynamics(model, parameters=names, backend=backend)
        np.testing.assert_allclose(fd(q, v, tau).a, own, atol=1e-11)
        np.testing.assert_allclose(fd(q, v, tau, **values).a, expected, atol=1e-11)
        mixed = {n: np.stack([model.parameters()[n], np.array(x)] * 2) for n, x in values.items()}
        np.testing.assert_allclose(fd(q, v, tau, **mixed).a[1::2], expected[1::2], atol=1e-11)
        np.testing.assert_allclose(fd(q, v, tau, **mixed).a[::2], own[::2], atol=1e-11)
    run = lw.rollout(model, dt=1e-3, steps=5, parameters=names, backend="numpy")(q[0], v[0], **values)
    there = lw.rollout(bare.with_tendons(other), dt=1e-3, steps=5, backend="numpy")(q[0], v[0])
    np.testing.assert_allclose(run.q, there.q, atol=1e-13)
    slopes, h = lw.forward_dynamics(model, parameters=names).derivatives(["tendon_stiffness"])(q[0], v[0], tau[0]), 1e-4
    ends = [fd(q[0], v[0], tau[0], tendon_stiffness=np.array([30.0 + s * h])).a for s in (1, -1)]
    np.testing.assert_allclose(slopes.da_dtendon_stiffness[:, 0], (ends[0] - ends[1]) / (2 * h), atol=1e-8)
    with pytest.raises(lw.LinkworkError, match="no tendons"):
        lw.forward_dynamics(chain(2), parameters=["tendon_rest"])
