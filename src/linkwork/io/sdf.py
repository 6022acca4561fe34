"""SDF: joints may form any graph, and all poses are those where every joint is at zero.

A spanning tree is chosen (see spanning.py) that keeps fixed joints, then joints with one degree of freedom (those with
limits first, which are the driven ones), and cuts ball joints first, unless the user names the joints to cut; a cut
joint becomes a `Closure` of its own type, closed at zero.
A part of the graph that no joint ties to the world has a free base, at its canonical link. Where the tree runs
through a joint from child to parent, the joint is reversed: angles and lengths keep their signs; the quaternion
of a ball joint is then the inverse.

Read: `relative_to`, `attached_to`, `expressed_in`, `use_parent_model_frame`, nested models (their names are
"model::link"), joint types revolute, continuous, prismatic, ball, universal, revolute2, screw, fixed, and gearbox and
mimic as couplings; links that gravity does not pull; inertias of primitive shapes by density (auto="true"). Gravity is
the world's, (0, 0, -9.8) where a <world> gives none, and Linkwork's default where there is no world; damping, springs
and friction of axes, also of joints that are cut. Not modelled: sensors, plugins. Models in <include> are read where
they are files of the robot's own (sdf_include.py); of a world with several models one is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from linkwork.errors import listing, not_found
from linkwork.io.sdf_include import included
from linkwork.io.sdf_scope import MODEL, Scope, is_true, read_pose
from linkwork.io.shapes import sdf_colliders, sdf_visuals
from linkwork.io.solids import WATER, sdf_solid
from linkwork.io.spanning import GraphJoint, spanning_tree
from linkwork.io.xml import MAX_CONSTRAINTS, MAX_LINKS, MAX_NUMBER, Element
from linkwork.joints import Fixed, Helical, Joint, Prismatic, Revolute, Spherical, Universal
from linkwork.model.body import BodyInertia, Placement
from linkwork.model.builder import Builder, base_joint
from linkwork.model.link import Limits
from linkwork.model.model import WORLD
from linkwork.model.visual import Look

CLOSED_BY = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "screw": "helical",
    "universal": "universal",
    "revolute2": "universal",
    "ball": "spherical",
}
FREEDOM = {"fixed": 0, "universal": 2, "revolute2": 2, "ball": 3}
MAX_NAMES = 3 * MAX_LINKS
GRAVITY = (0.0, 0.0, -9.8)
"""Gravity of a <world> that gives none."""


def read_sdf(
    root: Element,
    base: str | None = None,
    cut: Sequence[str] = (),
    model: str | None = None,
    path: Path | None = None,
) -> Builder:
    """The robot of an <sdf> element, called `model` where there are several, in the file `path`.

    `base` is the joint of a model that no joint ties to the world.
    """
    included(root, path)
    return _Reader(root, model).read(base, cut)


@dataclass
class _Edge:
    """A joint between two links: its pose in the model and its axes in its own frame."""

    element: Element
    name: str
    kind: str
    parent: str
    child: str
    pose: Placement
    axes: list[np.ndarray]

    @property
    def limited(self) -> bool:
        axis = self.element.child("axis")
        return axis is not None and axis.child("limit") is not None

    @property
    def in_graph(self) -> GraphJoint:
        """The data by which the spanning tree is chosen."""
        return GraphJoint(self.name, self.parent, self.child, FREEDOM.get(self.kind, 1), self.limited)


class _Reader:
    def __init__(self, root: Element, model: str | None) -> None:
        self.root = root
        try:
            self.version = tuple(int(n) for n in root.get("version", "1.6").strip().split(".")[:2])
        except ValueError:
            raise root.error(f"the version is {root.get('version')!r}; it must be two numbers such as 1.6") from None
        self.model, world = self._only_model(model)
        self.builder = Builder(self.model.name, strict=False)
        if world is not None:
            self.builder.gravity = _gravity(world)
        self.scope = Scope()
        self.scope.collect(self.model)

    def read(self, base: str | None, cut: Sequence[str] = ()) -> Builder:
        if not self.scope.links:
            raise self.model.error("there is no <link>; a robot has at least one")
        if len(self.scope.links) > MAX_LINKS:
            raise self.model.error(f"{len(self.scope.links)} links; at most {MAX_LINKS} are read")
        if len(self.scope.elements) > MAX_NAMES:
            raise self.model.error(f"{len(self.scope.elements)} links, joints and frames; at most {MAX_NAMES} are read")
        for name in self.scope.elements:
            self.scope.pose(name)
        edges = [e for name, element in self.scope.joints.items() if (e := self._edge(name, element)) is not None]
        links, first = [WORLD, *self.scope.links], self.scope.link_of(self.scope.canonical("", self.model), self.model)
        with self.model.blamed():
            kept = {j.name for j in spanning_tree(links, [e.in_graph for e in edges], (WORLD, first), cut)[0]}
        tree = [e for e in edges if e.name in kept]
        if len(edges) - len(tree) > MAX_CONSTRAINTS:
            raise self.model.error(f"{len(edges) - len(tree)} joints close loops; at most {MAX_CONSTRAINTS} are read")
        self._hang(tree, base)
        for name, element in self.scope.links.items():
            self.builder.look(name, Look(partial(sdf_visuals, element, read_pose)))
            meets = 1 if self.scope.meets_its_own(name) else 0
            self.builder.outline(name, Look(partial(sdf_colliders, element, read_pose, meets)))
        for name in self.scope.frames:
            carrier = self.scope.link_of(name, self.scope.frames[name])
            self.builder.frame(name, carrier, self.scope.pose_in(carrier, self.scope.pose(name)))
        for edge in edges:
            if edge.name not in kept:
                self._close(edge)
        for name, element in self.scope.joints.items():
            self._couple(name, element, edges, kept)
        return self.builder

    def _only_model(self, name: str | None) -> tuple[Element, Element | None]:
        """The model of this name, else the only one of the file that can move; and the world."""
        world = self.root.child("world")
        models = [*self.root.all("model"), *(world.all("model") if world is not None else [])]
        moving = [m for m in models if not _static(m)] or models
        if name is not None:
            moving = [m for m in models if m.get("name", "") == name][:1]
            if not moving:
                raise self.root.error(str(not_found("model", name, [m.get("name", "") for m in models])))
        if not moving:
            raise self.root.error("there is no <model>; a robot is one")
        if len(moving) > 1:
            raise self.root.error(
                f"there are {len(moving)} models ({listing([m.get('name', '?') for m in moving])}); name one by model="
            )
        return moving[0], world

    # joints

    def _end(self, prefix: str, element: Element) -> str:
        """The link that <parent> or the like names; only a parent may be the world."""
        if element.text == WORLD and element.tag == "parent":
            return WORLD
        return self.scope.link_of(self.scope.text(prefix, element), element)

    def _edge(self, name: str, element: Element) -> _Edge | None:
        kind, prefix = element.get("type").strip(), self.scope.prefix[name]
        parent, child = self._end(prefix, element.need("parent")), self._end(prefix, element.need("child"))
        if parent == child:
            raise element.error(f"parent and child are both '{parent}'; a joint joins two links")
        if kind == "gearbox":
            return None
        if kind not in CLOSED_BY:
            raise element.error(str(not_found("joint type", kind, [*CLOSED_BY, "gearbox"])))
        pose = self.scope.pose(name)
        count = {"fixed": 0, "ball": 0, "universal": 2, "revolute2": 2}.get(kind, 1)
        axes = [self._axis(name, element, pose, tag) for tag in ("axis", "axis2")[:count]]
        return _Edge(element, name, kind, parent, child, pose, axes)

    def _axis(self, name: str, joint: Element, pose: Placement, tag: str) -> np.ndarray:
        """A unit axis in the joint's frame."""
        element = joint.need(tag)
        data = element.child("xyz")
        axis = data.content(3) if data is not None else np.array([0.0, 0.0, 1.0])
        length = float(np.linalg.norm(axis))
        if length < 1e-9:
            raise element.error("the axis is the zero vector; give the direction of the joint")
        flag = element.child("use_parent_model_frame")
        in_model = is_true(flag.text) if flag is not None else self.version < (1, 5)
        frame = data.get("expressed_in", "").strip() if data is not None else ""
        if frame:
            seen_from = self.scope.pose(self.scope.named(self.scope.prefix[name], frame, element))
        elif in_model:
            seen_from = self.scope.pose(self.scope.prefix[name].removesuffix("::") or MODEL)
        else:
            return np.asarray(axis / length)
        return np.asarray(pose.R.T @ seen_from.R @ axis / length)

    def _hang(self, tree: list[_Edge], base: str | None) -> None:
        """The links on the world, from the roots outwards."""
        beside: dict[str, list[_Edge]] = {name: [] for name in (WORLD, *self.scope.links)}
        for edge in tree:
            beside[edge.parent].append(edge)
            beside[edge.child].append(edge)
        done: set[str] = set()
        first = self.scope.link_of(self.scope.canonical("", self.model), self.model)
        for root in (WORLD, first, *self.scope.links):
            if root in done:
                continue
            if root != WORLD:
                self._place_root(root, base, tied=WORLD in done and bool(beside[WORLD]))
            done.add(root)
            stack = [(root, e) for e in reversed(beside[root])]
            while stack:
                inner, edge = stack.pop()
                outer = edge.child if edge.parent == inner else edge.parent
                if outer in done:
                    continue
                done.add(outer)
                self._joint(edge, inner, outer)
                stack.extend((outer, e) for e in reversed(beside[outer]))
        if base in ("free", "planar") and beside[WORLD]:
            raise self.model.error(f"base='{base}', but joint '{beside[WORLD][0].name}' ties the model to the world")

    def _place_root(self, root: str, base: str | None, tied: bool) -> None:
        """A link that no joint ties to the world: on a free base unless the file or `base` says otherwise."""
        kind = base or ("fixed" if _static(self.model) else "free")
        joint = base_joint("free" if tied else kind)
        placement = read_pose(self.model) @ self.scope.pose(root) if isinstance(joint, Fixed) else Placement()
        taken = "root_joint" in self.builder._joint_names or "root_joint" in self.scope.joints
        name = f"{root}/root_joint" if taken else "root_joint"
        inertia, weightless = self._inertia(root)
        with self.scope.links[root].blamed():
            self.builder.link(
                root,
                WORLD,
                joint,
                placement=placement,
                inertia=inertia,
                weightless=weightless,
                joint_name=name,
                actuated=False,
            )

    def _joint(self, edge: _Edge, inner: str, outer: str) -> None:
        """A joint of the tree and the link beyond it; the joint has the axes of that link."""
        pose = self.scope.pose(outer)
        at = (pose.inverse() @ edge.pose).p
        turn = pose.R.T @ edge.pose.R * (1.0 if inner == edge.parent else -1.0)
        axes = [turn @ a for a in edge.axes]
        if inner != edge.parent:
            axes.reverse()
        joint = _make(edge, axes)
        if isinstance(joint, Prismatic | Fixed) or np.abs(at).max() < 1e-15:
            at = np.zeros(3)
        inside = read_pose(self.model).inverse() if inner == WORLD else self.scope.pose(inner)
        placement = inside.inverse() @ pose @ Placement(p=at)
        inertia, weightless = self._inertia(outer)
        with edge.element.blamed():
            if not at.any():
                self.builder.link(
                    outer,
                    inner,
                    joint,
                    placement=placement,
                    inertia=inertia,
                    weightless=weightless,
                    joint_name=edge.name,
                    limits=_limits(edge),
                    **_dynamics(edge, inner != edge.parent),
                )
                return
            carrier = f"{outer}/{edge.name}"
            self.builder.link(
                carrier,
                inner,
                joint,
                placement=placement,
                joint_name=edge.name,
                limits=_limits(edge),
                **_dynamics(edge, inner != edge.parent),
            )
            self.builder.link(
                outer,
                carrier,
                "fixed",
                placement=Placement(p=-at),
                inertia=inertia,
                weightless=weightless,
                joint_name=f"{edge.name}/fixed",
            )

    def _inertia(self, name: str) -> tuple[BodyInertia, BodyInertia | None]:
        """A link's inertia in its axes, and the part that gravity does not pull: all of it, or nothing."""
        link = self.scope.links[name]
        kinematic, inertial = link.child("kinematic"), link.child("inertial")
        if kinematic is not None and is_true(kinematic.text):
            kinematic.warn("ignored: links whose motion is given are not modelled, this one moves by forces")
        if inertial is not None and inertial.child("fluid_added_mass") is not None:
            inertial.need("fluid_added_mass").warn("ignored: added mass is not modelled")
        automatic = inertial is not None and is_true(inertial.get("auto", "false"))
        body = self._solid(name, link, link.need("inertial")) if automatic else _inertia(link)
        pulled = link.child("gravity")
        return body, None if pulled is None or is_true(pulled.text) else body

    def _solid(self, name: str, link: Element, inertial: Element) -> BodyInertia:
        """The inertia of a link's collision shapes by their densities; scaled to <mass> where that is given."""
        body, density = BodyInertia(), _value(inertial, "density", WATER)
        for collision in link.all("collision"):
            own = _value(collision, "density", density)
            if not own > 0:
                raise collision.error(f"the density is {own:g}; a body has one above zero")
            solid = sdf_solid(collision.need("geometry"), own)
            pose = collision.child("pose")
            beside = pose.get("relative_to", "").strip() if pose is not None else ""
            frame = self.scope.named(self.scope.prefix[name], beside, collision) if beside else name
            with collision.blamed():
                body = body + solid.moved(self.scope.pose_in(name, self.scope.pose(frame)) @ read_pose(collision))
        if not 0 < body.mass <= MAX_NUMBER:
            raise inertial.error(
                'auto="true" needs <collision> shapes with a volume and a density above zero; add them, or give '
                "<mass> and <inertia> without auto"
            )
        share = _value(inertial, "mass", body.mass) / body.mass
        return BodyInertia(share * body.mass, body.com, share * body.I)

    def _close(self, edge: _Edge) -> None:
        """A joint that the tree leaves out, as a closure between frames on its two links.

        What a closure cannot have is kept for the finished model (divided.py).
        """
        from linkwork.constraints import Closure
        from linkwork.io.divided import RESISTANCE, beyond_closures

        found, kind = _dynamics(edge), CLOSED_BY[edge.kind]
        has = {**found, "limits": _limits(edge)}
        resists: dict[str, Any] = {}
        if beyond_closures(kind, has):
            self.builder._at_cuts[edge.name] = has
        elif any(np.any(found.get(n)) for n in ("damping", "stiffness")):
            resists = {n: float(found[n][0]) for n in RESISTANCE}
        with edge.element.blamed():
            for end, link in (("child", edge.child), ("parent", edge.parent)):
                pose = read_pose(self.model) @ edge.pose if link == WORLD else self.scope.pose_in(link, edge.pose)
                self.builder.frame(f"{edge.name}/{end}", link, pose)
            axis = tuple(edge.axes[0]) if edge.axes else "z"
            second = tuple(edge.axes[1]) if len(edge.axes) > 1 else "x"
            pitch = _pitch(edge.element) if edge.kind == "screw" else 0.0
            ends = f"{edge.name}/child", f"{edge.name}/parent"
            cut = Closure(ends[0], ends[1], CLOSED_BY[edge.kind], axis, second, pitch, name=edge.name, **resists)
            self.builder.constraints.append(cut)

    def _couple(self, name: str, element: Element, edges: list[_Edge], kept: set[str]) -> None:
        """Gearboxes, theta_2 = -ratio theta_1, and mimicking axes, as couplings of joints of the tree."""
        from linkwork.constraints import Coupling

        if element.get("type").strip() == "gearbox":
            prefix = self.scope.prefix[name]
            reference = self._end(prefix, element.need("gearbox_reference_body"))
            pose, ends = self.scope.pose(name), []
            for role, tag in (("parent", "axis"), ("child", "axis2")):
                link = self._end(prefix, element.need(role))
                axis = pose.R @ self._axis(name, element, pose, tag)
                ends.append(_between(edges, kept, reference, link, axis))
            if ends[0] is None or ends[1] is None or ends[0][0] == ends[1][0]:
                element.warn("left out: the tree has no two joints from the reference body that this gearbox couples")
                return
            (one, sign_one), (two, sign_two) = ends[0], ends[1]
            ratio_element = element.child("gearbox_ratio")
            ratio = float(ratio_element.content(1)[0]) if ratio_element is not None else 1.0
            self.builder.constraints.append(Coupling(two, {one: [-ratio * sign_one * sign_two]}, name=name))
            return
        axis_element = element.child("axis")
        mimic = axis_element.child("mimic") if axis_element is not None else None
        if mimic is not None:
            other = self.scope.named(self.scope.prefix[name], mimic.get("joint").strip(), mimic)
            if name not in kept or other not in kept:
                mimic.warn("left out: one of the two joints is not in the tree")
                return
            ratio, offset = _value(mimic, "multiplier", 1.0), _value(mimic, "offset", 0.0)
            offset = offset - ratio * _value(mimic, "reference", 0.0)
            self.builder.constraints.append(Coupling(name, {other: [ratio]}, offset, name=f"{name}/mimic"))


