"""A mechanism that a page simulates: its module, and what the page must know.

The module is WebAssembly, and has two functions: a time step, and where links are.

The step is that of `lw.rollout`: gravity and joint damping are inputs, so are forces on links, by which the page drags
them. Loops have a stabilisation, so that they stay closed for as long as somebody plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.constraints import Stabilisation
from linkwork.constraints.collisions import Pair
from linkwork.constraints.contact import Contact, Ground, Surface
from linkwork.errors import InputError
from linkwork.kernels.export.wasm import Module, wasm_module
from linkwork.kernels.programs.trace import Symbol, trace
from linkwork.model import Model, Motion
from linkwork.simulation.rollouts.rollout import Rollout, rollout
from linkwork.viewer.states import closure_ends, spatial_constraints

TIME_STEP = 1e-3
"""Seconds."""

HELD = Stabilisation(period=0.1)
"""Of loops. Stiffer ones, as the 0.03 s of rollouts with steps of a millisecond, fail where light links are dragged."""

STRENGTH = 30.0
"""The largest force that drags, in newtons per kilogram of the robot."""

SWAY = 0.5
"""The period, in seconds, with which the whole robot would sway on the spring that drags it."""

SLIDES, TURNS = ("prismatic", "translation"), ("revolute", "spherical", "spherical_zyx", "universal")
"""Joints all of whose forces are forces, and torques."""


class Live(NamedTuple):
    """The module of a mechanism, what drives it, and its state at the start."""

    module: Module
    run: Rollout
    q: np.ndarray
    ground: Surface | None
    contacts: dict[int, Contact]  # those with the ground, which are drawn, by their number


def live(
    model: Model, q: np.ndarray, dt: float | None, contacts: Sequence[Contact | Pair] | None, ground: Surface | None
) -> Live:
    """The mechanism, at rest at q."""
    if q.shape != (model.nq,):
        raise InputError(f"a live page starts from one configuration ({model.nq},), not from {q.shape}")
    if not model.nv:
        raise InputError(f"'{model.name}' has no joint that moves: there is nothing to simulate live")
    if ground is not None and not isinstance(ground, Ground):
        raise InputError("the ground of a live page is a plane (lw.Ground)")
    run = rollout(
        model,
        dt=TIME_STEP if dt is None else dt,
        stabilisation=HELD,
        contacts=contacts,
        ground=ground,
        record=() if contacts is None else ("forces",),
        parameters=("gravity", "damping"),
        pushes=[model.links[i].name for i in model.topology.links],
    )
    touching = {k: c for k, c in enumerate(contacts or ()) if isinstance(c, Contact)}
    under = None if contacts is None else ground or Ground()
    program = trace("poses", lambda xp, symbol: _poses(model, [*touching.values()], under, xp, symbol))
    return Live(wasm_module({"step": run.step.traced, "poses": program}), run, q, under, touching)


def _poses(
    model: Model, contacts: Sequence[Contact], ground: Surface | None, xp: Ops, symbol: Symbol
) -> dict[str, Array]:
    """What is drawn of a configuration.

    Axes (as columns, one after the other) and origins of links, the centre of mass, ends of constraints, and the places
    at which contacts touch.
    """
    motion = Motion(model, symbol("q", model.nq), xp.zeros(model.nv), xp)
    poses, empty = motion.poses, xp.zeros(0)
    moments = [l.inertia.mass * (p + R @ xp.constant(l.inertia.com)) for l, (R, p) in zip(model.links, poses)]
    com = poses[-1][1] if not model.mass > 0 else (1 / model.mass) * sum(moments[1:], moments[0])

    def at(name: str, place: Array | None = None) -> Array:
        frame = model.frame(name)
        R, p = poses[frame.link]
        inside = xp.constant(frame.placement.p)
        return p + R @ (inside if place is None else inside + xp.constant(frame.placement.R) @ place)

    ends = [at(name) for c in spatial_constraints(model) for name in closure_ends(c)]
    touches = []
    for c in contacts:
        assert ground is not None
        frame, n = model.frame(c.frame), ground.under(at(c.frame), xp).axes[:, 2:3]
        R = poses[frame.link][0] @ xp.constant(frame.placement.R)
        touches.append(at(c.frame, c.place(R.T @ n, xp)) - c.radius * n)
    return {
        "rotations": xp.vstack([R[:, k : k + 1] for R, _ in poses for k in range(3)]),
        "positions": xp.vstack([p for _, p in poses]),
        "com": com,
        "ends": xp.vstack([empty, *ends]),
        "touches": xp.vstack([empty, *touches]),
    }


def described(of: Live, size: float) -> dict[str, Any]:
    """What the page needs to run the module: ports, inputs at the start, and what to offer."""
    step, model = of.run.step, of.run.model
    given = {"q": of.q, "dt": np.array([of.run.dt]), **step.defaults, **step.settings}
    inputs = {n: given.get(n, np.zeros(size)) for n, (_, size) in of.module.ports.items() if not n.endswith("'")}
    free = [i for i in model.topology.links if model.links[i].joint.kind == "free"]
    return {
        "ports": of.module.ports,
        "inputs": {n: np.asarray(x, dtype=float).ravel().tolist() for n, x in inputs.items()},
        "state": [n for n in (*step.state, *step.carried) if n + "'" in of.module.ports],
        "warm": [n for n in step.carried if n not in step.inputs],
        "dt": of.run.dt,
        "pushed": list(model.topology.links),
        "stiffness": model.mass * (2 * np.pi / SWAY) ** 2,
        "damping": 2 * model.mass * (2 * np.pi / SWAY),
        "mass": model.mass,
        "strength": STRENGTH * model.mass,
        "travels": bool(free),
        "rubs": 0.05 * model.mass * size**2,
        "joints": _joints(model, size),
        "touching": list(of.contacts),
    }


def _joints(model: Model, size: float) -> list[dict[str, Any]]:
    """The joints that the page offers to drive: entry of tau, name, unit, and the largest force."""
    out = []
    weight = max(float(np.linalg.norm(model.gravity)), 1.0) * model.mass
    for i in model.topology.links:
        joint, effort = model.links[i].joint, model.links[i].limits.effort
        for k in range(joint.nv if joint.kind != "free" else 0):
            unit = "N" if joint.kind in SLIDES else "Nm" if joint.kind in TURNS else ""
            most = effort if 0 < effort < np.inf else 0.25 * weight * (1.0 if unit == "N" else size)
            name = model.links[i].joint_name + (f" {k}" if joint.nv > 1 else "")
            at = model.topology.v_slices[i].start + k
            out.append({"at": at, "name": name, "unit": unit, "most": float(f"{most:.2g}")})
    return out
