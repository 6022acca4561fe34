"""Steps per second: rollouts beside their bare dynamics, and beside MuJoCo's mj_step.

Both sides take 1 ms steps with the same equality constraints; MuJoCo's contacts and limits are off. All contenders run
on one thread, in turns. The bare dynamics are the kernel of one step's accelerations alone: the rest of a rollout is
its overhead (integrator, failure of lanes, forces read, records written).
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from linkwork.closure.assembly import assemble
from linkwork.constraints import point
from linkwork.errors import MissingExtra, not_found
from linkwork.interop import mujoco as mujoco_map
from linkwork.io import zoo
from linkwork.io.load import load
from linkwork.kernels import Kernel
from linkwork.kernels.programs.trace import trace
from linkwork.model import Model
from linkwork.simulation.rollouts.rollout import Rollout, rollout
from linkwork.simulation.steps.constrained_step import Step
from linkwork_bench.measure import Conditions, Reading, interleave, summary
from linkwork_bench.ours import Native

DT, STEPS, BATCH = 1e-3, 100, 256
FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
METHODS: dict[str, tuple[str | None, ...]] = {"go1": (None,), "cassie": (None, "prox_bbo")}
"""The methods measured on each robot; None is the default one."""

ROBOTS = tuple(METHODS)
OVERHEADS = ("rollout", "tau over time", "every step recorded")
MORE = (
    "MuJoCo does more in its step: soft constraints with their own solver, joint friction where the file has it "
    "(twelve rows on Go1), actuators, sensors. Contacts and limits are off on both sides."
)
"""What the comparison leaves out."""


@dataclass(frozen=True)
class Contest:
    """A robot standing or hanging, the same on both sides."""

    name: str
    model: Model
    q: np.ndarray
    theirs: Callable[[Model, np.ndarray], Callable[[], None]]


def contest(name: str) -> Contest:
    """Go1 on four feet, or Cassie with its four loops in the air."""
    if name == "go1":
        tree = load("go1", base="free", passive=False)
        q = tree.neutral()
        for i in tree.topology.links:
            part = tree.links[i].joint_name.rsplit("_", 2)[-2]
            bent = {"thigh": 0.8, "calf": -1.6}.get(part)
            if bent is not None:
                q[tree.topology.q_slices[i]] = bent
        return Contest("Go1 on four feet", tree.with_constraints(*map(point, FEET)), q, _mujoco_go1)
    if name == "cassie":
        model = load("cassie.xml", passive=False)
        return Contest("Cassie, four loops", model, assemble(model, model.neutral()), _mujoco_cassie)
    raise not_found("robot for rollouts", name, ROBOTS)


class Timed:
    """A call that takes so many steps."""

    def __init__(self, run: Callable[[], Any], steps: int, conditions: Conditions) -> None:
        self.run, self.steps, self.conditions = run, steps, conditions

    def round(self, budget: float) -> Reading:
        return self.conditions.passes(self.run, self.steps, budget)


def contenders(case: Contest, method: str | None, conditions: Conditions) -> tuple[str, dict[str, Any]]:
    """The method that was chosen, and what is to be timed, by name."""
    run = rollout(case.model, dt=DT, method=method, threads=1)
    rng = np.random.default_rng(0)
    q, v = np.tile(case.q, (BATCH, 1)), 0.01 * rng.normal(size=(BATCH, case.model.nv))
    held = rng.normal(size=(BATCH, 1, case.model.nv))
    timed = rng.normal(size=(BATCH, STEPS, case.model.nv))

    def rolling(tau: np.ndarray, every: int) -> Timed:
        inputs = {"q": q, "v": v, "work": np.zeros(2), "worst": np.zeros(1), "tau": tau}
        inputs |= {"dt": np.array([DT]), "limit": np.array([1e6])}
        return Timed(lambda: run.kernel(STEPS, every, inputs, BATCH), STEPS * BATCH, conditions)

    made: dict[str, Any] = {
        "bare dynamics": Native(bare(run), [q, v, held[:, 0]], False, conditions),
        "rollout": rolling(held, STEPS),
        "tau over time": rolling(timed, STEPS),
        "every step recorded": rolling(held, 1),
        "mj_step": Timed(case.theirs(case.model, case.q), STEPS, conditions),
    }
    return run.method, made


def bare(run: Rollout) -> Kernel:
    """The accelerations of one step alone, with the same number of solver iterations."""
    step = run.step
    assert isinstance(step, Step)

    def body(xp: Any, symbol: Any) -> dict[str, Any]:
        x = {n: symbol(n, step.inputs[n]) for n in ("q", "v", "tau")}
        a, lam, _ = step.solve(xp, {"dt": xp.constant([[DT]])}, x["q"], x["v"], x["tau"])
        return {"a": a, "lam": lam}

    return Kernel(trace("dynamics", body), threads=1)


def measured(
    name: str,
    method: str | None,
    rounds: int,
    budget: float,
    conditions: Conditions,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Microseconds per step of all contenders with intervals, overheads, and the ratio."""
    case = contest(name)
    chosen, made = contenders(case, method, conditions)
    readings = {n: [r.us for r in x] for n, x in interleave(made, rounds, budget, tick).items()}
    us = {n: summary(x) for n, x in readings.items()}
    over = {
        n: summary([a / b - 1 for a, b in zip(readings[n], readings["bare dynamics"], strict=True)]).median
        for n in OVERHEADS
    }
    faster = summary([a / b for a, b in zip(readings["mj_step"], readings["rollout"], strict=True)])
    return {
        "robot": case.name,
        "method": chosen,
        "dt": DT,
        "batch": BATCH,
        "steps": STEPS,
        "us": {n: [s.median, s.low, s.high] for n, s in us.items()},
        "overhead": over,
        "times_mj_step": [faster.median, faster.low, faster.high],
    }