def _between(
    edges: list[_Edge], kept: set[str], reference: str, link: str, axis: np.ndarray
) -> tuple[str, float] | None:
    """The joint that turns a link against the reference body, and its sign about the axis given."""
    for e in edges:
        if e.name in kept and {e.parent, e.child} == {reference, link} and e.kind in ("revolute", "continuous"):
            along = float(e.pose.R @ e.axes[0] @ axis)
            if abs(along) > 0.9:
                return e.name, np.sign(along) * (1.0 if e.child == link else -1.0)
    return None


def _make(edge: _Edge, axes: list[np.ndarray]) -> Joint:
    with edge.element.blamed():
        if edge.kind == "fixed":
            return Fixed()
        if edge.kind == "ball":
            return Spherical()
        if edge.kind == "prismatic":
            return Prismatic(axes[0])
        if edge.kind == "screw":
            return Helical(axes[0], _pitch(edge.element))
        return Universal(*axes) if len(axes) == 2 else Revolute(axes[0])


def _pitch(joint: Element) -> float:
    """Metres per radian, of <screw_thread_pitch> (m per turn) or the old <thread_pitch> (-rad per m)."""
    if joint.child("screw_thread_pitch") is not None:
        return _value(joint, "screw_thread_pitch", 0.0) / (2 * np.pi)
    old = _value(joint, "thread_pitch", 0.0)
    return -1 / old if abs(old) > 1e-30 else 0.0


