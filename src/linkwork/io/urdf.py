"""URDF, and URDF+ with its loops and couplings.

Joints come in Pinocchio's order (depth first, the children of a link by joint name), so that `q` and `v` are
interchangeable with it; a continuous joint is one angle here. Visuals are kept for viewers, their meshes by name.
Damping and friction of joints are read (<dynamics>); and so are transmissions, as
motors; so are collisions; gazebo tags are not. `mimic` becomes
a `Coupling`, a URDF+ `<loop>` a `Closure`. Drake's `<drake:joint>` is a joint like others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from linkwork.errors import listing, not_found
from linkwork.io.shapes import urdf_colliders, urdf_visuals
from linkwork.io.urdf_transmissions import read_transmissions
from linkwork.io.xml import MAX_CONSTRAINTS, MAX_LINKS, Element
from linkwork.joints import Fixed, Free, Helical, Joint, Planar, Prismatic, Revolute, Spherical, Universal
from linkwork.model.body import BodyInertia, Placement
from linkwork.model.builder import Builder, base_joint
from linkwork.model.link import Limits
from linkwork.model.model import WORLD
from linkwork.model.visual import Look

KINDS = (
    *("revolute", "continuous", "prismatic", "screw", "fixed", "floating", "planar", "spherical"),
    *("ball", "universal"),  # Drake's
)
MAX_COUPLED = 40_000
"""Joints in all couplings together."""


def read_urdf(root: Element, base: str | None = None) -> Builder:
    """The robot of a <robot> element, on a "fixed" (default), "free" or "planar" base."""
    return _Reader(root).read("fixed" if base is None else base)


class _Reader:
    def __init__(self, root: Element) -> None:
        self.root = root
        self.links = _by_name(root, "link")
        self.joints = _by_name(root, "joint", "drake:joint")
        if WORLD not in self.links and any(_names_world(joint) for joint in self.joints.values()):
            self.links[WORLD] = Element("link", {"name": WORLD}, root.line, root.file)
        self.rotors = _rotors(root)
        self.builder = Builder(root.get("name", "robot").strip() or "robot", strict=False)
        self.into: dict[str, Element] = {}
        self.out: dict[str, list[Element]] = {name: [] for name in self.links}
        self.called = {name: name for name in self.links}
        self.coupled = 0
        self.materials = {m.get("name", ""): m for m in root.all("material")}

    def read(self, base: str) -> Builder:
        joint = base_joint(base)
        self._connect()
        root = self._root_link()
        if WORLD in self.links and not (root == WORLD and isinstance(joint, Fixed)):
            self.called[WORLD] = _unused("world_link", self.links)
        self._place_root(root, joint)
        for joint_element in self._depth_first(root):
            self._joint(joint_element)
        for name, element in self.links.items():
            if element.child("visual") is not None:
                self.builder.look(self.called[name], Look(partial(urdf_visuals, element, _origin, self.materials)))
            if element.child("collision") is not None:
                self.builder.outline(self.called[name], Look(partial(urdf_colliders, element, _origin)))
        self._couple()
        movable = {n for n, j in self.joints.items() if _joint_type(j)[0].nv == 1}
        self.builder.actuators += read_transmissions(self.root, movable)
        return self.builder

    def _connect(self) -> None:
        """Which joint leads to each link, which joints leave it."""
        if not self.links:
            raise self.root.error("there is no <link>; a robot has at least one")
        if len(self.links) > MAX_LINKS:
            raise self.root.error(f"{len(self.links)} links; at most {MAX_LINKS} are read")
        for name in sorted(self.joints):
            joint = self.joints[name]
            parent, child = self._link_of(joint.need("parent")), self._link_of(joint.need("child"))
            if child in self.into:
                raise joint.error(
                    f"link '{child}' is already the child of joint '{self.into[child].name}'; a link has one parent: "
                    "close loops by a <loop> element (URDF+) or a closure instead of a second joint"
                )
            self.into[child] = joint
            self.out[parent].append(joint)

    def _link_of(self, element: Element) -> str:
        name = element.get("link").strip()
        if name not in self.links:
            raise element.error(str(not_found("link", name, self.links)))
        return name

    def _root_link(self) -> str:
        roots = [name for name in self.links if name not in self.into]
        if len(roots) > 1:
            raise self.root.error(
                f"the links {listing(roots)} have no parent; a robot has one root: join them by fixed joints, or "
                "delete those that are not used"
            )
        reached = {self._link_of(j.need("child")) for r in roots for j in self._depth_first(r)} | set(roots)
        lost = [name for name in self.links if name not in reached]
        if lost:
            raise self.into[lost[0]].error(
                f"the links {listing(lost)} are joined in a cycle and hang on nothing; remove one joint of the cycle "
                "and close it by a <loop> element (URDF+) or a closure"
            )
        return roots[0]

    def _depth_first(self, root: str) -> Iterator[Element]:
        stack = list(reversed(self.out[root]))
        while stack:
            joint = stack.pop()
            yield joint
            stack.extend(reversed(self.out[self._link_of(joint.need("child"))]))

    def _place_root(self, root: str, joint: Joint) -> None:
        """The root on the world. A massless root that a floating joint leaves is free already."""
        element = self.links[root]
        inertia = _inertia(element)
        leaving = [j.get("type").strip() for j in self.out[root]]
        if isinstance(joint, Free) and not inertia.mass and leaving == ["floating"]:
            joint = Fixed()
            if root == WORLD:
                self.called[WORLD] = WORLD
        if self.called[root] == WORLD:
            return
        with element.blamed():
            name = _unused("root_joint", self.joints)
            self.builder.link(self.called[root], joint=joint, inertia=inertia, joint_name=name, actuated=False)

    def _joint(self, element: Element) -> None:
        """One joint and the link behind it."""
        parent = self.called[self._link_of(element.need("parent"))]
        child = self._link_of(element.need("child"))
        joint, turned = _joint_type(element)
        placement, inertia = _origin(element), _inertia(self.links[child])
        name = self.called[child]
        with element.blamed():
            if turned is not None:  # a planar joint whose normal is not z: a massless link with the plane's axes
                plane = _unused(f"{name}/plane", self.links)
                self.builder.link(
                    plane, parent, joint, placement=placement @ turned, joint_name=element.name, **_dynamics(element)
                )
                parent, joint, placement = plane, Fixed(), turned.inverse()
            self.builder.link(
                name,
                parent,
                joint,
                placement=placement,
                inertia=inertia,
                limits=_limits(element),
                armature=self.rotors.get(element.name, 0.0) if joint.nv == 1 else 0.0,
                actuated=not isinstance(joint, Free),
                joint_name=element.name if turned is None else f"{element.name}/plane",
                **(_dynamics(element) if joint.nv else {}),
            )

    def _couple(self) -> None:
        """Mimicking joints, URDF+ couplings and loops, and the joints that stay independent."""
        dependent = {n for n, j in self.joints.items() if j.get("independent", "true").strip().lower() == "false"}
        dangling: list[str] = []
        for name, joint in self.joints.items():
            mimic = joint.child("mimic")
            if mimic is not None and _moves(joint):
                (dependent.add if self._mimic(name, mimic) else dangling.append)(name)
        if dangling:  # occurs in real files
            self.root.warn(f"the joints {listing(dangling)} mimic joints that are not there; they are left free")
        ties = [*self.root.all("coupling"), *self.root.all("loop")]
        if len(ties) > MAX_CONSTRAINTS:
            raise self.root.error(f"{len(ties)} loops and couplings; at most {MAX_CONSTRAINTS} are read")
        for coupling in self.root.all("coupling"):
            self._coupling(coupling)
        for loop in self.root.all("loop"):
            self._loop(loop)
        if dependent:
            moving = [d.joint_name for d in self.builder._drafts.values() if d.joint.nv]
            self.builder.independent = [n for n in moving if n not in dependent]

    def _mimic(self, name: str, mimic: Element) -> bool:
        """Couple a joint to the one that it mimics, if that is there."""
        from linkwork.constraints import Coupling

        other = mimic.get("joint").strip()
        if other not in self.joints:
            return False
        if other == name:
            raise mimic.error(f"joint '{name}' mimics itself; name another joint")
        self._one_degree(mimic, name, other)
        ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
        terms = {other: [ratio]} if _moves(self.joints[other]) else {}
        self.builder.constraints.append(Coupling(name, terms, offset, name=f"{name}/mimic"))
        return True

    def _coupling(self, element: Element) -> None:
        """The joints from the common ancestor to the successor turn `ratio` times those to the predecessor."""
        from linkwork.constraints import Coupling

        before = self._path(self._link_of(element.need("predecessor")))
        behind = self._path(self._link_of(element.need("successor")))
        while before and behind and before[0] == behind[0]:
            before, behind = before[1:], behind[1:]
        if not behind:
            raise element.error(
                "no joint moves the successor against the common ancestor of both links; a coupling needs one"
            )
        ratio = element.need("ratio").number("value")
        self.coupled += len(before) + len(behind)
        if self.coupled > MAX_COUPLED:
            raise element.error(f"couplings of more than {MAX_COUPLED} joints in all; at most so many are read")
        self._one_degree(element, *before, *behind)
        terms = {n: [ratio] for n in before} | {n: [-1.0] for n in behind[:-1]}
        self.builder.constraints.append(Coupling(behind[-1], terms, name=element.get("name", f"{behind[-1]}/coupling")))

    def _path(self, link: str) -> list[str]:
        """The joints that move a link, from the root."""
        path = []
        while link in self.into:
            joint = self.into[link]
            if _moves(joint):
                path.append(joint.name)
            link = self._link_of(joint.need("parent"))
        return path[::-1]

    def _one_degree(self, element: Element, *names: str) -> None:
        for name in names:
            kind = self.joints[name].get("type").strip()
            if kind in ("floating", "planar", "spherical"):
                raise element.error(f"joint '{name}' is {kind}; only joints of one degree of freedom are coupled")

    def _loop(self, element: Element) -> None:
        from linkwork.constraints import Closure
        from linkwork.constraints.closure import ALIASES
        from linkwork.io.divided import beyond_closures

        name, kind = element.name, element.get("type").strip()
        has = {**_dynamics(element), "limits": _limits(element)}
        more = beyond_closures(ALIASES.get(kind, kind), has)
        for role in ("predecessor", "successor"):
            end = element.need(role)
            with end.blamed():
                self.builder.frame(f"{name}/{role}", self.called[self._link_of(end)], _origin(end))
        with element.blamed():
            axis = _axis(element)
            second = np.eye(3)[int(np.argmin(np.abs(axis)))]
            second = second - (second @ axis) * axis
            ends, damping = (f"{name}/predecessor", f"{name}/successor"), 0.0 if more else has.get("damping", 0.0)
            cut = Closure(*ends, kind, tuple(axis), tuple(second), name=name, damping=damping)
            self.builder.constraints.append(cut)
            if more:
                self.builder._at_cuts[name] = has


def _by_name(root: Element, *tags: str) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in (x for tag in tags for x in root.all(tag)):
        name = element.name
        if name in found:
            other = f"another {tags[0]} of this name on line {found[name].line}"
            raise element.error(f"there is {other}; rename one of them")
        found[name] = element
    return found


def _unused(name: str, taken: dict[str, Element]) -> str:
    while name in taken:
        name += "_"
    return name


def _names_world(joint: Element) -> bool:
    """Whether a joint hangs on the world, which files name without a <link> for it."""
    parent = joint.child("parent")
    return parent is not None and parent.get("link", "").strip() == WORLD


def _rotors(root: Element) -> dict[str, float]:
    """Reflected inertias of rotors by joint, as Drake writes them into transmissions.

    Inertia times gear ratio squared.

    Several actuators of one joint add up.
    """
    found: dict[str, float] = {}
    for transmission in root.all("transmission"):
        total = 0.0
        for actuator in transmission.all("actuator"):
            inertia, ratio = actuator.child("drake:rotor_inertia"), actuator.child("drake:gear_ratio")
            if inertia is not None:
                value = inertia.number("value")
                if value < 0:
                    raise inertia.error(f"the inertia of a rotor is negative ({value:g}); correct it")
                total += value * (1.0 if ratio is None else ratio.number("value")) ** 2
        for joint in transmission.all("joint") if total else ():
            name = joint.get("name", joint.text).strip()
            found[name] = found.get(name, 0.0) + total
    return found


def _moves(joint: Element) -> bool:
    return joint.get("type").strip() != "fixed"


def _origin(owner: Element) -> Placement:
    element = owner.child("origin")
    if element is None:
        return Placement()
    xyz = element.numbers("xyz", 3, (0.0, 0.0, 0.0))
    with element.blamed():
        if "quat_xyzw" in element.attributes:
            return Placement.from_quaternion(xyz, element.numbers("quat_xyzw", 4))
        return Placement.at(xyz, element.numbers("rpy", 3, (0.0, 0.0, 0.0)))


def _axis(owner: Element) -> np.ndarray:
    """The unit axis of a joint or loop; URDF's default is x."""
    element = owner.child("axis")
    if element is None:
        return np.array([1.0, 0.0, 0.0])
    axis = element.numbers("xyz", 3, (1.0, 0.0, 0.0))
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise element.error("the axis is the zero vector; give the direction of the joint")
    return np.asarray(axis / length)


