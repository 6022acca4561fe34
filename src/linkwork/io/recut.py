"""Another spanning tree of a closed mechanism: cut joints exchanged for joints of their loops.

A loop of a URDF+ or MJCF file is cut where the file says. Every joint of the loop can be cut instead: the closure
becomes a joint of the tree, the joint becomes a closure, and the links between the two hang the other way round,

    tree before:   outside - ... - parent -[joint]- i - ... - inside  ~closure~  outside
    tree after:    outside -[closure]- inside - ... - i  ~joint~  parent

The poses that the loops allow are the same, and so is the motion; positions `q` are others. A joint that is reversed
keeps the sign of its angle or length, the quaternion of a spherical one becomes its inverse, and the two angles of a
universal one change places. A closure that becomes a joint is at zero where the tree was in its neutral position.

What belongs to joints stays with them. A closure of one free direction has its damping and spring; a joint with more
than that (armature, limits, friction, a motor) is cut in the body behind it (divided.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import Closure, Coupling, Custom
from linkwork.constraints.closure import RESISTING
from linkwork.errors import ModelError, listing, not_found
from linkwork.io.divided import RESISTANCE, beyond_closures, divided, joint_of, reversed_joint
from linkwork.joints import Fixed, Joint, Spherical, Universal
from linkwork.model import Model
from linkwork.model.body import Placement
from linkwork.model.builder import Builder
from linkwork.model.link import Link
from linkwork.model.model import WORLD
from linkwork.model.motion import Motion
from linkwork.spatial.rotations import rotation_about

CUTTABLE = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical")
"""Joints that a closure of the same name replaces."""

BASES = ("free", "planar", "fixed")
"""Joints that no motor drives in any robot."""


def recut(model: Model, cut: Sequence[str]) -> Model:
    """The same mechanism, cut at the joints named; where these are fewer than loops, other cuts stay.

    A name of a closure is that of a joint which is cut already, also where a joint of the tree has the same name.
    Raises ModelError for joints that are in no loop, that are independent or coupled.
    """
    actuators, tendons, driven = model.actuators, model.tendons, _driven(model)
    model = replace(model, actuators=(), tendons=())
    for name in dict.fromkeys(cut):
        closures = [c for c in model.constraints if isinstance(c, Closure)]
        if name in (c.name for c in closures):
            continue
        if name not in model.joint_names:
            raise not_found("joint to cut", name, [*model.joint_names, *(c.name for c in closures)])
        i = model.joint(name)
        _check_cut(model, model.links[i])
        loops = [c for c in closures if _closes_over(model, c, i)]
        if not loops:
            raise ModelError(
                f"joint '{name}' cannot be cut: it closes no loop, and without it nothing holds '{model.links[i].name}'"
            )
        # cuts are the bases of a matroid: any closure over the joint that is not asked to stay cut can be exchanged
        free = [c for c in loops if c.name not in cut and joint_of(c) is not None]
        if not free:
            raise ModelError(
                f"joint '{name}' cannot be cut: its loops are those of {listing([c.name for c in loops])}, which stay "
                "cut or cannot be joints of a tree"
            )
        model = _recut_at(model, free[0], i, driven)
    return model.with_actuators(*actuators).with_tendons(*tendons)


def _recut_at(model: Model, closure: Closure, i: int, driven: set[str]) -> Model:
    """Put `closure` into the tree and cut joint `i`, in its body if a closure cannot stand for it."""
    link, has = model.links[i], _dynamics(model.links[i])
    more = link.joint_name in driven or beyond_closures(link.joint.kind, has)
    model = _exchanged(model, closure, i)
    return divided(model, link.joint_name, has) if more else model


def _driven(model: Model) -> set[str]:
    """The joints with a motor or tendon, as far as the model says: not where all have a motor by default."""
    named = {name for a in model.actuators for name in a.joints} | {n for t in model.tendons for n in t.joints}
    moving = [l for l in model.links[1:] if l.joint.kind not in BASES]
    told = any(not l.actuated for l in moving)
    return named | {l.joint_name for l in moving if told and l.actuated}


def _closes_over(model: Model, closure: Closure, i: int) -> bool:
    """Whether joint `i` is in the loop that a closure closes."""
    a, b = (i in (l, *model.topology.supports[l]) for l in closure.touches(model))
    return a != b


def _check_cut(model: Model, link: Link) -> None:
    """Refuse to cut what a closure cannot stand for."""
    coupled = _couplings(model, link)
    reasons = {
        f"is {link.joint.kind}, and closures are {listing(CUTTABLE)}": link.joint.kind not in CUTTABLE,
        "is an independent joint": link.joint_name in model.independent,
        f"is coupled by {listing(coupled)}": bool(coupled),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ModelError(f"joint '{link.joint_name}' cannot be cut: it {reason}")


def _couplings(model: Model, link: Link) -> list[str]:
    """The constraints that name a link's joint."""
    i = model.joint(link.joint_name)
    return [c.name for c in model.constraints if isinstance(c, Coupling | Custom) and i in _moved(c, model)]