def _limits(edge: _Edge) -> Limits:
    axis = edge.element.child("axis")
    element = axis.child("limit") if axis is not None and edge.kind not in ("fixed", "ball") else None
    if element is None:
        return Limits()
    lower, upper = _value(element, "lower", -np.inf, bounded=False), _value(element, "upper", np.inf, bounded=False)
    effort, velocity = (_value(element, t, -1.0, bounded=False) for t in ("effort", "velocity"))
    lower, upper = element.ordered(lower if lower > -1e15 else -np.inf, upper if upper < 1e15 else np.inf)
    return Limits(
        lower,
        upper,
        effort if effort >= 0 else np.inf,
        velocity if velocity >= 0 else np.inf,
    )


def _dynamics(edge: _Edge, turned: bool = False) -> dict[str, Any]:
    """Damping, spring and friction of each axis, in the order of the joint's coordinates."""
    tags = {"damping": "damping", "stiffness": "spring_stiffness", "rest": "spring_reference", "friction": "friction"}
    axes = [edge.element.child(tag) for tag in ("axis", "axis2")[: len(edge.axes)]]
    data = [None if axis is None else axis.child("dynamics") for axis in (reversed(axes) if turned else axes)]
    if not any(data):
        return {}
    found = {n: np.array([_value(d, tag, 0.0) for d in data]) for n, tag in tags.items()}
    if any(np.any(x < 0) for n, x in found.items() if n != "rest"):
        edge.element.warn("ignored: negative damping, friction or stiffness drives a joint")
    return {n: x if n == "rest" else np.maximum(x, 0.0) for n, x in found.items()}


