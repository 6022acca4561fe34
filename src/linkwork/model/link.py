"""A link: a rigid body, the joint that carries it, and the properties of that joint."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import ARRAY, FLAG, NAME, checked_class, instance, like, number, optional, several, shown, whole
from linkwork.errors import ModelError
from linkwork.joints import Free, Joint, Planar, Spherical
from linkwork.joints.base import JOINT
from linkwork.lazy import cached_property
from linkwork.model.body import INERTIA, PLACEMENT, BodyInertia, Placement
from linkwork.model.unit_quaternions import UNIT_TOLERANCE
from linkwork.model.visual import Collider, Look, Visual
from linkwork.value_objects import Value, read_only, short, uncached

BOUND = number(-np.inf, np.inf, "a number, or infinity where there is no bound")


@checked_class(lower=BOUND, upper=BOUND, effort=BOUND, velocity=BOUND)
@dataclass(frozen=True, eq=False, repr=False)
class Limits(Value):
    """Bounds of a joint, per degree of freedom; infinite where the file says nothing.

    ModelError where lower is above upper: no position is between them.
    """

    lower: float = -np.inf
    upper: float = np.inf
    effort: float = np.inf
    velocity: float = np.inf

    def __post_init__(self) -> None:
        if self.lower > self.upper:
            raise ModelError(
                f"the lower limit {self.lower:g} is above the upper limit {self.upper:g}: no position is between them; "
                "exchange them, or leave limits out"
            )

    def __repr__(self) -> str:
        finite = (f"{n}={x:.4g}" for n, x in uncached(self).items() if np.isfinite(x))
        return f"Limits({', '.join(finite)})"


@checked_class(damping=ARRAY, stiffness=ARRAY, rest=ARRAY, friction=ARRAY)
@dataclass(frozen=True, eq=False, repr=False)
class Passive(Value):
    """What resists a joint's motion: damping (nv), springs (stiffness nv, rest nq), dry friction (nv).

    Forces on the joint are -damping v - stiffness x, with x the displacement from rest (`Joint.displacement`). SI units
    for rotations and translations. Dry friction, a force of at most so many N or N m against the motion, acts in steps
    that solve for it: `lw.step`, and rollouts with contacts.
    """

    damping: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    friction: np.ndarray

    def __post_init__(self) -> None:
        for name in ("damping", "stiffness", "rest", "friction"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=float)))

    @property
    def acts(self) -> bool:
        """Whether it has springs or damping."""
        return bool(self.damping.any() or self.stiffness.any())

    def __repr__(self) -> str:
        there = (f"{n}={short(x)}" for n, x in uncached(self).items() if n != "rest" and x.any())
        return f"Passive({', '.join(there)})"


@checked_class(
    name=NAME,
    parent=whole(),
    joint=JOINT,
    joint_name=NAME,
    placement=PLACEMENT,
    inertia=INERTIA,
    armature=ARRAY,
    limits=instance(Limits, "the Limits of a joint"),
    actuated=FLAG,
    weightless=INERTIA,
    passive=optional(instance(Passive, "the Passive forces of a joint")),
    looks=several(like("a Look", "read", "moved", "visuals")),
    outlines=several(like("a Look", "read", "moved", "visuals")),
)
@dataclass(frozen=True, eq=False, repr=False)
class Link(Value):
    """A rigid body and the joint that carries it. `placement` is the joint's frame in the parent link's.

    `weightless` is the part of `inertia` that gravity does not pull: its mass and centre of mass count.
    """

    name: str
    parent: int
    joint: Joint
    joint_name: str
    placement: Placement
    inertia: BodyInertia
    armature: np.ndarray
    limits: Limits = Limits()
    actuated: bool = True
    looks: tuple[Look, ...] = field(default=(), compare=False)
    weightless: BodyInertia = field(default_factory=BodyInertia)
    passive: Passive = None  # type: ignore[assignment]
    outlines: tuple[Look, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "armature", read_only(np.array(self.armature, dtype=float)))
        if self.passive is None:
            object.__setattr__(self, "passive", passive_of(self.joint, f"link '{self.name}'"))

    @cached_property
    def visuals(self) -> tuple[Visual, ...]:
        """The visuals of this link."""
        return tuple(v for look in self.looks for v in look.visuals())

    @cached_property
    def colliders(self) -> tuple[Collider, ...]:
        """The shapes of this link that may touch others."""
        return tuple(c for outline in self.outlines for c in outline.visuals())

    def __repr__(self) -> str:
        joint = f"{self.joint.kind} joint {short(self.joint_name)}"
        return f"Link({short(self.name)} on link {self.parent} by {joint}, {self.inertia.mass:.4g} kg)"


def armature_of(joint: Joint, armature: object, owner: str) -> np.ndarray:
    """The armature of each degree of freedom, from one for all or one for each; `owner` is for messages."""
    rotor = np.asarray(armature, dtype=float)
    if rotor.shape not in ((), (1,), (joint.nv,)) or np.any(rotor < 0):
        raise ModelError(
            f"{owner}: armature is a number of at least 0, or one for each of the {joint.nv} "
            f"degrees of freedom of its joint, not {shown(armature)}"
        )
    rotor = np.broadcast_to(rotor, (joint.nv,)).copy()
    if isinstance(joint, Free) and joint.armature_axes == "parent" and np.ptp(rotor[:3]) > 0:
        raise ModelError(
            f"{owner}: the armature of a free joint in its parent's axes has one value for all "
            f"three directions, not {rotor[:3].tolist()}"
        )
    return rotor


def passive_of(
    joint: Joint,
    owner: str,
    damping: object = 0.0,
    stiffness: object = 0.0,
    rest: object = None,
    friction: object = 0.0,
) -> Passive:
    """Damping, stiffness and friction of each degree of freedom, from one for all or one for each.

    `rest` (nq) is the position without spring force, by default the neutral one. Springs of a joint that turns in space
    have one stiffness for its rotations and one for its translations: only these have an energy.
    """
    found = []
    for what, given in (("damping", damping), ("stiffness", stiffness), ("friction", friction)):
        x = np.asarray(given, dtype=float)
        if x.shape not in ((), (1,), (joint.nv,)) or np.any(x < 0):
            raise ModelError(
                f"{owner}: {what} is a number of at least 0, or one for each of the {joint.nv} degrees of freedom of "
                f"its joint, not {shown(given)}"
            )
        found.append(np.broadcast_to(x, (joint.nv,)).copy())
    if isinstance(joint, Free | Spherical | Planar) and any(np.ptp(k) > 0 for k in _alike(joint, found[1])):
        raise ModelError(
            f"{owner}: springs of a {joint.kind} joint have one stiffness for all rotations and one for all "
            f"translations, not {found[1].tolist()}"
        )
    at = joint.neutral() if rest is None else np.asarray(rest, dtype=float)
    if at.shape == () and joint.nq == 1:
        at = at[None]
    if at.shape != (joint.nq,):
        raise ModelError(f"{owner}: rest is a position of its joint, {joint.nq} numbers, not {shown(rest)}")
    if isinstance(joint, Free | Spherical | Planar):
        with np.errstate(all="ignore"):
            at = np.asarray(joint.normalised(at[:, None], NUMPY))[:, 0]
        if rest is not None and not np.abs(at - np.asarray(rest)).max() <= UNIT_TOLERANCE:
            raise ModelError(f"{owner}: the rotation in rest is not of length one: {shown(rest)}")
    return Passive(found[0], found[1], at, found[2])


def _alike(joint: Joint, stiffness: np.ndarray) -> list[np.ndarray]:
    """The stiffnesses of a joint that turns in space which must be equal."""
    translations = {"spherical": 0, "planar": 2, "free": 3}[joint.kind]
    return [x for x in (stiffness[:translations], stiffness[translations:]) if len(x)]
