"""Rotors: bodies without children that are symmetric about the axis of their hinge.

The dynamics do not depend on a rotor's angle: its angular momentum is that of a body fixed to its carrier, and J qdot n
about the axis n. So all of a rotor but its spin, J n n^T, is moved to the link that carries it, and the rotor is frozen
at angle zero: exact dynamics then cost hardly more than those of a robot without rotors.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.coupling import Coupling
from linkwork.constraints.custom import Custom
from linkwork.joints import Revolute
from linkwork.model.body import BodyInertia
from linkwork.model.link import Link
from linkwork.model.model import Model
from linkwork.model.motion import Motion
from linkwork.spatial.rotations import rotation_about

if TYPE_CHECKING:
    from linkwork.structure.clusters import ClusterTree


def rotors(model: Model, outer: Collection[int]) -> tuple[int, ...]:
    """The rotors of a model: only relations of joints hold them, and none of the `outer` constraints."""
    t = model.topology
    held = {
        l
        for n, c in enumerate(model.constraints)
        if n in outer or not isinstance(c, Coupling | Custom)
        for l in c.touches(model)
    }
    return tuple(i for i in t.links if i not in held and not t.children[i] and _is_symmetric(model, i))


def freeze_rotors(motion: Motion, tree: ClusterTree) -> Motion:
    """The same motion with rotors frozen at angle zero; their velocities stay.

    Where inertias are inputs, symmetric bodies are not known when tracing, and nothing is frozen.
    """
    if not tree.rotors or motion.given.inertias is not None:
        return motion
    t, frozen = motion.model.topology, set(tree.rotors)
    parts = [
        motion.xp.zeros(t.q_slices[i].stop - t.q_slices[i].start) if i in frozen else motion.joint_q(i) for i in t.links
    ]
    return replace(motion, model=replace(motion.model, links=tree.links), q=motion.xp.vstack(parts))


def spinning_only(model: Model, rotors: tuple[int, ...]) -> tuple[Link, ...]:
    """The links with rotors reduced to their spin; the rest of their inertia is lumped into the parent."""
    links = list(model.links)
    for i in rotors:
        body, joint, parent = links[i].inertia, links[i].joint, links[i].parent
        assert isinstance(joint, Revolute)
        spin = float(joint.axis @ body.I @ joint.axis) * np.outer(joint.axis, joint.axis)
        rest = replace(body, I=body.I - spin).moved(links[i].placement)
        held = links[i].weightless.moved(links[i].placement)
        links[i] = replace(links[i], inertia=BodyInertia(0.0, np.zeros(3), spin), weightless=BodyInertia())
        if parent:
            links[parent] = replace(
                links[parent], inertia=links[parent].inertia + rest, weightless=links[parent].weightless + held
            )
    return tuple(links)


def _is_symmetric(model: Model, i: int) -> bool:
    """Whether a body is symmetric about the axis of its hinge."""
    joint, body = model.links[i].joint, model.links[i].inertia
    if not isinstance(joint, Revolute):
        return False
    R = np.asarray(rotation_about(joint.axis, np.cos(1.0), np.sin(1.0), NUMPY))
    I, h = body.about_origin, body.first_moment
    size = float(np.abs(I).max())
    return bool(
        np.abs(R @ I @ R.T - I).max() <= 1e-12 * size and float(np.linalg.norm(R @ h - h)) <= 1e-12 * (size + body.mass)
    )
