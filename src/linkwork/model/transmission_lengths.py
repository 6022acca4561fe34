"""Lengths that are linear in joint positions: those of actuators and tendons.

    l = sum_j g_j x_j,     l' = sum_j g_j v_j,     tau_j = g_j f

with x_j the displacement of joint j from its neutral position, and f a force along the length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.model.model import Model

Joints = Mapping[str, tuple[float, ...]]
"""Gears by joint: one for each degree of freedom."""


def length(model: Model, joints: Joints, q: Array, xp: Ops) -> Array:
    """l of something with these gears."""
    t, total = model.topology, xp.zeros(1)
    for name, gears in joints.items():
        i = model.joint(name)
        joint = model.links[i].joint
        x = joint.displacement(xp.constant(joint.neutral()), q[t.q_slices[i], :], xp)
        total = total + xp.constant(np.array(gears)).T @ x
    return total[0, 0]


def length_rate(model: Model, joints: Joints, v: Array, xp: Ops) -> Array:
    """l' of something with these gears."""
    t, total = model.topology, xp.zeros(1)
    for name, gears in joints.items():
        total = total + xp.constant(np.array(gears)).T @ v[t.v_slices[model.joint(name)], :]
    return total[0, 0]


def forces_along(model: Model, forces: Iterable[tuple[Joints, Array]]) -> dict[int, Array]:
    """The sum of g f by degree of freedom."""
    total = dict[int, Array]()
    for joints, f in forces:
        for k, g in gears_by_dof(model, joints).items():
            total[k] = total[k] + g * f if k in total else g * f
    return total


def implicit_along(model: Model, inertias: Iterable[tuple[Joints, Array]]) -> dict[int, Array]:
    """What inertias m along lengths add to armatures, by degree of freedom.

    m g g^T is a full matrix, whose rows' sums |g_i| sum_j |g_j| m bound it by a diagonal. Free joints have none.
    """
    total = dict[int, Array]()
    for joints, m in inertias:
        gears = gears_by_dof(model, joints)
        size = sum(abs(g) for g in gears.values())
        free = {model.topology.v_slices[i] for n in joints if model.links[i := model.joint(n)].joint.kind == "free"}
        for k, g in gears.items():
            if not any(at.start <= k < at.stop for at in free):
                total[k] = total[k] + (abs(g) * size) * m if k in total else (abs(g) * size) * m
    return total


def gears_by_dof(model: Model, joints: Joints) -> dict[int, float]:
    """The gears by degree of freedom."""
    first = {n: model.topology.v_slices[model.joint(n)].start for n in joints}
    return {first[n] + k: g for n, gears in joints.items() for k, g in enumerate(gears)}


def column(entries: Mapping[int, Array], size: int, xp: Ops) -> Array:
    """Entries as a column of `size` rows; the others are zero."""
    zero = xp.zeros(1)[0, 0]
    return xp.matrix([[entries.get(k, zero)] for k in range(size)]) if size else xp.zeros(0)
