"""Cassie with its springs, and Digit, dropped onto their feet under joint control: laws hold, loops stay closed."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots.scenarios import cassie_posture
from linkwork.simulation.ground.placing import on_ground


def load(name: str) -> lw.Model:
    try:
        return lw.load(name)
    except lw.LinkworkError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")


def gains(model: lw.Model, stiff: float, damped: float) -> dict[str, np.ndarray]:
    """Of the joints that have motors."""
    driven = [model.topology.v_slices[model.joint(next(iter(a.joints)))] for a in model.actuators]
    kp, kd = np.zeros(model.nv), np.zeros(model.nv)
    for at in driven:
        kp[at], kd[at] = stiff, damped
    return {"kp": kp, "kd": kd}


def opened(model: lw.Model, q: np.ndarray, v: np.ndarray) -> float:
    return float(np.abs(lw.constraint_error(model, backend="numpy")(q, v)[0]).max())


def test_cassie() -> None:
    model = load("cassie.xml")
    toe, heel = (-0.0457, 0.112, 0), (0.088, 0, 0)
    feet = [lw.Contact(f"{side}-foot", p, 0.02, 0.8) for side in ("left", "right") for p in (toe, heel)]
    q = on_ground(model, lw.assemble(model, cassie_posture(model)), feet, 0.02)
    v = np.zeros((8, model.nv))
    v[:, :2] = 0.2 * np.random.default_rng(0).standard_normal((8, 2))
    run = lw.rollout(model, contacts=feet, pd=True, record=("forces",), threads=1)
    run.kernel.form(run.kernel.lanes)  # with loops that are rarely needed: this fall needs them
    after = run(np.tile(q, (8, 1)), v, target=q, steps=300, every=10, **gains(model, 1000.0, 8.0))
    assert after.ok.all()
    assert after.converged.all()
    assert after.forces[..., 2].sum(axis=2).max(axis=1).min() > 2 * 9.81 * model.mass  # its springs catch it
    assert (after.q[:, -1, 2] > 0.8 * q[2]).all()
    springs = [model.q_slice(f"left-{n}").start for n in ("shin", "heel-spring")]
    assert (np.abs(after.q[..., springs]).max(axis=(0, 1)) > 1e-3).all()  # they work
    assert max(opened(model, x, y) for x, y in zip(after.q[:, -1], after.v[:, -1], strict=True)) < 1e-4


def test_digit() -> None:
    model = load("digit_v3.xml")
    q = np.asarray(lw.assemble(model, model.neutral()))
    feet = [
        lw.Contact(f"{side}-leg/toe-roll", (x, 0.05, 0), friction=0.8)
        for side in ("left", "right")
        for x in (0.1, -0.1)
    ]
    q = on_ground(model, q, feet, 1e-4)
    v, tau, start = np.zeros(model.nv), np.zeros(model.nv), q
    v[2] = -1.0
    step = lw.step(model, feet, pd=True, backend="numpy")
    impulses, most = np.zeros(step.inputs["impulses"]), 0.0
    control = {**gains(model, 1000.0, 8.0), "target": start, "target_v": np.zeros(model.nv)}
    for _ in range(25):
        after = step(q, v, tau, [1e-3], impulses=impulses, **control)
        assert after.converged
        q, v, impulses = after.q, after.v, after.impulses
        most = max(most, float(after.forces.reshape(4, 3)[:, 2].sum()))
    assert most > 9.81 * model.mass  # it is caught
    assert opened(model, q, v) < 1e-5
