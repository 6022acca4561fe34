"""Steps per second with contacts and friction, beside MuJoCo's mj_step on the same scene.

Go2 (go2.xml) stands on the ground under joint control, every state with its own push. Both sides have the same
friction, joint limits, gains and steps. Ours solves to 1e-8 of the velocities without relaxation; MuJoCo's contacts are
soft, with its default solver settings. One thread, in turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from linkwork.constraints.contact import Contact
from linkwork.errors import MissingExtra
from linkwork.io import zoo
from linkwork.io.load import load
from linkwork.model import Model
from linkwork.simulation.rollout import Rollout, rollout
from linkwork_bench.measure import Conditions, interleave, summary
from linkwork_bench.rollouts import Timed

DT, STEPS, BATCH = 2e-3, 100, 512
HEIGHT, POSTURE = 0.27, (0.0, 0.9, -1.8)
FOOT, RADIUS, FRICTION = (-0.002, 0.0, -0.213), 0.0175, 0.8
KP, KD = 40.0, 2.0


def scene() -> tuple[Model, list[Contact], np.ndarray]:
    """Go2, its feet, and the configuration in which it stands."""
    model = load("go2.xml")
    feet = [Contact(f"{leg}_calf", FOOT, RADIUS, FRICTION) for leg in ("FL", "FR", "RL", "RR")]
    q = model.neutral()
    q[2], q[7:] = HEIGHT, 4 * POSTURE
    return model, feet, q


def contenders(conditions: Conditions) -> tuple[Rollout, dict[str, Any]]:
    """What is to be timed, by name: batches, one state, MuJoCo."""
    model, feet, q = scene()
    run = rollout(model, dt=DT, contacts=feet, pd=True, threads=1)
    v = np.zeros((BATCH, model.nv))
    v[:, :3] = 0.3 * np.random.default_rng(0).normal(size=(BATCH, 3))
    many = np.tile(q, (BATCH, 1))

    def rolling(q0: np.ndarray, v0: np.ndarray) -> Timed:
        count = STEPS * (len(q0) if q0.ndim == 2 else 1)
        return Timed(lambda: run(q0, v0, target=q, kp=KP, kd=KD, steps=STEPS, every=STEPS), count, conditions)

    made = {
        "batch": rolling(many, v),
        "one state": rolling(q, v[0]),
        "mj_step": Timed(_theirs(v[0]), STEPS, conditions),
    }
    return run, made


def measured(rounds: int, budget: float, conditions: Conditions) -> dict[str, Any]:
    """Microseconds per step with intervals, the ratios, and how well the laws held."""
    run, made = contenders(conditions)
    readings = {n: [r.us for r in x] for n, x in interleave(made, rounds, budget).items()}
    us = {n: summary(x) for n, x in readings.items()}
    ratios = {
        n: summary([a / b for a, b in zip(readings["mj_step"], readings[n], strict=True)])
        for n in ("batch", "one state")
    }
    model, _, q = scene()
    worst = run(np.tile(q, (64, 1)), np.zeros(model.nv), target=q, kp=KP, kd=KD, steps=STEPS, every=STEPS).residual
    assert worst is not None
    return {
        "scene": "Go2 standing on four feet",
        "dt": DT,
        "us": {n: [s.median, s.low, s.high] for n, s in us.items()},
        "times_mj_step": {n: [s.median, s.low, s.high] for n, s in ratios.items()},
        "residual": float(np.max(worst)),
    }


def save(file: Path | None, facts: dict[str, Any], found: dict[str, Any]) -> None:
    """All figures, one JSON object per line, the machine first."""
    if file is not None:
        file.write_text("".join(json.dumps(x) + "\n" for x in (facts, found)))


def table(found: dict[str, Any]) -> Table:
    """Microseconds per step and ratios."""
    out = Table(title=f"steps of {DT * 1e3:g} ms with contacts, one thread: us per step (batches of {BATCH})")
    for heading in ("scene", "batch", "one state", "mj_step", "mj_step / batch", "mj_step / one state", "residual"):
        out.add_column(heading, justify="left" if heading == "scene" else "right")
    us = [f"{found['us'][n][0]:.2f}" for n in ("batch", "one state", "mj_step")]
    ratios = ["{:.1f} ({:.1f} .. {:.1f})".format(*found["times_mj_step"][n]) for n in ("batch", "one state")]
    out.add_row(found["scene"], *us, *ratios, f"{found['residual']:.0e}")
    return out


def _theirs(v: np.ndarray) -> Callable[[], None]:
    """STEPS steps of MuJoCo from the same state, in one native call."""
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("mujoco", "bench", "measuring mj_step") from None
    spec = mujoco.MjSpec.from_file(str(zoo.find("go2.xml").path))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    for actuator in spec.actuators:
        actuator.gainprm[0], actuator.biasprm[1], actuator.biasprm[2] = KP, -KP, -KD
    model = spec.compile()
    model.opt.timestep = DT
    data = mujoco.MjData(model)

    def run() -> None:
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.qvel[:3] = v[:3]
        mujoco.mj_step(model, data, STEPS)

    return run