def _inertia(link: Element) -> BodyInertia:
    """The <inertial> data in link axes; SDF's default is one kilogram and one kg m^2."""
    element = link.child("inertial")
    mass = _value(element, "mass", 1.0) if element is not None else 1.0
    data = element.child("inertia") if element is not None else None
    values = {t: _value(data, t, float(t[1] == t[2])) for t in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
    least = min(values["ixx"], values["iyy"], values["izz"])
    if mass < 0 or least < -1e-9 * max(values.values()) - 1e-15:
        raise link.error(f"a negative mass or moment of inertia ({min(mass, least):g}); correct the <inertial> data")
    I = np.array([[values["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
    place = Placement()
    if element is not None:
        pose = element.child("pose")
        if pose is not None and pose.get("relative_to", "").strip():
            raise pose.error("the pose of an <inertial> is relative to its link; remove relative_to")
        place = read_pose(element)
    with link.blamed():
        return BodyInertia(mass, np.zeros(3), I).moved(place)


def _gravity(world: Element) -> np.ndarray:
    """The gravity of a world; until version 1.5 it was its physics engine's."""
    physics = world.child("physics")
    element = world.child("gravity") or (physics.child("gravity") if physics is not None else None)
    return np.array(GRAVITY) if element is None else element.content(3)


def _value(owner: Element | None, tag: str, default: float, *, bounded: bool = True) -> float:
    element = owner.child(tag) if owner is not None else None
    return default if element is None else float(element.content(1, bounded=bounded)[0])


def _static(model: Element) -> bool:
    element = model.child("static")
    return element is not None and is_true(element.text)
