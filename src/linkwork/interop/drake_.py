"""Drake's coordinates, as its documentation gives them (Drake itself is not needed).

QuaternionFloatingJoint: q = [w x y z  x y z], v = [angular; linear], both in the axes of the world.
BallRpyJoint: q = [roll pitch yaw], v the angular velocity in the parent's axes. PlanarJoint: q = [x y angle], v their
derivatives. UniversalJoint turns about x, then y. Revolute, prismatic and screw joints have one number, as ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkwork.checks import NAMES, checked, like, optional
from linkwork.errors import InputError, UnsupportedError, listing
from linkwork.interop.codecs import FreeInWorld, PlanarAngle, RollPitchYaw, Same
from linkwork.interop.map import PAIRED, Foreign, Map, matched, paired
from linkwork.joints import Free, Joint, Planar, Spherical, Universal
from linkwork.model import Model, Placement
from linkwork.model.model import MODEL

WIDTHS = {
    "free": (7, 6),
    "spherical": (3, 3),
    "planar": (3, 3),
    "universal": (2, 2),
    "revolute": (1, 1),
    "prismatic": (1, 1),
    "helical": (1, 1),
}
"""Positions and velocities of Drake's joints, by our names of them."""


PLANT = like("a finalized MultibodyPlant", "num_positions", "num_velocities", "get_joint")


@checked(model=MODEL, plant=optional(PLANT), names=PAIRED, order=optional(NAMES))
def drake(
    model: Model, plant: Any = None, names: Mapping[str, str] | None = None, *, order: Sequence[str] | None = None
) -> Map:
    """The map between a model and a finalized `MultibodyPlant` with the same robot.

    With a plant, joints are paired by name (`names` gives others), at the indices of the plant. Without one, `order`
    lists our joint names in Drake's order, by default that of the model.
    """
    pairs = []
    theirs = _ordered(model, order) if plant is None else _joints(plant)
    for i, parts in matched(model, theirs, names, "Drake"):
        codec = _codec(model.links[i].joint, model.links[i].placement)
        pairs.append(paired(model, i, parts, codec, "Drake"))
    nq = sum(len(f.q) for f in theirs) if plant is None else int(plant.num_positions())
    nv = sum(len(f.v) for f in theirs) if plant is None else int(plant.num_velocities())
    return Map(model, pairs, nq, nv, "Drake")


def _codec(joint: Joint, placement: Placement) -> Same:
    if isinstance(joint, Free):
        return FreeInWorld(joint, placement, rotation_first=True, spin_in_world=True)
    if isinstance(joint, Spherical):
        return RollPitchYaw(joint)
    if isinstance(joint, Planar):
        return PlanarAngle(joint)
    if isinstance(joint, Universal) and not ((joint.axis == [1, 0, 0]).all() and (joint.second == [0, 1, 0]).all()):
        raise UnsupportedError("Drake's universal joint turns about x, then y; this one has other axes")
    if joint.kind not in WIDTHS:
        raise UnsupportedError(f"Drake has no {joint.kind} joint; it has {listing(WIDTHS)}")
    return Same(joint)


def _ordered(model: Model, order: Sequence[str] | None) -> list[Foreign]:
    """Our joints in the given order, with Drake's numbers of coordinates."""
    moving = {model.links[i].joint_name: model.links[i].joint for i in model.topology.links if model.links[i].joint.nv}
    names = list(moving) if order is None else list(order)
    if sorted(names) != sorted(moving):
        raise InputError(f"order must name each moving joint once: {listing(moving)}; it names {listing(names)}")
    out, q, v = [], 0, 0
    for name in names:
        kind = moving[name].kind
        if kind not in WIDTHS:
            raise UnsupportedError(f"Drake has no {kind} joint ('{name}'); it has {listing(WIDTHS)}")
        nq, nv = WIDTHS[kind]
        out.append(Foreign(name, kind, range(q, q + nq), range(v, v + nv)))
        q, v = q + nq, v + nv
    return out


def _joints(plant: Any) -> list[Foreign]:
    joints = (plant.get_joint(k) for k in plant.GetJointIndices())
    out = []
    for j in joints:
        q, v, nq, nv = j.position_start(), j.velocity_start(), j.num_positions(), j.num_velocities()
        if nv:
            out.append(Foreign(str(j.name()), str(j.type_name()), range(q, q + nq), range(v, v + nv)))
    return out
