"""Cassie and Digit with loops and springs walk in place under small controllers, and their loops stay closed.

Feet are lifted in turns along a line of joint angles. The leg in the air aims where the body is going (Raibert, "Legged
robots that balance", 1986), the other one turns its hip against the tilt of the body. A random search found the gains.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from linkwork.model import Limits
from linkwork.robots.scenarios import cassie_posture
from linkwork.simulation.ground.placing import on_ground

TOE, HEEL = (-0.0457, 0.112, 0.0), (0.088, 0.0, 0.0)
STIFF = {"hip-roll": (400.0, 8.0), "hip-yaw": (200.0, 4.0), "hip-pitch": (400.0, 8.0), "knee": (500.0, 10.0)}
STIFF |= {"foot": (60.0, 2.0)}
LIFT = {"hip-pitch": 1.574, "knee": -3.193, "foot": -1.547}
"""Radians of each joint for a metre that a level foot is lifted by."""

SIDES = ("left", "right")

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


def load(name: str) -> lw.Model:
    try:
        return lw.load(name)
    except lw.LinkworkError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")


def test_cassie() -> None:
    model = load("cassie.xml")
    feet = [lw.Contact(f"{side}-foot", p, 0.02, 0.8) for side in ("left", "right") for p in (TOE, HEEL)]
    stand = on_ground(model, lw.assemble(model, cassie_posture(model)), feet, 0.002)
    gains = np.zeros((2, model.nv))
    for side in ("left", "right"):
        for joint, both in STIFF.items():
            gains[:, model.topology.v_slices[model.joint(f"{side}-{joint}")]] = np.array(both)[:, None]
    run = lw.rollout(model, contacts=feet, pd=True, record=("forces",), threads=1)
    run.kernel.form(run.kernel.lanes)  # with loops that are rarely needed: this walk needs them
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


MOTORS = {"hip-roll": (1200.0, 25.0), "hip-yaw": (600.0, 12.0), "hip-pitch": (1500.0, 25.0), "knee": (1500.0, 25.0)}
MOTORS |= {"toe-a": (150.0, 4.0), "toe-b": (150.0, 4.0)}
ARM = ("shoulder-roll", "shoulder-pitch", "shoulder-yaw", "elbow")
AHEAD, APART, BELOW = -0.028, 0.13, 0.883
"""Metres from Digit's base to its soles, which are 0.063 below its ankles."""

DIGIT_PERIOD, DIGIT_HEIGHT, DIGIT_SECONDS = 0.32, 0.06, 3.0


def digit() -> lw.Model:
    """Digit with frames at its soles, without dry friction and stops of joints, which are for slower solvers."""
    model = load("digit_v3.xml")
    smooth = [
        replace(x, passive=replace(x.passive, friction=0 * x.passive.friction), limits=Limits())
        for x in model.links[1:]
    ]
    model = replace(model, links=(model.links[0], *smooth))
    for side, sign in (("left", -1.0), ("right", 1.0)):
        ahead, up = np.array([0, sign * 0.5, np.sqrt(0.75)]), np.array([0, -sign * np.sqrt(0.75), 0.5])
        sole = lw.Placement(np.column_stack([ahead, np.cross(up, ahead), up]), -0.063 * up)
        model = model.with_frame(f"{side}-sole", f"{side}-leg/toe-roll", sole)
    return model


def placed(shift: np.ndarray, side: str) -> np.ndarray:
    """The sole of a foot that is moved by (x, y, z) from where it stands, and turned by small angles about these."""
    x, y, z, a, b, c = shift
    out = np.eye(4)
    rotation = np.array([[1, -c, b], [c, 1, -a], [-b, a, 1]])
    out[:3, :3] = np.linalg.qr(rotation)[0] * np.sign(np.diag(np.linalg.qr(rotation)[1]))
    out[:3, 3] = AHEAD + x, (APART if side == "left" else -APART) + y, z - BELOW
    return out


def digit_stance(model: lw.Model) -> tuple[np.ndarray, np.ndarray]:
    """Digit on flat feet with its loops closed, and how far motors of each leg turn by a small shift of its foot."""
    springs = [f"{side}-leg/{name}" for side in SIDES for name in ("shin", "heel-spring")]
    still = springs + [f"{side}-arm/{name}" for side in SIDES for name in ARM]
    shifts = np.vstack([np.zeros(6), 0.01 * np.eye(6), -0.01 * np.eye(6)])
    soles = {f"{side}-sole": np.array([placed(s, side) for s in shifts]) for side in SIDES}
    found = lw.ik(model, {"torso/base": np.eye(4), **soles}, locked=still, attempts=1)
    assert found.converged.all()
    turned = (found.q[1:7] - found.q[7:13]) / 0.02
    rows = [[model.q_slice(f"{side}-leg/{motor}").start for motor in MOTORS] for side in SIDES]
    return found.q[0], np.array([turned[:, each].T for each in rows])


