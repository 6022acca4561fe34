"""Steps of environments a second, with observations, rewards and resets, beside MuJoCo's.

- Walking of `linkwork.learn`, with Go2 if its file is found, and Standing, which has closed loops;
- the same Go2 by `mujoco.batch`, MuJoCo's own way to step many simulations: the same time steps, gains, starts,
  observations, rewards and ends of episodes, in NumPy;
- `Ant-v5` of Gymnasium, its usual quadruped, as `gymnasium.make_vec` makes it: many environments, one after the other.

A step of an environment is several time steps; both are stated. Actions are random. One thread, in turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from linkwork.errors import LinkworkError, MissingExtra
from linkwork.io import zoo
from linkwork.learn.environments import GO2, QUADRUPED, Standing, Walking
from linkwork_bench.measure import Conditions, interleave, summary
from linkwork_bench.rollouts import Timed

LANES, ANTS, STEPS = 256, 8, 20
"""Robots in our environments and in those of Gymnasium, which step them one after the other; steps in a reading."""


def measured(rounds: int, budget: float, conditions: Conditions) -> list[dict[str, Any]]:
    """Of each environment microseconds per step of one robot, with intervals, and per time step."""
    made, substeps = contenders(conditions)
    readings = {n: [r.us for r in x] for n, x in interleave(made, rounds, budget).items()}
    found = []
    for name, x in readings.items():
        s = summary(x)
        found.append(
            {
                "environment": name,
                "substeps": substeps[name],
                "us": [s.median, s.low, s.high],
                "steps_per_second": 1e6 / s.median,
                "us_per_time_step": s.median / substeps[name],
            }
        )
    return found


def contenders(conditions: Conditions) -> tuple[dict[str, Any], dict[str, int]]:
    """What is to be timed, by name, and the time steps in a step of each."""
    made, substeps = {}, {}

    def add(name: str, env: Any, count: int, inner: int) -> None:
        made[name], substeps[name] = Timed(_stepping(env), STEPS * count, conditions), inner

    one = {"threads": 1}
    robot = GO2 if _there("go2.xml") else QUADRUPED
    walking = Walking(LANES, robot=robot, simulation=one, autoreset_mode="SameStep")
    add(f"{robot} walking, Linkwork", walking, LANES, walking.substeps)
    if robot == GO2:
        add("go2 walking, mujoco.batch", MuJoCoWalking(LANES), LANES, walking.substeps)
    standing = Standing(LANES, simulation=one, autoreset_mode="SameStep")
    add(f"{standing.model.name} standing, Linkwork", standing, LANES, standing.substeps)
    ants = _ants()
    add("Ant-v5, Gymnasium", ants, ANTS, int(ants.envs[0].unwrapped.frame_skip))
    return made, substeps


def _stepping(env: Any) -> Callable[[], None]:
    """STEPS steps with random actions."""
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, *env.action_space.shape)).astype(np.float32)

    def run() -> None:
        for action in actions:
            env.step(action)

    return run


def _there(file: str) -> bool:
    try:
        return zoo.find(file) is not None
    except LinkworkError:
        return False


def _ants() -> Any:
    import gymnasium

    try:
        return gymnasium.make_vec("Ant-v5", num_envs=ANTS, vectorization_mode="sync")
    except gymnasium.error.DependencyNotInstalled:
        raise MissingExtra("mujoco", "mjcf", "measuring Gymnasium's own environments") from None


class MuJoCoWalking(Walking):
    """Walking with Go2, whose time steps are made by `mujoco.batch`; all else is the same code."""

    def __init__(self, num_envs: int) -> None:
        import mujoco
        from mujoco.batch import Batch

        super().__init__(num_envs, robot=GO2, autoreset_mode="SameStep")
        spec = mujoco.MjSpec.from_file(str(zoo.find("go2.xml").path))
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
        kp, kd = (float(self.gains[n].max()) for n in ("kp", "kd"))
        for actuator in spec.actuators:
            actuator.gainprm[0], actuator.biasprm[1], actuator.biasprm[2] = kp, -kp, -kd
        model = spec.compile()
        model.opt.timestep = self.run.dt
        self.batch = Batch(model, num_envs, nthread=1)
        self.qpos, self.qvel, self.ctrl = (self.batch.bind(n) for n in ("qpos", "qvel", "ctrl"))
        feet = [i for i in range(model.nbody) if model.body(i).name.endswith("_calf")]
        self.forces, self.feet = self.batch.bind("cfrc_ext"), feet

    def _begin(self, lanes: np.ndarray) -> None:
        super()._begin(lanes)
        q, v = self.q[lanes], self.v[lanes]
        if hasattr(self, "batch"):
            self.qpos[lanes], self.qvel[lanes] = q, v
            self.qpos[lanes, 3:7] = q[:, [6, 3, 4, 5]]

    def _advance(self) -> None:
        self.ctrl[:] = self.stance[self.motors] + self.reach * self.actions
        self.batch.step(nstep=self.substeps)
        self.q, self.v = self.qpos.copy(), self.qvel.copy()
        self.q[:, 3:7] = self.qpos[:, [4, 5, 6, 3]]
        pushed = np.zeros((self.num_envs, 1, len(self.feet), 3))
        pushed[:, 0, :, 2] = self.forces[:, self.feet, 5]
        self.result = _Stepped(pushed, np.isfinite(self.q).all(axis=1))


class _Stepped:
    """What environments read of a result."""

    def __init__(self, forces: np.ndarray, ok: np.ndarray) -> None:
        self.forces, self.ok = forces, ok


def save(file: Path | None, facts: dict[str, Any], found: list[dict[str, Any]]) -> None:
    """All figures, one JSON object per line, the machine first."""
    if file is not None:
        file.write_text("".join(json.dumps(x) + "\n" for x in (facts, *found)))


def table(found: list[dict[str, Any]]) -> Table:
    """Microseconds and steps a second."""
    out = Table(title=f"environments with observations, rewards and resets, one thread ({LANES} robots, {ANTS} ants)")
    for heading in ("environment", "us per step", "steps a second", "time steps in it", "us per time step"):
        out.add_column(heading, justify="left" if heading == "environment" else "right")
    for x in found:
        us = "{:.1f} ({:.1f} .. {:.1f})".format(*x["us"])
        inner = f"{x['us_per_time_step']:.2f}"
        out.add_row(x["environment"], us, f"{x['steps_per_second']:,.0f}", str(x["substeps"]), inner)
    return out
