"""USD: rigid bodies and joints of UsdPhysics; loops are joints excluded from an articulation.

Joints may form any graph: those with `excludeFromArticulation` become closures of their own type, and further loops
are cut by the rule for SDF (spanning.py). A joint's two frames coincide at zero, wherever the file has its bodies;
each is seen from the prim that the joint names, which may be a part of a body, or stand still.
Where the tree runs through a joint from its second body to its first, the joint is reversed; angles keep their signs.

Read: revolute, prismatic, spherical and fixed joints with their limits and drives (usd_drives.py), armature and speed
limits of PhysX, masses, centres of mass and inertias, gravity of the physics scene, units and scales of the stage. Not
modelled: joints of free choice (D6), distances, masses by density, friction of PhysX, looks. Layers that the file
refers to are the robot's own (usd_layers.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwork.errors import MissingExtra, listing, not_found
from linkwork.io.spanning import GraphJoint, spanning_tree
from linkwork.io.usd_drives import read_drive
from linkwork.io.usd_layers import MAX_PRIMS, check_layers
from linkwork.io.xml import MAX_CONSTRAINTS, MAX_LINKS, Element
from linkwork.joints import Fixed, Joint, Prismatic, Revolute, Spherical
from linkwork.model.actuator import Actuator
from linkwork.model.body import BodyInertia, Placement
from linkwork.model.builder import Builder, base_joint
from linkwork.model.link import Limits
from linkwork.model.model import WORLD

ARMATURE = "physxJoint:armature"
AXES = {"X": 0, "Y": 1, "Z": 2}
FREEDOM = {"fixed": 0, "revolute": 1, "prismatic": 1, "spherical": 3}


def read_usd(
    root: Element, path: Path, base: str | None = None, cut: Sequence[str] = (), model: str | None = None
) -> Builder:
    """The articulation of a stage, called `model` where there are several.

    `root` stands for the file in errors.
    """
    try:
        from pxr import Tf, Usd
    except ImportError:
        raise MissingExtra("usd-core", "usd", "reading USD files") from None
    check_layers(root, path)
    try:
        stage = Usd.Stage.Open(str(path.absolute()))
        return _Reader(root, stage, model).read(base, cut)
    except Tf.ErrorException as problem:  # operations on prims that USD itself does not know
        raise root.error(f"USD cannot evaluate this stage ({' '.join(str(problem).split())[:300]})") from None


@dataclass
class _Edge:
    """A joint: its bodies, its frame on each of them, and its axis in that frame."""

    name: str
    kind: str
    ends: tuple[str, str]
    frames: tuple[Placement, Placement]
    axis: np.ndarray
    limits: Limits
    excluded: bool
    armature: float = 0.0
    drive: Actuator | str | None = None
    friction: str = ""

    @property
    def properties(self) -> dict[str, Any]:
        """What a link's joint has, as arguments of `Builder.link`."""
        return {"joint_name": self.name, "limits": self.limits, "armature": self.armature}