def _joint_type(element: Element) -> tuple[Joint, Placement | None]:
    """The joint; for a planar one whose normal is not z, also the axes of its plane."""
    kind = element.get("type").strip()
    if kind in ("revolute", "continuous"):
        return Revolute(_axis(element)), None
    if kind == "prismatic":
        return Prismatic(_axis(element)), None
    if kind == "screw":
        return Helical(_axis(element), _pitch(element)), None
    if kind == "planar":
        return Planar(), _plane(_axis(element))
    simple: dict[str, type[Joint]] = {
        "fixed": Fixed, "floating": Free, "spherical": Spherical, "ball": Spherical, "universal": Universal,
    }  # fmt: skip
    if kind not in simple:
        raise element.error(str(not_found("joint type", kind, KINDS)))
    return simple[kind](), None


def _pitch(joint: Element) -> float:
    """Metres per radian of a screw; <screw_thread_pitch value="..."/> (or drake:...) is per turn."""
    element = next((c for c in joint.children if c.tag.endswith("screw_thread_pitch")), None)
    if element is None:
        raise joint.error('a screw needs <screw_thread_pitch value="..."/>: how many metres it advances in one turn')
    return element.number("value") / (2 * np.pi)


def _plane(normal: np.ndarray) -> Placement | None:
    """Axes whose z is the normal, by the shortest turn; None if z is the normal already."""
    z = np.array([0.0, 0.0, 1.0])
    if np.abs(normal - z).max() < 1e-12:
        return None
    middle = z + normal  # two half turns: about z, then about the bisector of z and the normal
    if np.linalg.norm(middle) < 1e-6:
        return Placement(np.diag([1.0, -1.0, -1.0]))
    middle = middle / np.linalg.norm(middle)
    return Placement((2 * np.outer(middle, middle) - np.eye(3)) @ np.diag([-1.0, -1.0, 1.0]))


