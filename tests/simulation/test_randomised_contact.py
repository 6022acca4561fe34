"""Steps with contacts take parameters: each lane another robot, the same as that robot's own kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots.mechanisms import quadruped


def robot() -> lw.Model:
    """A quadruped with servos in its legs."""
    model = quadruped()
    joints = [l.joint_name for l in model.links[1:] if l.joint.nv == 1]
    return model.with_actuators(*(lw.PositionServo(j, kp=40.0, kd=1.0) for j in joints))


def feet(model: lw.Model) -> list[lw.Contact]:
    names = [n for n in (*model.frames, *(l.name for l in model.links)) if "foot" in n.lower()]
    return [lw.Contact(n) for n in names[:4]]


def changed(model: lw.Model, inertia: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> lw.Model:
    """The model with these parameters as its own."""
    for link, x in zip(model.links[1:], inertia, strict=True):
        model = model.with_inertia(link.name, lw.BodyInertia.from_parameters(x))
    servos = [replace(a, gain=g, bias=b) for a, g, b in zip(model.actuators, gain, bias, strict=True)]
    return model.without_actuators().with_actuators(*servos)


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_each_lane_is_a_robot_of_its_own(backend: str) -> None:
    model, rng, B = robot(), np.random.default_rng(0), 3
    q = model.neutral()
    q[2] = 0.35
    u = np.array([q[model.topology.q_slices[model.joint(next(iter(a.joints)))]][0] for a in model.actuators])
    own = model.parameters()
    mass = rng.uniform(0.8, 1.3, (B, model.nlinks, 1))
    gains = rng.uniform(0.7, 1.4, (B, model.nu, 1))
    given = {"inertia": own.inertia * mass, "gain": own.gain * gains, "bias": own.bias * gains}
    steps = 20 if backend == "kernel" else 4
    run = lw.rollout(
        model, dt=2e-3, contacts=feet(model), actuators=True, parameters=tuple(given), steps=steps, backend=backend
    )
    found = run(np.tile(q, (B, 1)), np.zeros((B, model.nv)), u=u, friction=np.full((B, len(feet(model))), 0.6), **given)
    for b in range(B):
        alone = changed(model, *(given[n][b] for n in ("inertia", "gain", "bias")))
        right = lw.rollout(alone, dt=2e-3, contacts=feet(model), actuators=True, steps=steps, backend="numpy")(
            q, np.zeros(model.nv), u=u, friction=np.full(len(feet(model)), 0.6)
        )
        # the momentum of turning bodies is split with the model's own masses: equal to the order of the step
        np.testing.assert_allclose(found.q[b], right.q, atol=1e-5)
        assert not np.allclose(found.q[b], found.q[(b + 1) % B], atol=1e-5)


def test_parameters_in_one_step() -> None:
    model = robot()
    q, v = model.neutral(), np.full(model.nv, 0.1)
    step = lw.step(model, feet(model), actuators=True, parameters=("inertia", "damping"))
    plain = lw.step(model, feet(model), actuators=True)
    u = np.zeros(model.nu)
    expected = plain(q, v, u, [1e-3]).v
    rounding = 1e-12 * np.abs(expected).max()  # joints turn with 21 rad/s, the base with 5e-6
    np.testing.assert_allclose(step(q, v, u, [1e-3]).v, expected, rtol=1e-9, atol=rounding)
    heavy = step(q, v, u, [1e-3], inertia=2 * model.parameters().inertia, damping=np.ones(model.nv)).v
    assert np.abs(heavy - plain(q, v, u, [1e-3]).v).max() > 1e-4
    with pytest.raises(lw.LinkworkError, match="targets are those of constraint rows"):
        lw.step(model, feet(model), parameters=("targets",))