def _moved(c: Coupling | Custom, model: Model) -> list[int]:
    """The links whose joints a constraint names."""
    return c.links(model) if isinstance(c, Coupling) else [model.joint(name) for name in c.joints]


def _exchanged(model: Model, closure: Closure, i: int) -> Model:
    """The model with `closure` in its tree, and the joint of link `i` cut."""
    la, lb = closure.touches(model)
    inside, outside = (la, lb) if i in (la, *model.topology.supports[la]) else (lb, la)
    path = [inside]  # from the closure up to link i
    while path[-1] != i:
        path.append(model.links[path[-1]].parent)
    old = model.links[i]
    b = Builder(model.name, model.gravity, independent=list(model.independent), strict=False)
    b.look(WORLD, *model.links[0].looks)
    b.outline(WORLD, *model.links[0].outlines)
    for k, link in enumerate(model.links):
        if k and k not in path:
            _put(b, link, model.links[link.parent].name, link.joint, link.placement, Placement(), **_dynamics(link))
    joined, name = _as_joint(model, closure, inside == la), closure.name
    name = f"{name}/closure" if name in model.joint_names else name
    resists = _resistance(model, closure)
    _put(b, model.links[inside], model.links[outside].name, *joined, joint_name=name, actuated=False, **resists)
    for k, above in pairwise(path):
        link = model.links[k]
        _check_reversed(model, link)
        joint, back = reversed_joint(link.joint), link.placement.inverse()
        _put(b, model.links[above], link.name, joint, Placement(), back, **_dynamics(link, turned=True))
    for place, frame in model.frames.items():
        b.frame(place, model.links[frame.link].name, frame.placement)
    end = f"{old.joint_name}/parent"
    b.frame(end, model.links[old.parent].name, old.placement)
    b.constraints = [c for c in model.constraints if c is not closure]
    b.constraints.append(_as_closure(old, end, closure))
    return b.build()


def _put(
    b: Builder, link: Link, parent: str, joint: Joint, placement: Placement, on_joint: Placement, **properties: Any
) -> None:
    """A link of the new tree, at `on_joint` in the frame that the joint moves."""
    carrier = link.name
    if on_joint != Placement():
        carrier = f"{link.name}/{properties['joint_name']}"
    b.link(carrier, parent, joint, placement=placement, **properties)
    if carrier != link.name:
        b.link(link.name, carrier, "fixed", placement=on_joint, joint_name=f"{carrier}/fixed")
    b.load(link.name, link.inertia, link.weightless)
    b.look(link.name, *link.looks)
    b.outline(link.name, *link.outlines)


def _dynamics(link: Link, turned: bool = False) -> dict[str, Any]:
    """What else a joint has; that of a universal joint changes places where it is `turned`."""
    passive = link.passive
    arrays = {
        "armature": link.armature,
        "damping": passive.damping,
        "stiffness": passive.stiffness,
        "rest": passive.rest,
        "friction": passive.friction,
    }
    if turned and isinstance(link.joint, Universal):
        arrays = {n: x[::-1] for n, x in arrays.items()}
    return {**arrays, "joint_name": link.joint_name, "limits": link.limits, "actuated": link.actuated}


