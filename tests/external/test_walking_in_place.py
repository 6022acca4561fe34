"""Cassie with loops and springs walks in place under a small controller, and its loops stay closed.

Feet are lifted in turns along a line of joint angles. The leg in the air aims where the body is going (Raibert, "Legged
robots that balance", 1986), the other one turns its hip against the tilt of the body. A random search found the gains.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots.scenarios import cassie_posture
from linkwork.simulation.placing import on_ground

TOE, HEEL = (-0.0457, 0.112, 0.0), (0.088, 0.0, 0.0)
STIFF = {"hip-roll": (400.0, 8.0), "hip-yaw": (200.0, 4.0), "hip-pitch": (400.0, 8.0), "knee": (500.0, 10.0)}
STIFF |= {"foot": (60.0, 2.0)}
LIFT = {"hip-pitch": 1.574, "knee": -3.193, "foot": -1.547}
"""Radians of each joint for a metre that a level foot is lifted by."""

PERIOD, HEIGHT, PUSH, TRIM = 0.2, 0.11, 0.045, 0.067
"""Seconds of a step, metres that a foot is lifted by and the other leg becomes longer by, radians of both hips."""

TICK, SECONDS = 0.01, 2.0


def pose(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Roll and pitch of the body, and its velocity in the world."""
    x, y, z, w = q[3:7]
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    return np.arctan2(R[2, 1], R[2, 2]), np.arcsin(-R[2, 0]), R @ v[:3]


def aim(model: lw.Model, stand: np.ndarray, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The joint angles that motors are to have."""
    roll, pitch, speed = pose(q, v)
    target, (count, phase) = stand.copy(), divmod(t / PERIOD, 1.0)
    for side, swings in (("left", count % 2 == 0), ("right", count % 2 == 1)):
        lift = (HEIGHT if swings else -PUSH) * np.sin(np.pi * phase)
        if swings:
            tilt = (0.494 * speed[0] + 0.3 * q[0]) / 0.86 + pitch
            lean = (0.475 * speed[1] + 0.162 * q[1]) / 0.95 - roll
        else:
            tilt, lean = -0.112 * pitch - 0.05 * v[4], 0.725 * roll + 0.11 * v[3]
        for joint, turn in LIFT.items():
            target[model.q_slice(f"{side}-{joint}")] += lift * turn
        target[model.q_slice(f"{side}-hip-pitch")] += tilt + TRIM
        target[model.q_slice(f"{side}-foot")] -= tilt if swings else 0.0
        target[model.q_slice(f"{side}-hip-roll")] += lean
    return target


def test_cassie() -> None:
    try:
        model = lw.load("cassie.xml")
    except lw.LinkworkError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")
    feet = [lw.Contact(f"{side}-foot", p, 0.02, 0.8) for side in ("left", "right") for p in (TOE, HEEL)]
    stand = on_ground(model, lw.assemble(model, cassie_posture(model)), feet, 0.002)
    gains = np.zeros((2, model.nv))
    for side in ("left", "right"):
        for joint, both in STIFF.items():
            gains[:, model.topology.v_slices[model.joint(f"{side}-{joint}")]] = np.array(both)[:, None]
    run = lw.rollout(model, contacts=feet, pd=True, record=("forces",), threads=1)
    q, v = np.tile(stand, (8, 1)), np.zeros((8, model.nv))
    v[:, :2] = 0.05 * np.random.default_rng(0).standard_normal((8, 2))
    down = []
    for k in range(round(SECONDS / TICK)):
        target = np.array([[aim(model, stand, k * TICK, *state)] for state in zip(q, v, strict=True)])
        after = run(q, v, target=target, kp=gains[0], kd=gains[1], steps=10, every=10)
        assert after.ok.all()
        assert after.converged.all()
        q, v = after.q[:, -1], after.v[:, -1]
        down.append(after.forces[:, -1, :, 2].reshape(8, 2, 2).sum(axis=2) > 0)
    assert (q[:, 2] > 0.9 * stand[2]).all()
    assert np.abs(q[:, :2]).max() < 0.1  # in place
    single = np.array(down).sum(axis=2) == 1
    assert single.mean() > 0.5  # one foot at a time
    lifts = (np.diff(np.array(down).astype(int), axis=0) < 0).sum(axis=0)
    assert lifts.min() >= SECONDS / PERIOD / 2 - 1  # of each foot
    error = lw.constraint_error(model, backend="numpy")
    assert max(float(np.abs(error(*state)[0]).max()) for state in zip(q, v, strict=True)) < 3e-4
