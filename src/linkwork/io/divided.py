"""A loop cut through a body instead of a joint, where the joint has more than a closure can have.

    cut at the joint:     parent ~joint~ body
    cut in the body:      parent -[joint]- half ~weld~ body        each with half of the body's inertia

The joint stays in the tree with all that belongs to it: armature, limits, friction, a motor, springs and damping of any
joint. The mechanism is the same, and so is its motion; it has the joint's coordinates besides, behind all others, and
six rows for the weld. Where a closure can keep what the joint has, it is cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from linkwork.constraints import Closure
from linkwork.constraints.closure import RESISTING
from linkwork.errors import ModelError
from linkwork.joints import Cylindrical, Fixed, Helical, Joint, Prismatic, Revolute, Spherical, Universal
from linkwork.model import Model
from linkwork.model.body import BodyInertia
from linkwork.model.link import Limits, Link, armature_of, passive_of

RESISTANCE = ("damping", "stiffness", "rest")
"""What closures with one free direction can have."""


def beyond_closures(kind: str, has: Mapping[str, Any]) -> bool:
    """Whether a joint of this kind has (arguments of `Builder.link`) what a closure cannot keep.

    Limits count where a loop may meet them; those of force and speed, and angles beyond a turn, do not.
    """
    more = [n for n in ("armature", "friction", "damping", "stiffness") if n not in RESISTANCE or kind not in RESISTING]
    limits, far = has.get("limits", Limits()), 2 * np.pi if kind == "revolute" else np.inf
    return any(np.any(has.get(n, 0.0)) for n in more) or limits.lower > -far or limits.upper < far


def divided(model: Model, name: str, has: Mapping[str, Any]) -> Model:
    """The model whose closure of this name is a joint again, and the body behind it divided and welded.

    `has` are properties of the joint, as arguments of `Builder.link`. Raises ModelError if neither body has mass, or no
    joint stands for the closure.
    """
    closure = next(c for c in model.constraints if isinstance(c, Closure) and c.name == name)
    joint = joint_of(closure)
    ends = (closure.b, closure.a)
    if joint is None:
        raise ModelError(f"closure '{name}' is {closure.joint}, and no joint of a tree is")
    if not _heavy(model, ends[1]):
        ends, joint = ends[::-1], reversed_joint(joint)
        if joint.nv > 1 or not _heavy(model, ends[1]):
            raise ModelError(f"the body behind '{name}' has no mass, which could be divided")
    inner, outer = (model.frame(end) for end in ends)
    body = model.links[outer.link]
    half, weightless = (_halved(x) for x in (body.inertia, body.weightless))
    stub = f"{body.name}/{name}"
    passive = passive_of(joint, f"joint '{name}'", **{n: has[n] for n in (*RESISTANCE, "friction") if n in has})
    link = Link(
        stub,
        inner.link,
        joint,
        name,
        inner.placement,
        half.moved(outer.placement.inverse()),
        armature_of(joint, has.get("armature", 0.0), f"joint '{name}'"),
        has.get("limits", Limits()),
        has.get("actuated", True),
        weightless=weightless.moved(outer.placement.inverse()),
        passive=passive,
    )
    lighter = replace(body, inertia=half, weightless=weightless)
    links = (*(lighter if l is body else l for l in model.links), link)
    weld = Closure(stub, ends[1], "fixed", name=name, stabilisation=closure.stabilisation)
    return replace(model, links=links, constraints=tuple(weld if c is closure else c for c in model.constraints))


def _heavy(model: Model, end: str) -> bool:
    return model.links[model.frame(end).link].inertia.mass > 0


def _halved(body: BodyInertia) -> BodyInertia:
    return BodyInertia(body.mass / 2, body.com, body.I / 2)


def joint_of(closure: Closure) -> Joint | None:
    """The joint from `b` to `a`; None for closures that no joint of a tree stands for."""
    axis, second = np.array(closure.axis), np.array(closure.second)
    made = {
        "fixed": Fixed,
        "revolute": lambda: Revolute(axis),
        "prismatic": lambda: Prismatic(axis),
        "cylindrical": lambda: Cylindrical(axis),
        "helical": lambda: Helical(axis, closure.pitch),
        "universal": lambda: Universal(axis, second),
        "spherical": Spherical,
    }.get(closure.joint)
    return None if made is None else made()


def reversed_joint(joint: Joint) -> Joint:
    """The joint from child to parent, at the same position but for spherical and universal ones."""
    if isinstance(joint, Revolute | Prismatic | Cylindrical):
        return type(joint)(-joint.axis)
    if isinstance(joint, Helical):
        return Helical(-joint.axis, joint.pitch)
    if isinstance(joint, Universal):
        return Universal(-joint.second, -joint.axis)
    return joint
