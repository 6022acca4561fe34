"""Combining models: side by side, or one carried by a link of another."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwork.checks import FLAG, NAME, checked, checked_class, choice, either, instance, optional
from linkwork.errors import InputError, ModelError, listing, not_found
from linkwork.joints import Free, Planar
from linkwork.model.body import PLACEMENT, Placement
from linkwork.model.builder import Builder
from linkwork.model.link import Link
from linkwork.model.model import GRAVITY, MODEL, WORLD, Model

BASES = ("keep", "fixed")


@checked_class(model=MODEL, prefix=NAME, to=NAME, placement=PLACEMENT, base=optional(choice("base of a part", BASES)))
@dataclass(frozen=True)
class Part:
    """A model as part of a combination.

    Its links, joints, frames and constraints are called `prefix` + name there. Its world becomes `to` (a link or frame
    of a part before it, under its new name, or "world"), with `placement` in it. base="fixed" removes a floating base
    (free, planar), so that its link becomes part of the link that carries it; "keep" leaves it; the default keeps it on
    the world and removes it elsewhere. A fixed base is part of the world, without its mass: load a robot that is to be
    carried with base="free".

    Examples:
        >>> part = lw.Part(chain(2), "left/", to="linktip")
        >>> [link.name for link in lw.combine(chain(1), part).links]
        ['world', 'link1', 'left/link1', 'left/link2']
    """

    model: Model
    prefix: str = ""
    to: str = WORLD
    placement: Placement = field(default_factory=Placement)
    base: str | None = None

    @property
    def on_world(self) -> bool:
        """Whether the part's world is the combination's."""
        X = self.placement
        return self.to == WORLD and not X.p.any() and bool(np.all(np.eye(3) == X.R))

    def renamed(self, name: str) -> str:
        """The name of a link, joint, frame or constraint of the part in the combination."""
        return WORLD if name == WORLD and self.on_world else self.prefix + name

    def takes_away(self, link: Link) -> bool:
        """Whether a link of the part is a floating base that is merged into the link that carries it."""
        fixed = self.base == "fixed" or (self.base is None and self.to != WORLD)
        return fixed and link.parent == 0 and isinstance(link.joint, Free | Planar)


@checked(
    parts=either(MODEL, instance(Part, "a linkwork.Part")),
    name=optional(NAME),
    gravity=optional(GRAVITY),
    merge_fixed=FLAG,
)
def combine(*parts: Model | Part, name: str | None = None, gravity: object = None, merge_fixed: bool = False) -> Model:
    """One model of several; a plain Model stands for `Part(model)`: no prefix, on the world.

    Constraints, actuators and tendons are kept, with the new names of their links, frames and joints; their "world"
    becomes what the part is attached to. Links are sorted depth first: the coordinates of parts on the world follow one
    another in q, those of a carried part are inserted at its branch. All parts have the same gravity, or `gravity`
    replaces it. `merge_fixed` makes all links behind fixed joints part of their parents. Its default `name` is made of
    theirs.

    Examples:
        >>> hand = chain(2, base="free")
        >>> lw.combine(chain(3), lw.Part(hand, "hand/", to="linktip")).nv
        5
    """
    if not parts:
        raise InputError("combine needs at least one model")
    members = [p if isinstance(p, Part) else Part(p) for p in parts]
    if gravity is None and any(not np.array_equal(p.model.gravity, members[0].model.gravity) for p in members):
        raise InputError("the parts differ in gravity; say which holds with gravity=")
    b = Builder(name or " + ".join(p.model.name for p in members), strict=False)
    b.gravity = members[0].model.gravity if gravity is None else np.asarray(gravity, dtype=float)
    at: dict[str, tuple[str, Placement]] = {WORLD: (WORLD, Placement())}
    for part in members:
        if part.to not in at:
            raise not_found(f"link or frame to attach '{part.model.name}' to", part.to, at)
        _add(b, part, at)
    try:
        return b.build(merge_fixed)
    except ModelError as problem:
        raise ModelError(f"the parts {listing([p.model.name for p in members])} do not fit: {problem}") from problem


def _add(b: Builder, part: Part, at: dict[str, tuple[str, Placement]]) -> None:
    """The links, frames and constraints of a part; `at` gets the places of its names."""
    model, name = part.model, part.renamed
    carrier, on_carrier = at[part.to]
    places = [(carrier, on_carrier @ part.placement)]  # per link of the part: the link that it is on, and where
    taken = [n for n in (*(name(l.name) for l in model.links[1:]), *map(name, model.frames)) if n in at]
    if taken:
        raise ModelError(f"'{model.name}' has {listing(taken)}, as a part before it has; give it a prefix of its own")
    b.look(carrier, *(look.moved(places[0][1]) for look in model.links[0].looks))
    b.outline(carrier, *(outline.moved(places[0][1]).renamed(name) for outline in model.links[0].outlines))
    for link in model.links[1:]:
        new, (parent, on_parent) = name(link.name), places[link.parent]
        placement = on_parent @ link.placement
        if part.takes_away(link):
            places.append((parent, placement))
            b.frame(new, parent, placement)
            b.load(parent, link.inertia.moved(placement), link.weightless.moved(placement))
            b.look(parent, *(look.moved(placement) for look in link.looks))
            b.outline(parent, *(outline.moved(placement).renamed(name) for outline in link.outlines))
        else:
            places.append((new, Placement()))
            b.link(
                new,
                parent,
                link.joint,
                placement=placement,
                inertia=link.inertia,
                armature=link.armature,
                joint_name=name(link.joint_name),
                limits=link.limits,
                actuated=link.actuated,
                weightless=link.weightless,
                damping=link.passive.damping,
                stiffness=link.passive.stiffness,
                rest=link.passive.rest,
                friction=link.passive.friction,
            )
            b.look(new, *link.looks)
            b.outline(new, *(outline.renamed(name) for outline in link.outlines))
        at[new] = places[-1]
    for old, frame in model.frames.items():
        owner, on_owner = places[frame.link]
        at[name(old)] = (owner, on_owner @ frame.placement)
        b.frame(name(old), *at[name(old)])
    if not part.on_world and name(WORLD) not in at:
        at[name(WORLD)] = places[0]
        b.frame(name(WORLD), *places[0])
    b.constraints.extend(c.renamed(name) for c in model.constraints)
    b.independent.extend(map(name, model.independent))
    gone = {l.joint_name for l in model.links if part.takes_away(l)}
    b.actuators.extend(a.renamed(name) for a in model.actuators if not gone & a.joints.keys())
    b.tendons.extend(t.renamed(name) for t in model.tendons if not gone & t.joints.keys())
