"""Names and poses of an SDF file: what a name stands for, and where it is at zero positions.

Nested models have their path before their names, "model::link"; `relative_to`, `attached_to` and canonical links are
followed, and circles among them refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwork.errors import listing, not_found
from linkwork.io.xml import Element
from linkwork.lazy import cached_property
from linkwork.model.body import Placement
from linkwork.model.model import WORLD

MODEL = "__model__"
"""The name by which a model's own frame is called in it."""


@dataclass
class Scope:
    """Names within the whole file, nested ones with their path: what has a pose, and relative to what."""

    elements: dict[str, Element] = field(default_factory=dict)
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, Element] = field(default_factory=dict)
    frames: dict[str, Element] = field(default_factory=dict)
    models: dict[str, Element] = field(default_factory=dict)
    poses: dict[str, Placement] = field(default_factory=dict)
    prefix: dict[str, str] = field(default_factory=dict)
    """The path of the model that holds it; a name may have "::" in it besides, as flattened files have."""
    carriers: dict[str, str] = field(default_factory=dict)

    def collect(self, model: Element, prefix: str = "") -> None:
        """Take in the names of a model, and of those nested in it."""
        self.models[prefix] = model
        for tag, table in (("link", self.links), ("joint", self.joints), ("frame", self.frames)):
            for element in model.all(tag):
                name = prefix + element.name
                if name in self.links and tag != "link":  # older files: what refers to the name means the link
                    name = self._beside(name, tag)
                if name in self.elements or name == WORLD:
                    raise element.error(f"the name '{name}' is taken; names must be unique and not '{WORLD}'")
                self.elements[name] = table[name] = element
                self.prefix[name] = prefix
        for nested in model.all("model"):
            name = prefix + nested.name
            if name in self.elements:
                raise nested.error(f"the name '{name}' is taken; names must be unique")
            self.elements[name], self.prefix[name] = nested, prefix
            self.collect(nested, name + "::")

    def _beside(self, name: str, tag: str) -> str:
        """A name for a joint or frame that is called like a link."""
        name = f"{name}/{tag}"
        while name in self.elements:
            name += "_"
        return name

    def meets_its_own(self, name: str) -> bool:
        """Whether a link touches others of its model.

        That is what <self_collide> says of it, or of the model that holds it; where the file has none, all links do.
        """
        path, owners = self.prefix[name], [self.links[name]]
        while path:
            owners.append(self.models[path])
            path = self.prefix[path.removesuffix("::")]
        said = [e for o in (*owners, self.models[""]) if (e := o.child("self_collide")) is not None]
        return is_true(said[0].text) if said else not self._collides_somewhere

    @cached_property
    def _collides_somewhere(self) -> bool:
        """Whether a link or model has <self_collide>: those without then have its default, false."""
        return any(o.child("self_collide") is not None for o in (*self.links.values(), *self.models.values()))

    def pose(self, name: str) -> Placement:
        """The pose of a link, joint, frame or nested model, in the frame of the file's model."""
        chain: dict[str, None] = {}  # from the name to the first whose pose is known
        while name not in self.poses and name != MODEL:
            if name in chain:
                raise self.elements[name].error(
                    f"its pose is relative to itself, by way of {listing(chain)}; break the circle of relative_to"
                )
            chain[name] = None
            name = self._reference(name)
        pose = self.poses.get(name, Placement())
        for each in reversed(chain):
            pose = pose @ read_pose(self.elements[each])
            self.poses[each] = pose
        return pose

    def _reference(self, name: str) -> str:
        """What the pose of `name` is relative to."""
        element, prefix = self.elements[name], self.prefix[name]
        pose = element.child("pose")
        wanted = pose.get("relative_to", "").strip() if pose is not None else ""
        if not wanted and element.tag == "frame":
            wanted = element.get("attached_to", "").strip()
        if not wanted and element.tag == "joint":
            return self.text(prefix, element.need("child"))
        return self.named(prefix, wanted or MODEL, element)

    def named(self, prefix: str, name: str, element: Element) -> str:
        """A name as written inside a model, with its path."""
        if name == MODEL:
            return prefix.removesuffix("::") or MODEL
        if prefix + name in self.elements:
            return prefix + name
        valid = [n.removeprefix(prefix) for n in self.elements if n.startswith(prefix)]
        raise element.error(str(not_found("link, joint or frame", name, valid)))

    def link_of(self, name: str, element: Element) -> str:
        """The link that a name stands for: itself, the child of a joint, what a frame is attached to."""
        seen: dict[str, None] = {}
        while name not in self.links and name not in self.carriers:
            if name in seen:
                raise element.error(f"{listing(seen)} are attached to each other in a circle; attach one to a link")
            seen[name] = None
            if name == MODEL or name in self.models or f"{name}::" in self.models:
                name = self.canonical("" if name == MODEL else f"{name}::", element)
                continue
            thing, prefix = self.elements[name], self.prefix[name]
            if thing.tag == "joint":
                name = self.text(prefix, thing.need("child"))
            else:
                name = self.named(prefix, thing.get("attached_to", "").strip() or MODEL, thing)
        link = self.carriers.get(name, name)
        self.carriers.update(dict.fromkeys(seen, link))
        return link

    def canonical(self, prefix: str, element: Element) -> str:
        """The link that carries a model's frame."""
        model = self.models[prefix]
        wanted = model.get("canonical_link", "").strip()
        if wanted:
            return self.named(prefix, wanted, model)
        for name in self.links:
            if self.prefix[name].startswith(prefix):
                return name
        raise element.error(f"the model '{model.get('name', '')}' has no link")

    def text(self, prefix: str, element: Element) -> str:
        """The name that an element such as <child> holds, with its path."""
        if not element.text:
            raise element.error("it names no link")
        return self.named(prefix, element.text, element)

    def pose_in(self, link: str, pose: Placement) -> Placement:
        """A pose in the model's frame, in the frame of a link."""
        return pose if link == WORLD else self.pose(link).inverse() @ pose


def read_pose(owner: Element) -> Placement:
    """The <pose> of an element: x y z roll pitch yaw, or a quaternion [x y z w] where it says so."""
    element = owner.child("pose")
    if element is None or not element.text:
        return Placement()
    with element.blamed():
        if element.get("rotation_format", "euler_rpy").strip() == "quat_xyzw":
            v = element.content(7)
            return Placement.from_quaternion(v[:3], v[3:])
        v = element.content(6)
        return Placement.at(v[:3], np.deg2rad(v[3:]) if is_true(element.get("degrees", "false")) else v[3:])


def is_true(text: str) -> bool:
    return text.strip().lower() in ("1", "true")