class _Reader:
    def __init__(self, root: Element, stage: Any, model: str | None) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self.root, self.stage, self.physics, self.geom = root, stage, UsdPhysics, UsdGeom
        self.metre, self.kilogram = UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)
        self.cache = UsdGeom.XformCache()
        prims = []
        for prim in Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(Usd.PrimIsActive)):
            prims.append(prim)
            if len(prims) > MAX_PRIMS:
                raise root.error(f"more than {MAX_PRIMS} prims; this is no robot description")
        scope = self._articulation(prims, model)
        prims = [p for p in prims if p.GetPath().HasPrefix(scope)]
        bodies = [p for p in prims if p.HasAPI(UsdPhysics.RigidBodyAPI)]
        if not bodies or len(bodies) > MAX_LINKS:
            raise root.error(f"{len(bodies)} rigid bodies; a robot has at least one, and at most {MAX_LINKS} are read")
        self.bodies = dict(zip(_names(bodies), bodies, strict=True))
        self.named = {p.GetPath(): name for name, p in self.bodies.items()}
        joints = [p for p in prims if p.IsA(UsdPhysics.Joint)]
        self._check_types([*bodies, *joints, *(p for p in prims if p.IsA(UsdPhysics.Scene))])
        self.edges = [e for n, p in zip(_names(joints), joints, strict=True) if (e := self._edge(n, p)) is not None]
        name = scope.name or stage.GetDefaultPrim().GetName() if scope.name or stage.HasDefaultPrim() else "model"
        self.builder = Builder(name, self._gravity(prims), strict=False)

    def _articulation(self, prims: list[Any], model: str | None) -> Any:
        """The path below which the robot is: an articulation root, or its parent if that is a body or joint."""
        found = {}
        for p in prims:
            if p.HasAPI(self.physics.ArticulationRootAPI):
                part = p.HasAPI(self.physics.RigidBodyAPI) or p.IsA(self.physics.Joint)
                path = p.GetPath().GetParentPath() if part else p.GetPath()
                found[path.name or p.GetName()] = path
        if model is not None and model not in found:
            raise self.root.error(str(not_found("articulation", model, found)))
        if model is None and len(found) > 1:
            raise self.root.error(f"there are {len(found)} articulations ({listing(found)}); name one by model=")
        if model is not None:
            return found[model]
        return next(iter(found.values()), self.stage.GetPseudoRoot().GetPath())

    def read(self, base: str | None, cut: Sequence[str]) -> Builder:
        names = list(self.bodies)
        graph = [GraphJoint(e.name, *e.ends, FREEDOM[e.kind], np.isfinite(e.limits.lower)) for e in self.edges]
        excluded = [e.name for e in self.edges if e.excluded]
        with self.root.blamed():
            kept, left = spanning_tree([WORLD, *names], graph, (WORLD, names[0]), [*excluded, *cut])
        if len(left) > MAX_CONSTRAINTS:
            raise self.root.error(f"{len(left)} joints close loops; at most {MAX_CONSTRAINTS} are read")
        tree = {j.name for j in kept}
        self._hang([e for e in self.edges if e.name in tree], base)
        for edge in self.edges:
            if edge.name not in tree:
                self._close(edge)
        self._drive(tree)
        return self.builder

    def _drive(self, tree: set[str]) -> None:
        """The drives of joints of the tree, and one warning that counts what is left out."""
        left_out = Counter(e.drive for e in self.edges if isinstance(e.drive, str))
        for edge in self.edges:
            if isinstance(edge.drive, Actuator):
                if edge.name in tree:
                    self.builder.actuators.append(edge.drive)
                else:
                    left_out["drive of a joint that closes a loop"] += 1
        left_out += Counter(e.friction for e in self.edges if e.friction)
        if left_out:
            self.root.warn(f"left out: {listing(f'{k} x {n}' for n, k in left_out.items())}")

    def _hang(self, tree: list[_Edge], base: str | None) -> None:
        """The bodies on the world, from the roots outwards."""
        beside: dict[str, list[_Edge]] = {name: [] for name in (WORLD, *self.bodies)}
        for edge in tree:
            for end in edge.ends:
                beside[end].append(edge)
        if base in ("free", "planar") and beside[WORLD]:
            raise self.root.error(f"base='{base}', but joint '{beside[WORLD][0].name}' ties the robot to the world")
        done: set[str] = set()
        for root in (WORLD, *self.bodies):
            if root in done:
                continue
            if root != WORLD:
                self._place_root(root, base or "free")
            done.add(root)
            stack = [(root, e) for e in reversed(beside[root])]
            while stack:
                inner, edge = stack.pop()
                outer = edge.ends[edge.ends[0] == inner]
                if outer not in done:
                    done.add(outer)
                    self._joint(edge, inner, outer)
                    stack.extend((outer, e) for e in reversed(beside[outer]))

    def _place_root(self, name: str, base: str) -> None:
        joint = base_joint(base)
        placement = self._pose(self.bodies[name]) if isinstance(joint, Fixed) else Placement()
        taken = {e.name for e in self.edges} | self.builder._joint_names
        label = "root_joint" if "root_joint" not in taken else f"{name}/root_joint"
        with self.root.blamed():
            inertia = self._inertia(name)
            self.builder.link(name, joint=joint, placement=placement, inertia=inertia, joint_name=label, actuated=False)

    def _joint(self, edge: _Edge, inner: str, outer: str) -> None:
        """A joint of the tree and the body beyond it: T_outer = T_inner F_inner J(q) F_outer^-1."""
        forwards = edge.ends[0] == inner
        near, far = edge.frames if forwards else edge.frames[::-1]
        axis = edge.axis if forwards else -edge.axis
        kinds: dict[str, Joint] = {"revolute": Revolute(axis), "prismatic": Prismatic(axis), "spherical": Spherical()}
        joint, inertia = kinds.get(edge.kind, Fixed()), self._inertia(outer)
        with self.root.blamed():
            if np.allclose(far.R, np.eye(3), atol=1e-12) and np.allclose(far.p, 0, atol=1e-15):
                self.builder.link(outer, inner, joint, placement=near, inertia=inertia, **edge.properties)
                return
            carrier = f"{outer}/{edge.name}"
            self.builder.link(carrier, inner, joint, placement=near, **edge.properties)
            back = far.inverse()
            label = f"{edge.name}/fixed"
            self.builder.link(outer, carrier, "fixed", placement=back, inertia=inertia, joint_name=label)

    def _close(self, edge: _Edge) -> None:
        """A joint that is not in the tree, as a closure between its frames."""
        from linkwork.constraints import Closure
        from linkwork.io.divided import beyond_closures

        ends = f"{edge.name}/second", f"{edge.name}/first"
        with self.root.blamed():
            for end, body, frame in zip(ends, edge.ends[::-1], edge.frames[::-1], strict=True):
                self.builder.frame(end, body, frame)
            second = np.roll(edge.axis, 1)
            self.builder.constraints.append(Closure(*ends, edge.kind, tuple(edge.axis), tuple(second), name=edge.name))
        if beyond_closures(edge.kind, has := {"limits": edge.limits, "armature": edge.armature}):
            self.builder._at_cuts[edge.name] = has

    # what prims say

    def _check_types(self, prims: list[Any]) -> None:
        """Refuse attributes that have another type than in their schema: their values mean nothing."""
        for prim in prims:
            schema = prim.GetPrimDefinition()
            for attribute in prim.GetAuthoredAttributes():
                known = schema.GetSchemaAttributeSpec(attribute.GetName())
                written = [s.typeName for s in attribute.GetPropertyStack()] if known else []
                if wrong := next((kind for kind in written if kind != known.typeName), None):
                    what = f"{attribute.GetPath()} is of type '{wrong}'"
                    raise self.root.error(f"{what}; its schema has '{known.typeName}'")

    def _axis(self, of: str, token: Any) -> np.ndarray:
        """A unit vector by its name."""
        if str(token) not in AXES:
            raise self.root.error(f"{of} has the axis '{token}'; valid: {listing(AXES)}")
        return np.asarray(np.eye(3)[AXES[str(token)]])

    def _edge(self, name: str, prim: Any) -> _Edge | None:
        joint = self.physics.Joint(prim)
        if not joint.GetJointEnabledAttr().Get():
            return None
        known = {"Revolute": "revolute", "Prismatic": "prismatic", "Spherical": "spherical", "Fixed": "fixed"}
        kind = next((k for n, k in known.items() if prim.IsA(getattr(self.physics, f"{n}Joint"))), "")
        if not kind:
            raise self.root.error(f"joint {prim.GetPath()} is a {prim.GetTypeName()}; valid: {listing(known.values())}")
        ends, frames = [], []
        for k in (0, 1):
            targets = getattr(joint, f"GetBody{k}Rel")().GetForwardedTargets()
            p, r = getattr(joint, f"GetLocalPos{k}Attr")().Get(), getattr(joint, f"GetLocalRot{k}Attr")().Get()
            end, within, scale = self._end(prim, targets[0]) if targets else (WORLD, None, np.ones(3))
            frame = self._placed(np.array(p) * scale * self.metre, r)
            ends.append(end)
            frames.append(frame if within is None else within @ frame)
        if ends[0] == ends[1]:
            raise self.root.error(f"joint {prim.GetPath()} joins '{ends[0]}' to itself; a joint joins two bodies")
        axis, limits = np.array([0.0, 0.0, 1.0]), Limits()
        if kind in ("revolute", "prismatic", "spherical"):
            typed = getattr(self.physics, f"{kind.capitalize()}Joint")(prim)
            axis = self._axis(f"joint {prim.GetPath()}", typed.GetAxisAttr().Get())
            if kind != "spherical":
                unit = np.pi / 180 if kind == "revolute" else self.metre
                lower, upper = (unit * float(a.Get()) for a in (typed.GetLowerLimitAttr(), typed.GetUpperLimitAttr()))
                speed = unit * _positive(prim, "physxJoint:maxJointVelocity", np.inf)
                limits = Limits(*self.root.ordered(lower, upper), velocity=speed)
        excluded, moves = bool(joint.GetExcludeFromArticulationAttr().Get()), kind in ("revolute", "prismatic")
        return _Edge(
            name,
            kind,
            (ends[0], ends[1]),
            (frames[0], frames[1]),
            axis,
            limits,
            excluded,
            self.kilogram * (self.metre**2 if kind == "revolute" else 1.0) * _positive(prim, ARMATURE, 0.0) * moves,
            read_drive(prim, self.physics, name, kind, self.metre, self.kilogram),
            "joint friction of PhysX" if _positive(prim, "physxJoint:jointFriction", 0.0) else "",
        )

    def _end(self, joint: Any, path: Any) -> tuple[str, Placement | None, np.ndarray]:
        """The body of a prim that a joint names, the prim's place in it, and its scale.

        The body is the prim itself (its place is None) or the nearest above it, else the world.
        """
        named = prim = self.stage.GetPrimAtPath(path)
        if not prim:
            raise self.root.error(f"joint {joint.GetPath()} names {path}, which is not there")
        while not prim.IsPseudoRoot() and prim.GetPath() not in self.named:
            prim = prim.GetParent()
        if prim.IsPseudoRoot():
            return WORLD, self._pose(named), self._scale(named)
        within = None if prim == named else self._pose(prim).inverse() @ self._pose(named)
        return self.named[prim.GetPath()], within, self._scale(named)

    def _inertia(self, name: str) -> BodyInertia:
        prim = self.bodies[name]
        mass_api = self.physics.MassAPI(prim)
        mass = float(mass_api.GetMassAttr().Get() or 0.0) * self.kilogram if prim.HasAPI(self.physics.MassAPI) else 0.0
        if not mass > 0:
            self.root.warn(f"body {prim.GetPath()} has no mass (masses by density are not read); it is massless")
            return BodyInertia()
        com = np.array(mass_api.GetCenterOfMassAttr().Get(), dtype=float)
        com = com * self._scale(prim) * self.metre if np.isfinite(com).all() else np.zeros(3)
        moments = np.array(mass_api.GetDiagonalInertiaAttr().Get(), dtype=float) * self.kilogram * self.metre**2
        if not moments.any():
            self.root.warn(f"body {prim.GetPath()} has no inertia; it is a point mass at its centre of mass")
        axes = mass_api.GetPrincipalAxesAttr().Get()
        return BodyInertia(mass, np.zeros(3), np.diag(moments)).moved(self._placed(com, axes))

    def _placed(self, p: np.ndarray, rotation: Any) -> Placement:
        """A placement from a position and a quaternion of the stage; (0, 0, 0, 0) means none."""
        xyzw = np.array([*rotation.GetImaginary(), rotation.GetReal()], dtype=float)
        size = float(np.linalg.norm(xyzw))
        return Placement(p=p) if size < 1e-9 else Placement.from_quaternion(p, xyzw / size)

    def _pose(self, prim: Any) -> Placement:
        """Where the stage has a body, in metres."""
        T = np.array(self.cache.GetLocalToWorldTransform(prim)).T
        return Placement(_rotation(T[:3, :3]), T[:3, 3] * self.metre)

    def _scale(self, prim: Any) -> np.ndarray:
        T = np.array(self.cache.GetLocalToWorldTransform(prim)).T
        return np.asarray(np.linalg.norm(T[:3, :3], axis=0))

    def _gravity(self, prims: list[Any]) -> np.ndarray:
        up = self._axis("the stage's upAxis", self.geom.GetStageUpAxis(self.stage))
        direction, size = -up, 9.81
        for prim in (p for p in self.stage.Traverse() if p.IsA(self.physics.Scene)):
            scene = self.physics.Scene(prim)
            given = np.array(scene.GetGravityDirectionAttr().Get(), dtype=float)
            direction = given / np.linalg.norm(given) if given.any() else direction
            strength = float(scene.GetGravityMagnitudeAttr().Get())
            size = strength * self.metre if np.isfinite(strength) and strength >= 0 else size
            break
        return np.asarray(direction * size)


def _positive(prim: Any, name: str, otherwise: float) -> float:
    """A number that a schema of others writes, if it is there and above zero."""
    value = prim.GetAttribute(name).Get() if prim.HasAttribute(name) else None
    return float(value) if isinstance(value, int | float) and np.isfinite(value) and value > 0 else otherwise


def _names(prims: list[Any]) -> Iterator[str]:
    """The names of prims, their paths where several are called the same or like the world."""
    plain = [p.GetName() for p in prims]
    for p, name in zip(prims, plain, strict=True):
        yield name if plain.count(name) == 1 and name != WORLD else str(p.GetPath())


def _rotation(A: np.ndarray) -> np.ndarray:
    """The rotation in a matrix that scales, too."""
    U, _, V = np.linalg.svd(A)
    return np.asarray(U @ V * (1.0 if np.linalg.det(U @ V) > 0 else -1.0))
