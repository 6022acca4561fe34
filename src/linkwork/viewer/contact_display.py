"""Contacts of a motion, for replays: where they are, their forces and cones, and whether they slip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.collisions import Pair
from linkwork.constraints.contact import Contact, Surface, Touch
from linkwork.constraints.meshes import mesh_slots
from linkwork.errors import InputError
from linkwork.model import Model, Motion
from linkwork.simulation.ground.mesh_places import find_contacts
from linkwork.simulation.records.trajectory import Trajectory
from linkwork.viewer.states import States

SLIPS = 0.999
"""The share of the friction that a contact could have, from which on it slips."""

STICKING, SLIPPING = 1, 2


@dataclass(frozen=True)
class Touches:
    """Contacts over the states, as their page lists them, and normals (F, C, 3) of all constraints."""

    contacts: list[dict[str, object]]
    normals: np.ndarray


def with_touches(
    states: States, model: Model, trajectory: Trajectory, contacts: Sequence[Contact | Pair], ground: Surface
) -> tuple[States, Touches]:
    """States with contacts after the model's constraints; `active`: 1 where one sticks, 2 where it slips."""
    names = tuple(c.name for c in contacts)
    if trajectory.names["active"] != names or trajectory.lam.shape[1] != 3 * len(names):
        raise InputError(
            f"these are not the contacts of the motion: it has {len(trajectory.names['active'])} "
            f"({', '.join(trajectory.names['active'][:4])}), not {len(names)} ({', '.join(names[:4])}); "
            "give those that it was simulated with"
        )
    F, C, own = len(states.t), len(contacts), len(states.named)
    places, normals, acts = np.zeros((F, C, 3)), np.zeros((F, C, 3)), np.zeros((F, C), dtype=np.uint8)
    forces = np.asarray(trajectory.lam)[states.indices].reshape(F, C, 3)
    find = find_contacts(model, contacts, "numpy") if mesh_slots(contacts) else None
    for k, index in enumerate(states.indices):
        motion = Motion(model, np.asarray(trajectory.q)[index][:, None], np.zeros((model.nv, 1)), NUMPY)
        here = contacts if find is None else find.placed(np.asarray(trajectory.q)[index])
        for n, c in enumerate(here):
            touch = c.evaluate(motion, ground)
            places[k, n], normals[k, n] = place_of(touch, motion), touch.axes[:, 2]
            push = float(normals[k, n] @ forces[k, n])
            along = float(np.linalg.norm(forces[k, n] - push * normals[k, n]))
            slips = along > SLIPS * c.friction * push
            acts[k, n] = 0 if push <= 0 else SLIPPING if slips else STICKING
    shown = replace(
        states,
        ends=np.concatenate([states.ends, np.stack([places, places], axis=2)], axis=1),
        forces=np.concatenate([np.zeros((F, own, 3)), forces], axis=1),
        active=np.concatenate([states.active.astype(np.uint8), acts], axis=1),
    )
    listed = [
        {"name": c.name, "what": "contact with friction", "contact": True, "friction": c.friction} for c in contacts
    ]
    return shown, Touches(listed, np.concatenate([np.zeros((F, own, 3)), normals], axis=1))


def place_of(touch: Touch, motion: Motion) -> np.ndarray:
    """The place of contact in the world, by the lever arm d in rows [C^T R, -C^T [d]x R] of a moving link."""
    link, K = next(iter(touch.K.items()))
    R, p = motion.poses[link]
    sign = float((touch.axes @ K[:, :3] @ R.T)[0, 0])
    cross = -sign * (touch.axes @ K[:, 3:] @ R.T)
    return np.asarray(np.asarray(p)[:, 0] + [cross[2, 1], cross[0, 2], cross[1, 0]])