def save(file: Path | None, facts: dict[str, Any], found: list[dict[str, Any]]) -> None:
    """All figures so far, one JSON object per line, the machine first."""
    if file is not None:
        file.write_text("".join(json.dumps(x) + "\n" for x in (facts, *found)))


def table(found: list[dict[str, Any]]) -> Table:
    """Microseconds per step, overheads, and how many steps fit into one of MuJoCo's."""
    out = Table(title=f"steps of {DT * 1e3:g} ms, batches of {BATCH} over {STEPS} steps, one thread: us per step")
    for heading in ("robot", "method", "bare dynamics", *OVERHEADS, "mj_step", "mj_step / rollout", "steps/s"):
        out.add_column(heading, justify="left" if heading in ("robot", "method") else "right")
    for x in found:
        us = {n: median for n, (median, _, _) in x["us"].items()}
        rolled = [f"{us[n]:.3f} ({x['overhead'][n]:+.0%})" for n in OVERHEADS]
        median, low, high = x["times_mj_step"]
        out.add_row(
            x["robot"],
            x["method"],
            f"{us['bare dynamics']:.3f}",
            *rolled,
            f"{us['mj_step']:.1f}",
            f"{median:.0f} ({low:.0f} .. {high:.0f})",
            f"{1e6 / us['rollout']:,.0f}",
        )
    return out


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("mujoco", "mjcf", "measuring mj_step") from None
    return mujoco


def _stepping(model: Any, qpos: np.ndarray) -> Callable[[], None]:
    """STEPS steps of MuJoCo from this state at rest, in one native call."""
    mujoco = _mujoco()
    model.opt.timestep = DT
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data = mujoco.MjData(model)

    def run() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = qpos
        mujoco.mj_step(model, data, STEPS)

    return run


def _mujoco_cassie(model: Model, q: np.ndarray) -> Callable[[], None]:
    theirs = _mujoco().MjModel.from_xml_path(str(zoo.find("cassie.xml").path))
    return _stepping(theirs, mujoco_map(model, theirs).q_to(q))


def _mujoco_go1(model: Model, q: np.ndarray) -> Callable[[], None]:
    """From the same URDF, without meshes, on a free joint, its feet connected to the world."""
    mujoco = _mujoco()
    root = ET.parse(Path(zoo.find("go1").path)).getroot()
    for link in root.findall("link"):
        empty = [x for x in link.findall("inertial/mass/..") if float(x.find("mass").get("value", "0")) == 0]  # type: ignore[union-attr]
        for part in (*link.findall("visual"), *link.findall("collision"), *empty):
            link.remove(part)
    ET.SubElement(
        ET.SubElement(root, "mujoco"),
        "compiler",
        fusestatic="false",
        discardvisual="true",
        boundmass="1e-6",
        boundinertia="1e-9",
        balanceinertia="true",
    )
    spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    base = spec.worldbody.first_body()
    base.add_freejoint(name=model.links[1].joint_name)
    for foot in FEET:
        spec.add_equality(
            type=mujoco.mjtEq.mjEQ_CONNECT,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            name1=foot,
            name2="world",
            data=np.zeros(12),
        )
    theirs = spec.compile()
    data, qpos = mujoco.MjData(theirs), mujoco_map(model, theirs).q_to(q)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(theirs, data)
    for k, foot in enumerate(FEET):
        theirs.eq_data[k, 3:6] = data.body(foot).xpos
    return _stepping(theirs, qpos)