def _limits(joint: Element) -> Limits:
    element = joint.child("limit")
    if element is None:
        return Limits()
    effort = element.number("effort", np.inf, bounded=False)
    velocity = element.number("velocity", np.inf, bounded=False)
    if joint.get("type").strip() == "continuous":
        return Limits(effort=effort, velocity=velocity)
    lower, upper = element.number("lower", 0.0, bounded=False), element.number("upper", 0.0, bounded=False)
    return Limits(*element.ordered(lower, upper), effort, velocity)


def _dynamics(joint: Element) -> dict[str, Any]:
    """Viscous damping and dry friction; negative values, which drive a joint, are ignored."""
    element = joint.child("dynamics")
    if element is None:
        return {}
    found = {n: element.number(n, 0.0) for n in ("damping", "friction")}
    if min(found.values()) < 0:
        element.warn("ignored: negative damping or friction drives a joint")
    return {n: max(x, 0.0) for n, x in found.items()}


def _inertia(link: Element) -> BodyInertia:
    """The <inertial> data in link axes; nothing stands for a massless link."""
    element = link.child("inertial")
    if element is None:
        return BodyInertia()
    data = element.child("inertia")
    if data is None and element.child("mass") is None:  # occurs in real files, some with a density in its place
        element.warn("there is no <mass>; the link is massless, as without <inertial>")
        return BodyInertia()
    mass = element.need("mass").number("value")
    if data is None:  # so does this
        element.warn("there is no <inertia>; the link is a point mass at its centre of mass")
        data = Element("inertia", dict.fromkeys(("ixx", "iyy", "izz"), "0"), element.line, element.file)
    xx, yy, zz = (data.number(a) for a in ("ixx", "iyy", "izz"))
    xy, xz, yz = (data.number(a, 0.0) for a in ("ixy", "ixz", "iyz"))
    remedy = "correct the <inertial> data, or leave it out for a link without mass"
    if mass < 0:
        raise link.error(f"the mass is negative ({mass:g}); {remedy}")
    if min(xx, yy, zz) < -1e-9 * max(xx, yy, zz) - 1e-15:
        raise link.error(f"a moment of inertia is negative ({min(xx, yy, zz):g}); {remedy}")
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    with link.blamed():
        return BodyInertia(mass, np.zeros(3), I).moved(_origin(element))
