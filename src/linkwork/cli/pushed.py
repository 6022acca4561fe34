"""In `linkwork demo`: a humanoid stands on its soles with friction, is pushed, and recovers."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console

import linkwork as lw
from linkwork.cli.arguments import table_of
from linkwork.model import Model
from linkwork.robots.mechanisms import humanoid, standing
from linkwork.simulation.simulate import Controller

PUSH, BEGINS, ENDS, DURATION = 80.0, 0.3, 0.5, 2.0
"""Newtons ahead on the torso, from when to when, and how long all takes, in seconds."""
SOLE = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.04, 0.04)]
"""The corners of a sole, from its middle, in metres."""
SWAY = 250.0
"""What ankles add against the velocity of the pelvis, Nm / (m/s)."""


def show_push(console: Console, html: Path) -> lw.Trajectory:
    """The push and what follows, as a table and a page."""
    model = humanoid(hands=False)
    q0, controller = _controlled(model)
    feet = [lw.Contact(f"{side}_foot", place, friction=0.8) for side in ("left", "right") for place in SOLE]

    def push(t: float) -> np.ndarray:
        return np.array([PUSH if BEGINS <= t < ENDS else 0.0, 0, 0, 0, 0, 0])

    console.print(
        f"\n{model!r}\non eight corners of its soles, with friction; PD in every motor, ankles against sway; "
        f"pushed with {PUSH:g} N for {ENDS - BEGINS:g} s:"
    )
    started = time.perf_counter()
    run = lw.simulate(
        model, q0, None, controller, duration=DURATION, contacts=feet, pushes={"torso": push}, progress=False
    )
    seconds = time.perf_counter() - started
    headings = ("t [s]", "pelvis ahead [mm]", "pelvis height [m]", "leans by [rad]", "corners that push")
    title = f"{DURATION:g} s simulated in {seconds:.1f} s (compiling included), 1 ms steps"
    table = table_of(title, *headings, right=headings)
    pushes = run.lam.reshape(len(run), -1, 3)[:, :, 2] > 0
    for k in range(0, len(run), 200):
        ahead, lean = 1e3 * (run.q[k, 0] - q0[0]), 2 * np.arcsin(run.q[k, 4])
        table.add_row(f"{run.t[k]:.1f}", f"{ahead:.1f}", f"{run.q[k, 2]:.3f}", f"{lean:.3f}", f"{pushes[k].sum()}")
    console.print(table)
    html.parent.mkdir(parents=True, exist_ok=True)
    lw.write_html(html, model, run, title="A humanoid that is pushed, and recovers", contacts=feet)
    console.print(f"watch it: open {html.resolve()}", highlight=False, soft_wrap=True)
    return run


def _controlled(model: Model) -> tuple[np.ndarray, Controller]:
    """Where it stands, and PD towards that; ankles act against sway.

    Legs and waist are stiff, arms soft. Ankles have little damping: a foot that lifts off has little inertia for it.
    """
    q0, t = standing(model, 0.15), model.topology
    motors = [i for i in t.links if model.links[i].actuated and model.links[i].joint.nv == 1]
    at, to = [t.v_slices[i].start for i in motors], [t.q_slices[i].start for i in motors]
    effort = np.array([model.links[i].limits.effort for i in motors])
    names = [model.links[i].joint_name for i in motors]
    stiff = np.array([any(word in name for word in ("hip", "knee", "ankle", "waist")) for name in names])
    ankle = np.array(["ankle" in name for name in names])
    pitch = [k for k, name in zip(at, names, strict=True) if name.endswith("ankle_pitch")]
    kp, kd = effort * np.where(stiff, 12.0, 1.0), effort * np.where(ankle, 0.1, np.where(stiff, 0.3, 0.03))

    def controller(time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.zeros(model.nv)
        tau[at] = kp * (q0[to] - q[to]) - kd * v[at]
        tau[pitch] += SWAY * v[0]
        return tau

    return q0, controller
