"""The end of `linkwork demo`: a thousand quadrupeds fall onto the ground, some of them in one replay."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

import linkwork as lw
from linkwork.cli.arguments import table_of
from linkwork.model import Model
from linkwork.robots.mechanisms import quadruped
from linkwork.simulation.records.trajectory import column_names, column_units

MANY, STEPS, EVERY = 1000, 1000, 20
SIDE, APART = 6, 1.2
"""Of the quadrupeds that are drawn: a square of so many by so many, and the metres between them."""
BENT = (0.0, 0.7, -1.4)
"""The angles of hip, thigh and knee of each leg, rad."""


def show_fall(console: Console, html: Path) -> None:
    """A second of free fall, impact and standing, with Coulomb friction, as a table and a page."""
    model = quadruped()
    feet = [lw.Contact(name, friction=0.6) for name in model.frames if name.endswith("foot")]
    q0, v0 = _thrown(model, [c.frame for c in feet])
    console.print(
        f"\n{model!r}\n{MANY} of them, thrown onto the ground; contacts with friction, joints under PD control:"
    )
    started = time.perf_counter()
    run = lw.rollout(model, contacts=feet, pd=True, record=("forces",))
    hold = partial(run, target=crouching(model), kp=80.0, kd=3.0)
    hold(q0[:1], v0[:1], steps=1, every=1)
    ready = time.perf_counter()
    fall = hold(q0, v0, steps=STEPS, every=EVERY)
    took = time.perf_counter() - ready
    assert fall.forces is not None
    assert fall.residual is not None
    headings = ("t [s]", "height [m]", "feet that push", "the ground carries [of their weight]")
    each = f"{took / (MANY * STEPS) * 1e6:.2f} us each, compiled in {ready - started:.1f} s"
    title = f"{MANY} x {STEPS} steps of 1 ms in {took:.1f} s ({each})"
    table = table_of(title, *headings, right=headings)
    weight = model.mass * float(np.linalg.norm(model.gravity))
    for k in range(4, len(fall.t), 9):
        push = fall.forces[:, k, :, 2]
        carried = np.median(push.sum(axis=1)) / weight
        row = (fall.t[k], np.median(fall.q[:, k, 2]), (push > 0).sum(axis=1).mean(), carried)
        table.add_row(*(f"{x:.2f}" for x in row))
    console.print(table)
    fine = np.mean(fall.residual < 1e-6)
    console.print(f"in {fine:.1%} of the falls the laws of contact hold to 1e-6 of the velocities in every step")
    _draw(console, model, fall, html)


def crouching(model: Model) -> np.ndarray:
    """With bent legs."""
    q = model.neutral()
    q[7:] = 4 * BENT
    return q


def _thrown(model: Model, feet: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Configurations above the ground, turned and thrown at random."""
    rng, turn = np.random.default_rng(0), np.zeros((MANY, model.nv))
    turn[:, 3:6] = 0.3 * rng.normal(size=(MANY, 3))
    q = model.integrate(np.tile(crouching(model), (MANY, 1)), turn)
    low = lw.forward_kinematics(model, feet)(q).positions[..., 2].min(axis=-1)
    q[:, 2] += 0.15 - low
    v = np.zeros((MANY, model.nv))
    v[:, :3] = 0.5 * rng.normal(size=(MANY, 3))
    return q, v


def _draw(console: Console, model: Model, fall: lw.RolloutResult, html: Path) -> None:
    """Those of a square, as one mechanism."""
    herd = lw.combine(*(lw.Part(model, prefix=f"{k}/") for k in range(SIDE * SIDE)), name="a herd of quadrupeds")
    q = np.array(fall.q[: SIDE * SIDE])
    for k in range(SIDE * SIDE):
        q[k, :, :2] += APART * (np.array(divmod(k, SIDE)) - (SIDE - 1) / 2)
    frames = np.concatenate(list(q), axis=1)
    still = np.zeros((len(fall.t), herd.nv))
    none = np.zeros((len(fall.t), 0))
    motion = lw.Trajectory(
        fall.t, frames, still, still, none, none, column_names(herd), (), herd.name, column_units(herd)
    )
    html.parent.mkdir(parents=True, exist_ok=True)
    lw.write_html(html, herd, motion, title=f"{SIDE * SIDE} of {MANY} quadrupeds, falling")
    size = html.stat().st_size / 1e6
    console.print(
        f"watch {SIDE * SIDE} of them: open {html.resolve()} ({size:.2f} MB)", highlight=False, soft_wrap=True
    )