def digit_shifts(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """By how much the feet are to be moved and turned from where they stand, relative to the body."""
    roll, pitch, speed = pose(q, v)
    yaw, (count, phase) = 2 * np.arctan2(q[5], q[6]), divmod(t / DIGIT_PERIOD, 1.0)
    swings, soon, out = int(count % 2), min(1.0, phase / 0.7), np.zeros((2, 6))
    heading = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
    (x, y), (vx, vy) = heading @ q[:2], heading @ speed[:2]
    place = soon * (0.14 * vx + 0.15 * x) + 0.91 * pitch, soon * (0.125 * vy + 0.11 * y) - 0.91 * roll
    lift = (0.7 if count == 0 else 1.0) * DIGIT_HEIGHT * np.sin(np.pi * phase)
    out[swings] = *place, lift, -roll, -pitch, -0.5 * yaw
    upright = 0.91 * roll + 0.18 * v[3] - 0.9 * vy, 0.77 * pitch + 0.19 * v[4] + 1.2 * vx
    out[1 - swings] = 0, 0, 0, *upright, 0.65 * yaw
    out[:, 0] += 0.05
    return out


def test_digit() -> None:
    model = digit()
    stand, turns = digit_stance(model)
    corners = [(x, y, 0.0) for x in (0.11, -0.09) for y in (0.04, -0.04)]
    feet = [lw.Contact(f"{side}-sole", corner, friction=0.8) for side in SIDES for corner in corners]
    stand = on_ground(model, stand, feet, 0.0)
    gains = np.zeros((2, model.nv))
    stiff = {f"leg/{n}": g for n, g in MOTORS.items()} | {f"arm/{n}": (200.0, 10.0) for n in ARM}
    for side in SIDES:
        for joint, both in stiff.items():
            gains[:, model.topology.v_slices[model.joint(f"{side}-{joint}")]] = np.array(both)[:, None]
    motors = [[model.q_slice(f"{side}-leg/{motor}").start for motor in MOTORS] for side in SIDES]
    run = lw.rollout(model, contacts=feet, pd=True, record=("forces",), stabilisation=True, threads=1)
    run.kernel.form(run.kernel.lanes)  # with loops that are rarely needed: this walk needs them
    q, v = np.tile(stand, (8, 1)), np.zeros((8, model.nv))
    v[:, :2] = 0.05 * np.random.default_rng(0).standard_normal((8, 2))
    down, heights = [], []
    limits = [x.limits for x in load("digit_v3.xml").links]
    stops = list(zip(model.topology.q_slices, limits, strict=True))[1:]
    for k in range(round(DIGIT_SECONDS / TICK)):
        target = np.tile(stand, (8, 1, 1))
        for lane, state in enumerate(zip(q, v, strict=True)):
            for rows, turn, shift in zip(motors, turns, digit_shifts(k * TICK, *state), strict=True):
                target[lane, 0, rows] += turn @ shift
        after = run(q, v, target=target, kp=gains[0], kd=gains[1], steps=10, every=10)
        assert after.ok.all()
        assert after.converged.all()
        q, v = after.q[:, -1], after.v[:, -1]
        down.append(after.forces[:, -1, :, 2].reshape(8, 2, 4).sum(axis=2) > 0)
        heights.append(q[:, 2])
        assert all((q[:, at] > x.lower).all() and (q[:, at] < x.upper).all() for at, x in stops)  # far from them
    assert np.abs(np.array(heights) / stand[2] - 1).max() < 0.12
    assert np.abs(q[:, :2]).max() < 0.15  # in place
    assert (np.array(down).sum(axis=2) == 1).mean() > 0.4  # one foot at a time
    lifts = (np.diff(np.array(down).astype(int), axis=0) < 0).sum(axis=0)
    assert lifts.min() >= DIGIT_SECONDS / DIGIT_PERIOD / 2 - 1  # of each foot
    error = lw.constraint_error(model, backend="numpy")
    assert max(float(np.abs(error(*state)[0]).max()) for state in zip(q, v, strict=True)) < 1e-6
