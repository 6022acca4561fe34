"""A link: a rigid body, the joint that carries it, and the properties of that joint."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwork.checks import ARRAY, FLAG, NAME, checked_class, instance, like, number, several, shown, whole
from linkwork.errors import ModelError
from linkwork.joints import Free, Joint
from linkwork.joints.base import JOINT
from linkwork.lazy import cached_property
from linkwork.model.body import INERTIA, PLACEMENT, BodyInertia, Placement
from linkwork.model.visual import Look, Visual
from linkwork.values import Value, read_only, short, uncached

BOUND = number(-np.inf, np.inf, "a number, or infinity where there is no bound")


@checked_class(lower=BOUND, upper=BOUND, effort=BOUND, velocity=BOUND)
@dataclass(frozen=True, eq=False, repr=False)
class Limits(Value):
    """Bounds of a joint, per degree of freedom; infinite where the file says nothing."""

    lower: float = -np.inf
    upper: float = np.inf
    effort: float = np.inf
    velocity: float = np.inf

    def __repr__(self) -> str:
        finite = (f"{n}={x:.4g}" for n, x in uncached(self).items() if np.isfinite(x))
        return f"Limits({', '.join(finite)})"


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
    looks=several(like("a Look", "read", "moved", "visuals")),
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "armature", read_only(np.array(self.armature, dtype=float)))

    @cached_property
    def visuals(self) -> tuple[Visual, ...]:
        """The visuals of this link."""
        return tuple(v for look in self.looks for v in look.visuals())

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