def _check_reversed(model: Model, link: Link) -> None:
    """Refuse to reverse joints whose coordinates would mean something else to what acts on them."""
    reversible = isinstance(link.joint, Fixed) or link.joint.kind in CUTTABLE
    if isinstance(link.joint, Spherical):  # its velocities are in other axes then
        passive = link.passive
        alike = all(np.ptp(x) == 0 for x in (link.armature, passive.damping, passive.friction))
        reversible = alike and not passive.stiffness.any()
    if not reversible or (link.joint.nv > 1 and _couplings(model, link)):
        raise ModelError(
            f"joint '{link.joint_name}' ({link.joint.kind}) cannot be reversed, which another cut of its loop needs"
        )


def _as_joint(model: Model, closure: Closure, a_inside: bool) -> tuple[Joint, Placement, Placement]:
    """The joint in place of a closure, its frame on the outer link, and the inner link in its frame."""
    joint = joint_of(closure)
    assert joint is not None
    a, b = model.frame(closure.a).placement, model.frame(closure.b).placement
    b = b @ _standing(model, closure)
    if a_inside:
        return joint, b, a.inverse()
    return reversed_joint(joint), a, b.inverse()


def _standing(model: Model, closure: Closure) -> Placement:
    """Where the closure's joint stands in the neutral position, as far as it is free to stand anywhere."""
    axis = np.array(closure.axis)
    if closure.joint == "spherical":
        return Placement(_relative(model, closure)[0])
    if closure.joint == "prismatic":
        return Placement(p=axis * _coordinate(model, closure))
    if closure.joint == "revolute":
        angle = _coordinate(model, closure)
        return Placement(np.asarray(rotation_about(axis, np.cos(angle), np.sin(angle), NUMPY)))
    return Placement()


def _coordinate(model: Model, closure: Closure) -> float:
    """The angle or length of a revolute or prismatic closure in the neutral position."""
    (R, p), axis = _relative(model, closure), np.array(closure.axis)
    if closure.joint == "prismatic":
        return float(axis @ p)
    across = np.eye(3)[np.argmin(np.abs(axis))]
    across = across - (across @ axis) * axis
    turned = R @ across
    return float(np.arctan2(axis @ np.cross(across, turned), across @ turned))


def _relative(model: Model, closure: Closure) -> tuple[np.ndarray, np.ndarray]:
    """Axes and origin of `a` in `b` in the neutral position."""
    motion = Motion(model, model.neutral()[:, None], np.zeros((model.nv, 1)), NUMPY)
    _, _, R, p = closure._frames(motion)
    return np.asarray(R), np.asarray(p)[:, 0]


def _resistance(model: Model, closure: Closure) -> dict[str, Any]:
    """Damping and spring of a closure, for the joint that it becomes."""
    if not (closure.damping or closure.stiffness):
        return {}
    rest = closure.rest - _coordinate(model, closure)
    return {"damping": closure.damping, "stiffness": closure.stiffness, "rest": rest}


def _as_closure(link: Link, end: str, closure: Closure) -> Closure:
    """The closure in place of a link's joint: the link's frame against `end` on its old parent."""
    joint: Any = link.joint
    resists: dict[str, Any] = {}
    if joint.kind in RESISTING and link.passive.acts:
        resists = {n: float(getattr(link.passive, n)[0]) for n in RESISTANCE}
    return Closure(
        link.name,
        end,
        joint.kind,
        tuple(getattr(joint, "axis", (0.0, 0.0, 1.0))),
        tuple(getattr(joint, "second", (1.0, 0.0, 0.0))),
        getattr(joint, "pitch", 0.0),
        name=link.joint_name,
        stabilisation=closure.stabilisation,
        **resists,
    )
