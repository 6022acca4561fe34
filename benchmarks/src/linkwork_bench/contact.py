"""Steps per second with contacts and friction, beside MuJoCo's mj_step on the same scenes.

Robots stand on the ground under joint control, every state with its own push. Both sides have the same friction, joint
limits, gains and steps. Ours solves to 1e-8 of the velocities without relaxation; MuJoCo's contacts are soft, with its
default solver settings. Only feet are candidates on our side; MuJoCo looks at all shapes. One thread, in turns.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from linkwork.closure.assembly import assemble
from linkwork.constraints.contact import Contact
from linkwork.errors import ConvergenceWarning, LoadError, MissingExtra
from linkwork.interop.mujoco_ import mujoco as map_to_mujoco
from linkwork.io import zoo
from linkwork.io.load import load
from linkwork.model import Model
from linkwork.robots.scenarios import cassie_posture
from linkwork.simulation.ground.contact_points import contacts
from linkwork.simulation.ground.placing import on_ground
from linkwork.simulation.rollouts.rollout import Rollout, rollout
from linkwork.simulation.steps.contact_step_function import step
from linkwork_bench.measure import Conditions, interleave, summary
from linkwork_bench.rollouts import Timed

DT, STEPS, BATCH, COUNTED = 2e-3, 100, 512, 64
FOOT, RADIUS, FRICTION = (-0.002, 0.0, -0.213), 0.0175, 0.8
TOE, HEEL, SOLE = (-0.0457, 0.112, 0.0), (0.088, 0.0, 0.0), 0.02


@dataclass(frozen=True)
class Scene:
    """A robot, what may touch the ground, where it stands, and gains of its motors."""

    name: str
    file: str
    model: Model
    feet: Sequence[Contact]
    q: np.ndarray
    kp: float
    kd: float
    push: float

    @property
    def gains(self) -> dict[str, Any]:
        """kp and kd of joints that have motors."""
        kp, kd = np.zeros(self.model.nv), np.zeros(self.model.nv)
        for actuator in self.model.actuators:
            at = self.model.topology.v_slices[self.model.joint(next(iter(actuator.joints)))]
            kp[at], kd[at] = self.kp, self.kd
        return {"kp": kp, "kd": kd}

    @property
    def velocities(self) -> np.ndarray:
        v = np.zeros((BATCH, self.model.nv))
        v[:, :3] = self.push * np.random.default_rng(0).normal(size=(BATCH, 3))
        return v


def go2() -> Scene:
    """Go2 on four feet."""
    model = load("go2.xml")
    feet = [Contact(f"{leg}_calf", FOOT, RADIUS, FRICTION) for leg in ("FL", "FR", "RL", "RR")]
    q = model.neutral()
    q[2], q[7:] = 0.27, 4 * (0.0, 0.9, -1.8)
    return Scene("Go2 standing on four feet", "go2.xml", model, feet, q, 40.0, 2.0, 0.3)


def humanoid() -> Scene:
    """MuJoCo's humanoid on the eight ends of four capsules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = load("mujoco_humanoid.xml")
    found = contacts(model, ["foot_left", "foot_right"], friction=FRICTION)
    feet = [c for c in found if isinstance(c, Contact)]
    q = on_ground(model, model.neutral(), feet)
    return Scene("humanoid standing, 8 contacts", "mujoco_humanoid.xml", model, feet, q, 100.0, 1.0, 0.1)


def cassie() -> Scene:
    """Cassie with its four closed loops and its springs, on heels and toes."""
    model = load("cassie.xml")
    feet = [Contact(f"{side}-foot", p, SOLE, FRICTION) for side in ("left", "right") for p in (TOE, HEEL)]
    q = on_ground(model, assemble(model, cassie_posture(model)), feet)
    return Scene("Cassie with loops and springs, 4 contacts", "cassie.xml", model, feet, q, 500.0, 4.0, 0.1)


SCENES = (go2, humanoid, cassie)


def contenders(scene: Scene, conditions: Conditions) -> tuple[Rollout, dict[str, Any]]:
    """What is to be timed, by name: batches, one state, MuJoCo."""
    run = rollout(scene.model, dt=DT, contacts=scene.feet, pd=True, threads=1)
    q, v, gains = scene.q, scene.velocities, scene.gains

    def rolling(q0: np.ndarray, v0: np.ndarray) -> Timed:
        count = STEPS * (len(q0) if q0.ndim == 2 else 1)
        return Timed(lambda: run(q0, v0, target=q, steps=STEPS, every=STEPS, **gains), count, conditions)

    made = {
        "batch": rolling(np.tile(q, (BATCH, 1)), v),
        "one state": rolling(q, v[0]),
        "mj_step": Timed(_theirs(scene), STEPS, conditions),
    }
    return run, made


