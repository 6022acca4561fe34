"""Digit, with the loops and springs of its legs, walks in place under a small controller, and its loops stay closed.

Feet are lifted in turns while the body shifts over the other one. Where a foot is to be, seen from the body, becomes
angles of its six motors by the inverse of one matrix, of the posture in which it stands. The foot in the air aims where
the body is going (Raibert, "Legged robots that balance", 1986), the other one turns against the tilt of the body.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from linkwork.simulation.placing import on_ground

SIDES = {"left": 1.0, "right": -1.0}
STIFF = {"hip-roll": (1500.0, 30.0), "hip-yaw": (800.0, 15.0), "hip-pitch": (1500.0, 30.0), "knee": (1800.0, 35.0)}
STIFF |= {"toe-a": (400.0, 8.0), "toe-b": (400.0, 8.0)}
STAND = {"hip-roll": 0.329, "hip-yaw": 0.0, "hip-pitch": 0.088, "knee": 0.008, "toe-a": 0.533, "toe-b": -0.553}
"""Angles with level feet under the hips; those of the right leg are opposite."""

PERIOD, HEIGHT, SHIFT, TRIM = 0.35, 0.06, 0.03, 0.02
"""Seconds of a step, metres that a foot is lifted by, that the body shifts, and that feet are behind it."""

TICK, SECONDS, LANES = 0.01, 2.0, 4


def digit() -> lw.Model:
    """Without dry friction in its joints, which only methods of O(m^3) an iteration solve."""
    try:
        model = lw.load("digit_v3.xml")
    except lw.LinkworkError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")
    smooth = [replace(link, passive=replace(link.passive, friction=0 * link.passive.friction)) for link in model.links]
    return replace(model, links=tuple(smooth))


def motors(model: lw.Model, side: str) -> list[int]:
    """The degrees of freedom of a leg that have motors."""
    return [model.topology.v_slices[model.joint(f"{side}-leg/{joint}")].start for joint in STIFF]


def by_foot(model: lw.Model, q: np.ndarray, side: str) -> np.ndarray:
    """Radians of a leg's motors for metres and radians of its foot, with springs at rest and loops closed."""
    error, foot = lw.constraint_error(model, backend="numpy"), f"{side}-leg/toe-roll"
    places, driven = lw.forward_kinematics(model, [foot], backend="numpy"), motors(model, side)
    rows = np.stack([error(q, e).rate for e in np.eye(model.nv)], axis=1)
    named = {i: model.links[k].name for k in model.topology.links for i in range(model.nv)[model.topology.v_slices[k]]}
    rest = [f"{side}-leg/shin", f"{side}-leg/heel-spring"]
    follow = [i for i, n in named.items() if n.startswith(f"{side}-leg") and i not in driven and n not in rest]
    v = np.zeros((model.nv, 6))
    v[driven] = np.eye(6)
    v[follow] = -np.linalg.lstsq(rows[:, follow], rows[:, driven], rcond=1e-8)[0]
    columns, here, h = [], places(q), 1e-6
    for k in range(6):
        there = places(model.integrate(q, h * v[:, k]))
        turn = there.rotations[0] @ here.rotations[0].T
        spin = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
        columns.append(np.concatenate([there.positions[0] - here.positions[0], spin]) / h)
    return np.linalg.inv(np.stack(columns, axis=1))


def pose(q: np.ndarray, v: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Roll and pitch of the body, and its velocity in the world."""
    x, y, z, w = q[3:7]
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    return float(np.arctan2(R[2, 1], R[2, 2])), float(np.arcsin(-R[2, 0])), R @ v[:3]


def feet_at(stand: np.ndarray, t: float, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
    """How far each foot is to move and turn from where it stands, seen from the body."""
    (roll, pitch, speed), (count, phase) = pose(q, v), divmod(t / PERIOD, 1.0)
    begins, wave, out = min(1.0, t / 0.5), np.sin(np.pi * phase), {}
    shift = (1.0 if count % 2 == 0 else -1.0) * SHIFT * wave * begins
    for k, side in enumerate(SIDES):
        if count % 2 == k:
            place = 0.15 * speed[:2] + 0.1 * (q[:2] - stand[:2])
            out[side] = np.array([place[0] - TRIM, place[1] + shift, HEIGHT * begins * wave, -roll, -pitch, 0.0])
        else:
            out[side] = np.array([-TRIM, shift, 0.0, 0.3 * roll + 0.05 * v[3], 0.3 * pitch + 0.05 * v[4], 0.0])
    return out


def test_digit() -> None:
    model = digit()
    q = model.neutral()
    for side, sign in SIDES.items():
        for joint, angle in STAND.items():
            q[model.q_slice(f"{side}-leg/{joint}")] = sign * angle
    corners = [(x, z) for z in (0.09, -0.12) for x in (0.04, -0.04)]
    feet = [lw.Contact(f"{s}-leg/toe-roll", (x, -0.05 * sign, z)) for s, sign in SIDES.items() for x, z in corners]
    stand = on_ground(model, np.asarray(lw.assemble(model, q)), feet, 1e-3)
    at = {s: [model.q_slice(f"{s}-leg/{joint}").start for joint in STIFF] for s in SIDES}
    by = {s: by_foot(model, stand, s) for s in SIDES}
    gains = np.zeros((2, model.nv))
    for actuator in model.actuators:
        name = next(iter(actuator.joints))
        both = STIFF.get(name.partition("leg/")[2], (300.0, 10.0))
        gains[:, model.topology.v_slices[model.joint(name)]] = np.array(both)[:, None]
    run = lw.rollout(model, contacts=feet, pd=True, record=("forces",), threads=1)
    q, v, down = np.tile(stand, (LANES, 1)), np.zeros((LANES, model.nv)), []
    v[:, :2] = 0.03 * np.random.default_rng(0).standard_normal((LANES, 2))
    for k in range(round(SECONDS / TICK)):
        target = np.tile(stand, (LANES, 1, 1))
        for lane in range(LANES):
            for side, goal in feet_at(stand, k * TICK, q[lane], v[lane]).items():
                target[lane, 0, at[side]] += by[side] @ goal
        after = run(q, v, target=target, kp=gains[0], kd=gains[1], steps=10, every=10)
        assert after.ok.all()
        assert after.converged.all()
        q, v = after.q[:, -1], after.v[:, -1]
        down.append(after.forces[:, -1, :, 2].reshape(LANES, 2, 4).sum(axis=2) > 0)
    assert (q[:, 2] > 0.9 * stand[2]).all()
    assert np.abs(q[:, :2] - stand[:2]).max() < 0.15  # in place
    assert (np.array(down).sum(axis=2) == 1).mean() > 0.3  # one foot at a time
    lifts = (np.diff(np.array(down).astype(int), axis=0) < 0).sum(axis=0)
    assert lifts.min() >= SECONDS / PERIOD / 2 - 1  # of each foot
    error = lw.constraint_error(model, backend="numpy")
    assert max(float(np.abs(error(*state)[0]).max()) for state in zip(q, v, strict=True)) < 3e-4
