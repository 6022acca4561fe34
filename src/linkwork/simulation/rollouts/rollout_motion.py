"""One motion of a rollout as a trajectory: to plot, to write and to show."""

from __future__ import annotations

import numpy as np

from linkwork.constraints.collisions import Pair
from linkwork.constraints.contact import Contact
from linkwork.errors import InputError
from linkwork.model import Model
from linkwork.simulation.records.trajectory import Event, Trajectory, column_names, column_units


def motion_of(
    model: Model,
    contacts: tuple[Contact | Pair, ...],
    t: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    tables: dict[str, np.ndarray | None],
) -> Trajectory:
    """The trajectory of q and v over time, and of what was recorded of tau, lam and forces."""
    names, units = dict(column_names(model)), dict(column_units(model))
    frames = len(t)
    lam, active, events = tables.get("lam"), np.ones((frames, len(model.constraints))), list[Event]()
    if contacts:
        forces = tables.get("forces")
        if forces is None:
            raise InputError("the forces of contacts were not recorded: make the rollout with record=('forces',)")
        names["lam"] = tuple(f"{c.name} {axis}" for c in contacts for axis in "xyz")
        names["active"] = tuple(c.name for c in contacts)
        units["lam"], units["active"] = ("N",) * len(names["lam"]), ("1",) * len(contacts)
        lam, pushes = forces.reshape(frames, -1), np.abs(forces).max(axis=-1) > 0
        active = pushes.astype(float)
        changed = np.diff(pushes.astype(int), axis=0, prepend=0)
        for k, c in zip(*np.nonzero(changed), strict=True):
            events.append(Event(float(t[k]), "touchdown" if changed[k, c] > 0 else "lift-off", contacts[c].name))
    tau = tables.get("tau")
    tau = np.zeros((frames, model.nv)) if tau is None else tau
    lam = np.zeros((frames, model.rows)) if lam is None else lam
    return Trajectory(t, q, v, tau, lam, active, names, tuple(events), model.name, units)
