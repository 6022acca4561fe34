"""Building a model link by link, in any order; `build` sorts, merges fixed joints and checks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.checks import (
    ARRAY,
    CONSTRAINT,
    FLAG,
    NAME,
    checked,
    checked_class,
    either,
    instance,
    listed,
    optional,
)
from linkwork.errors import ModelError, listing, not_found
from linkwork.joints import Fixed, Free, Joint, Planar, make
from linkwork.joints.base import AXIS, JOINT
from linkwork.model.actuator import Actuator
from linkwork.model.body import INERTIA, PLACEMENT, BodyInertia, Placement
from linkwork.model.link import Limits, Link, Passive, armature_of, passive_of
from linkwork.model.model import ACTUATOR, GRAVITY, TENDON, WORLD, Frame, Model
from linkwork.model.tendon import Tendon
from linkwork.model.visual import Collider, Given, Look, Visual

if TYPE_CHECKING:
    from linkwork.constraints import Constraint

BASES: dict[str, type[Joint]] = {"fixed": Fixed, "free": Free, "planar": Planar}
"""Joints between the world and a robot's root."""


@dataclass
class _Draft:
    name: str
    parent: str
    joint: Joint
    joint_name: str
    placement: Placement
    inertia: BodyInertia
    armature: np.ndarray
    limits: Limits
    actuated: bool
    weightless: BodyInertia
    passive: Passive
    looks: list[Look] = field(default_factory=list)
    outlines: list[Look] = field(default_factory=list)


