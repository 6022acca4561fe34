"""Simulation with a controller in Python and contacts with friction: a loop over `lw.step`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from linkwork.constraints.collisions import Pair
from linkwork.constraints.contact import Contact, Surface
from linkwork.constraints.meshes import mesh_slots
from linkwork.model import Model
from linkwork.simulation.ground.mesh_places import find_contacts
from linkwork.simulation.records.progress import bar
from linkwork.simulation.records.trajectory import Event, Trajectory, column_names, column_units
from linkwork.simulation.steps.contact_step_function import step
from linkwork.simulation.steps.simulation_step import driving


class Scene(NamedTuple):
    """A model, what may touch, and how its steps are computed."""

    model: Model
    contacts: Sequence[Contact | Pair]
    ground: Surface
    method: str | None
    backend: str
    actuators: bool


def simulate_contacts(
    scene: Scene,
    q: np.ndarray,
    v: np.ndarray,
    drive: Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    dt: float,
    steps: int,
    every: int,
    progress: bool | None,
) -> Trajectory:
    """The motion under `drive(t, q, v)`: what drives the mechanism, and joint forces for the record.

    Contact forces are recorded as `lam`, in world axes, and where a contact pushes as `active`.
    """
    model, contacts = scene.model, scene.contacts
    options = {"ground": scene.ground, "method": scene.method, "backend": scene.backend}
    advance = step(model, contacts, actuators=scene.actuators, **options)  # type: ignore[arg-type]
    rows, events, pushed = [], [], np.zeros(len(contacts), dtype=bool)
    impulses, h = np.zeros(advance.inputs["impulses"]), np.array([dt])
    find = find_contacts(model, contacts, scene.backend) if mesh_slots(contacts) else None
    with bar(progress, f"simulating {model.name}", steps) as tick:
        for k in range(steps + 1):
            driven, tau = drive(k * dt, q.copy(), v.copy())
            found = {} if find is None else {"places": find(q)}
            after = advance(q, v, dt=h, impulses=impulses, **driving(model, driven), **found)
            pushes = np.asarray(after.impulses[2 : 3 * len(contacts) : 3]) > 0
            for i in np.flatnonzero(pushes != pushed):
                events.append(Event(k * dt, "touchdown" if pushes[i] else "lift-off", contacts[int(i)].name))
            if k % every == 0:
                rows.append((np.array(k * dt), q, v, tau, after.forces, pushes.astype(float)))
            if k < steps:
                q, v, impulses, pushed = after.q, after.v, after.impulses, pushes
            tick(k)
    t, at, speed, tau, pushing, active = (np.array(x) for x in zip(*rows, strict=True))
    names, units = dict(column_names(model)), dict(column_units(model))
    names["lam"] = tuple(f"{c.name} {axis}" for c in contacts for axis in "xyz")
    names["active"] = tuple(c.name for c in contacts)
    units["lam"], units["active"] = ("N",) * len(names["lam"]), ("1",) * len(contacts)
    return Trajectory(t, at, speed, tau, pushing, active, names, tuple(events), model.name, units)