def iterations(scene: Scene) -> list[float]:
    """Solver iterations of all steps of some states: median, 99th percentile, most."""
    f = step(scene.model, scene.feet, pd=True)
    q, v = np.tile(scene.q, (COUNTED, 1)), scene.velocities[:COUNTED]
    control = {**scene.gains, "target": scene.q, "target_v": np.zeros(scene.model.nv)}
    impulses, counted = np.zeros((COUNTED, f.inputs["impulses"])), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(STEPS):
            after = f(q, v, np.zeros(scene.model.nv), [DT], impulses=impulses, **control)
            q, v, impulses = after.q, after.v, after.impulses
            counted.append(after.iterations)
    return [float(x) for x in np.percentile(counted, [50, 99, 100])]


def measured(rounds: int, budget: float, conditions: Conditions) -> list[dict[str, Any]]:
    """Microseconds per step, ratios, and how well the laws held, for every scene that is here."""
    return [_measured(scene, rounds, budget, conditions) for scene in _found()]


def _found() -> list[Scene]:
    """The scenes whose robots are on this machine; Go2 has to be."""
    out = [go2()]
    for make in SCENES[1:]:
        try:
            out.append(make())
        except LoadError:
            continue
    return out


def _measured(scene: Scene, rounds: int, budget: float, conditions: Conditions) -> dict[str, Any]:
    run, made = contenders(scene, conditions)
    readings = {n: [r.us for r in x] for n, x in interleave(made, rounds, budget).items()}
    us = {n: summary(x) for n, x in readings.items()}
    ratios = {
        n: summary([a / b for a, b in zip(readings["mj_step"], readings[n], strict=True)])
        for n in ("batch", "one state")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        many = np.tile(scene.q, (COUNTED, 1))
        done = run(many, scene.velocities[:COUNTED], target=scene.q, steps=STEPS, every=STEPS, **scene.gains)
    assert done.residual is not None
    return {
        "scene": scene.name,
        "dt": DT,
        "us": {n: [s.median, s.low, s.high] for n, s in us.items()},
        "times_mj_step": {n: [s.median, s.low, s.high] for n, s in ratios.items()},
        "residual": float(np.median(done.residual)),
        "worst_residual": float(np.max(done.residual)),
        "iterations": iterations(scene),
    }


def save(file: Path | None, facts: dict[str, Any], found: Sequence[dict[str, Any]]) -> None:
    """All figures, one JSON object per line, the machine first."""
    if file is not None:
        file.write_text("".join(json.dumps(x) + "\n" for x in (facts, *found)))


def table(found: Sequence[dict[str, Any]]) -> Table:
    """Microseconds per step and ratios."""
    out = Table(title=f"steps of {DT * 1e3:g} ms with contacts, one thread: us per step (batches of {BATCH})")
    headings = ("scene", "batch", "one state", "mj_step", "mj_step / batch", "mj_step / one state")
    for heading in (*headings, "residual: median, worst", "iterations: 50 %, 99 %, most"):
        out.add_column(heading, justify="left" if heading == "scene" else "right")
    for x in found:
        us = [f"{x['us'][n][0]:.2f}" for n in ("batch", "one state", "mj_step")]
        ratios = ["{:.1f} ({:.1f} .. {:.1f})".format(*x["times_mj_step"][n]) for n in ("batch", "one state")]
        laws = f"{x['residual']:.0e}, {x['worst_residual']:.0e}"
        out.add_row(x["scene"], *us, *ratios, laws, ", ".join(f"{n:g}" for n in x["iterations"]))
    return out


def _theirs(scene: Scene) -> Callable[[], None]:
    """STEPS steps of MuJoCo from the same state, in one native call; gains are springs and damping."""
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("mujoco", "mjcf", "measuring mj_step") from None
    spec = mujoco.MjSpec.from_file(str(zoo.find(scene.file).path))
    touching = {"contype": 1, "conaffinity": 1, "condim": 3}
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05], **touching)
    if not any(body.geoms for body in spec.bodies[1:]):
        for foot in scene.feet:
            sphere = {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [foot.radius, 0, 0], "mass": 0.0, **touching}
            spec.body(foot.frame).add_geom(pos=list(np.asarray(foot.offset)), friction=[foot.friction, 0, 0], **sphere)
    model = spec.compile()
    model.opt.timestep = DT
    model.actuator_gainprm[:], model.actuator_biasprm[:] = 0, 0
    driven, kp, kd = map_to_mujoco(scene.model, model), scene.gains["kp"], scene.gains["kd"]
    model.qpos_spring[:] = start = driven.q_to(scene.q)
    v = driven.v_to(scene.q, scene.velocities[0])
    for actuator in scene.model.actuators:
        joint = model.joint(next(iter(actuator.joints)))
        at = scene.model.topology.v_slices[scene.model.joint(next(iter(actuator.joints)))]
        model.jnt_stiffness[joint.id] += kp[at][0]
        model.dof_damping[joint.dofadr[0]] += kd[at][0]
    data = mujoco.MjData(model)

    def run() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = start, v
        mujoco.mj_step(model, data, STEPS)

    run()
    if not data.ncon:
        raise AssertionError(f"{scene.name}: nothing touches in MuJoCo")
    return run