@checked_class(
    name=NAME,
    gravity=GRAVITY,
    constraints=listed(CONSTRAINT),
    independent=listed(NAME),
    strict=FLAG,
    actuators=listed(ACTUATOR),
    tendons=listed(TENDON),
)
@dataclass
class Builder:
    """Collects links, frames, constraints, actuators and tendons.

    Examples:
        >>> b = lw.Builder("pendulum")
        >>> body = lw.BodyInertia(1.0, np.array([0, 0, -0.5]), 1e-3 * np.eye(3))
        >>> b.link("bob", joint="revolute", axis="y", inertia=body)
        >>> b.build()
        Model('pendulum': 1 links, nq=1, nv=1, 0 constraints with 0 rows, 1 kg)
    """

    name: str = "model"
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    constraints: list[Constraint] = field(default_factory=list)
    independent: list[str] = field(default_factory=list)
    strict: bool = True
    actuators: list[Actuator] = field(default_factory=list)
    tendons: list[Tendon] = field(default_factory=list)
    _drafts: dict[str, _Draft] = field(default_factory=dict)
    _frames: dict[str, tuple[str, Placement]] = field(default_factory=dict)
    _scenery: list[Look] = field(default_factory=list)
    _surroundings: list[Look] = field(default_factory=list)
    _joint_names: set[str] = field(default_factory=set)
    _at_cuts: dict[str, dict[str, Any]] = field(default_factory=dict)  # what loops' joints have beyond closures

    @checked(
        name=NAME,
        parent=NAME,
        joint=either(JOINT, NAME),
        axis=optional(AXIS),
        placement=optional(PLACEMENT),
        inertia=optional(INERTIA),
        armature=ARRAY,
        joint_name=optional(NAME),
        limits=optional(instance(Limits, "the Limits of the joint")),
        actuated=FLAG,
        weightless=optional(INERTIA),
        damping=ARRAY,
        stiffness=ARRAY,
        rest=optional(ARRAY),
        friction=ARRAY,
    )
    def link(
        self,
        name: str,
        parent: str = WORLD,
        joint: Joint | str = "fixed",
        *,
        axis: object = None,
        placement: Placement | None = None,
        inertia: BodyInertia | None = None,
        armature: object = 0.0,
        joint_name: str | None = None,
        limits: Limits | None = None,
        actuated: bool = True,
        weightless: BodyInertia | None = None,
        damping: object = 0.0,
        stiffness: object = 0.0,
        rest: object = None,
        friction: object = 0.0,
    ) -> None:
        """Add a link: the joint's frame has `placement` in the parent link.

        The link's frame follows the joint.

        `joint` is a kind ("revolute", "free", ...) or a joint, `axis` its axis in the link ("x", "y", "z" or three
        numbers), `joint_name` its name (default: the link's with "_joint"), `limits` those of position, velocity and
        effort, `armature` the rotor's inertia as felt at the joint; `actuated` says whether a motor drives it.
        `weightless` is the part of its inertia that gravity does not pull. The joint's damping, the stiffness of its
        spring and its dry friction are numbers, or one for each degree of freedom; the spring has no force at the
        position `rest` (default: neutral).
        """
        if name == WORLD or name in self._drafts:
            raise ModelError(f"link '{name}' is there already; link names must be unique and not '{WORLD}'")
        if isinstance(joint, str):
            joint = make(joint) if axis is None else make(joint, axis=axis)
        inertia = inertia or BodyInertia()
        inertia.check(f"link '{name}'", self.strict)
        rotor = armature_of(joint, armature, f"link '{name}'")
        joint_name = joint_name or f"{name}_joint"
        if joint_name in self._joint_names:
            raise ModelError(f"joint '{joint_name}' is there already; joint names must be unique")
        self._joint_names.add(joint_name)
        self._drafts[name] = _Draft(
            name,
            parent,
            joint,
            joint_name,
            placement or Placement(),
            inertia,
            rotor,
            limits or Limits(),
            actuated,
            weightless or BodyInertia(),
            passive_of(joint, f"link '{name}'", damping, stiffness, rest, friction),
        )

    @checked(name=NAME, link=NAME, placement=optional(PLACEMENT))
    def frame(self, name: str, link: str, placement: Placement | None = None) -> None:
        """Add a frame: a named place on a link, for contacts, loops and outputs."""
        if name in self._frames:
            raise ModelError(f"frame '{name}' is there already; frame names must be unique")
        self._frames[name] = (link, placement or Placement())

    @checked(link=NAME, inertia=INERTIA, weightless=optional(INERTIA))
    def load(self, link: str, inertia: BodyInertia, weightless: BodyInertia | None = None) -> None:
        """Add mass to an existing link, part of it perhaps weightless; the world takes any."""
        if link != WORLD:
            if link not in self._drafts:
                raise ModelError(f"there is no link '{link}' to add mass to. Links: {listing(self._drafts)}")
            draft = self._drafts[link]
            draft.inertia = draft.inertia + inertia
            draft.weightless = draft.weightless + (weightless or BodyInertia())

    @checked(link=NAME, visuals=instance(Visual, "a Visual"))
    def visual(self, link: str, *visuals: Visual) -> None:
        """Add visuals to an existing link, or to the world."""
        self.look(link, Look(Given(visuals)))

    @checked(link=NAME, looks=instance(Look, "a Look"))
    def look(self, link: str, *looks: Look) -> None:
        """The same for visuals that are read later."""
        if link != WORLD and link not in self._drafts:
            raise ModelError(f"there is no link '{link}' to give a look to. Links: {listing(self._drafts)}")
        (self._scenery if link == WORLD else self._drafts[link].looks).extend(looks)

    @checked(link=NAME, colliders=instance(Collider, "a Collider"))
    def collider(self, link: str, *colliders: Collider) -> None:
        """Add shapes that may touch others to an existing link, or to the world."""
        self.outline(link, Look(Given(colliders)))

    @checked(link=NAME, outlines=instance(Look, "a Look"))
    def outline(self, link: str, *outlines: Look) -> None:
        """The same for shapes that are read later."""
        if link != WORLD and link not in self._drafts:
            raise ModelError(f"there is no link '{link}' to give a shape to. Links: {listing(self._drafts)}")
        (self._surroundings if link == WORLD else self._drafts[link].outlines).extend(o.of(link) for o in outlines)

    @checked(merge_fixed=FLAG)
    def build(self, merge_fixed: bool = True) -> Model:
        """The model. Links behind fixed joints become part of their parents (their names stay as frames)."""
        order = self._sorted()
        at: dict[str, tuple[int, Placement]] = {WORLD: (0, Placement())}
        links = [Link(WORLD, 0, Fixed(), "", Placement(), BodyInertia(), np.zeros(0))]
        frames: dict[str, Frame] = {}
        looks, outlines = [list(self._scenery)], [list(self._surroundings)]
        for d in order:
            carrier, on_carrier = at[d.parent]
            placement = on_carrier @ d.placement
            if merge_fixed and isinstance(d.joint, Fixed):
                at[d.name] = (carrier, placement)
                frames[d.name] = Frame(carrier, placement)
                if carrier:
                    links[carrier] = _heavier(links[carrier], d, placement)
                looks[carrier] += [look.moved(placement) for look in d.looks]
                outlines[carrier] += [outline.moved(placement) for outline in d.outlines]
                continue
            at[d.name] = (len(links), Placement())
            looks.append(list(d.looks))
            outlines.append(list(d.outlines))
            links.append(
                Link(
                    d.name,
                    carrier,
                    d.joint,
                    d.joint_name,
                    placement,
                    d.inertia,
                    d.armature,
                    d.limits,
                    d.actuated,
                    weightless=d.weightless,
                    passive=d.passive,
                )
            )
        for name, (owner, placement) in self._frames.items():
            if owner not in at:
                raise ModelError(f"frame '{name}' is on link '{owner}', which is not there. Links: {listing(at)}")
            if name in at:
                raise ModelError(f"frame '{name}' has the name of a link; give it another")
            carrier, on_carrier = at[owner]
            frames[name] = Frame(carrier, on_carrier @ placement)
        drawn = zip(links, looks, outlines, strict=True)
        links = [replace(l, looks=tuple(v), outlines=tuple(c)) if v or c else l for l, v, c in drawn]
        kept = {l.joint_name for l in links}
        independent = tuple(j for j in self.independent if j in kept)
        model = Model(self.name, tuple(links), frames, self.gravity, independent=independent)
        model = model.with_constraints(*self.constraints)
        return model.with_actuators(*self.actuators).with_tendons(*self.tendons)

    def _sorted(self) -> list[_Draft]:
        """Depth first from the world, so that parents come before children and branches stay together."""
        children: dict[str, list[_Draft]] = {}
        for d in self._drafts.values():
            if d.parent != WORLD and d.parent not in self._drafts:
                raise ModelError(
                    f"link '{d.name}' hangs on link '{d.parent}', which is not there. Links: {listing(self._drafts)}"
                )
            children.setdefault(d.parent, []).append(d)
        order: list[_Draft] = []
        stack = list(reversed(children.get(WORLD, [])))
        while stack:
            d = stack.pop()
            order.append(d)
            stack.extend(reversed(children.get(d.name, [])))
        if len(order) < len(self._drafts):
            lost = sorted(set(self._drafts) - {d.name for d in order})
            raise ModelError(
                f"the links {listing(lost)} form a cycle of parents that never reaches the world; "
                "a tree is needed: cut one joint of the loop and add it as a closure"
            )
        return order


def _heavier(link: Link, extra: _Draft, placement: Placement) -> Link:
    return replace(
        link,
        inertia=link.inertia + extra.inertia.moved(placement),
        weightless=link.weightless + extra.weightless.moved(placement),
    )


def base_joint(base: str) -> Joint:
    """The joint between the world and a robot's root: base = "fixed", "free" or "planar"."""
    if base not in BASES:
        raise not_found("base", base, BASES)
    return BASES[base]()
