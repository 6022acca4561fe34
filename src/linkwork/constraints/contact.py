"""Candidates of contact: where a mechanism may touch the ground.

A candidate is a sphere around a place on a link; with radius 0 it is a point. It touches a plane with the unit normal n
where it is nearest to it: at the lever d = R o - r n from the link's origin, with the link's axes R. In the axes
C = [t1 t2 n] of the contact the velocity of that place, and its distance from the plane, are

    u = C^T (R v + (R w) x d),      gap = n^T (p + R o) - r - height
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import NAME, NOT_NEGATIVE, NUMBER, array, checked_class, instance, number
from linkwork.errors import InputError
from linkwork.joints.base import AXIS, unit_axis
from linkwork.lazy import cached_property
from linkwork.value_objects import Value

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion

NEARER = 4
"""How often the place where a sphere touches curved ground is looked for again with the plane that was found below."""

RESTITUTION = number(0, 1, "between 0 (stays) and 1 (bounces back)")


class Plane(NamedTuple):
    """The plane n^T x = height that a contact sees: its axes [t1 t2 n] as columns."""

    axes: Array
    height: Array


class Surface(Value):
    """What contacts may touch: a plane (`Ground`), or a terrain."""

    curved = True

    def under(self, place: Array, xp: Ops) -> Plane:
        """The plane that touches the surface below a place, 3 x 1 in the world."""
        raise NotImplementedError


@checked_class(normal=AXIS, height=NUMBER)
@dataclass(frozen=True, eq=False, repr=False)
class Ground(Surface):
    """The plane n^T x = height; `normal` n points out of the ground.

    Examples:
        >>> lw.Ground(normal=(0, 0, 1), height=-0.1)
        Ground(normal=[0 0 1], height=-0.1)
    """

    normal: object = "z"
    height: float = 0.0
    curved = False

    def under(self, place: Array, xp: Ops) -> Plane:
        return Plane(xp.constant(self.axes), self.height)

    @cached_property
    def axes(self) -> np.ndarray:
        """C = [t1 t2 n]: two directions in the plane, and its normal, as columns."""
        n = unit_axis(self.normal)
        first = np.cross(np.eye(3)[(int(np.argmax(np.abs(n))) + 2) % 3], n)
        first = -first / np.linalg.norm(first)
        return np.column_stack([first, np.cross(n, first), n])


class Touch(NamedTuple):
    """Rows over the velocities of links that touch, the gap between them, and the axes [t1 t2 n] of both.

    `of` says what touches: a link the ground, or two bodies each other. All contacts of these have the same axes. Their
    places are at a `lever` from one origin, whose velocity, linear and angular in these axes, the rows `whole` are.
    """

    K: dict[int, Array]  # 3 x 6 each
    gap: Array  # a scalar
    axes: Array  # 3 x 3, in world axes
    turns: dict[int, Array]  # the axes of the links
    lever: Array  # in the axes of the contact
    of: object
    whole: dict[int, Array]  # 6 x 6 each


def check_sizes(owner: str, sizes: object) -> None:
    """Raise if a length of a shape is negative; flat shapes are shapes."""
    if (np.asarray(sizes, dtype=float) < 0).any():
        raise InputError(f"{owner}: a length of {np.asarray(sizes).tolist()} is negative")


CONTACT = {
    "frame": NAME,
    "offset": array(3, what="a place (3,) in the axes of the frame, in metres"),
    "radius": NOT_NEGATIVE,
    "friction": NOT_NEGATIVE,
    "restitution": RESTITUTION,
    "name": NAME,
    "torsion": NOT_NEGATIVE,
    "rolling": NOT_NEGATIVE,
    "margin": NOT_NEGATIVE,
}
"""The arguments of every contact."""


@checked_class(**CONTACT)
@dataclass(frozen=True, eq=False, repr=False)
class Contact(Value):
    """A sphere that may touch the ground: its centre is at `offset` from the origin of `frame`.

    `frame` is the name of a frame or link; a sphere of radius 0 is a point. `friction` is Coulomb's coefficient,
    `restitution` the share of the normal velocity with which it bounces back. `torsion` and `rolling` (lengths, as in
    MuJoCo) resist turning about the normal and about the two tangents: with up to these times the normal force. It
    touches at a distance of `margin`.

    Examples:
        >>> step = lw.step(quadruped(), [lw.Contact("front_left_foot", radius=0.02, friction=0.8)])
        >>> step.inputs
        {'q': 19, 'v': 18, 'tau': 18, 'dt': 1, 'friction': 1, 'impulses': 16}
    """

    frame: str
    offset: object = (0.0, 0.0, 0.0)
    radius: float = 0.0
    friction: float = 0.8
    restitution: float = 0.0
    name: str = ""
    torsion: float = 0.0
    rolling: float = 0.0
    margin: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", tuple(float(x) for x in np.asarray(self.offset)))
        object.__setattr__(self, "name", self.name or self.frame)

    def check(self, model: Model) -> None:
        """Raise unless the model has the frame, on a link that moves."""
        i = model.frame(self.frame).link
        while i and not model.links[i].joint.nv:
            i = model.links[i].parent
        if not i:
            raise InputError(f"contact '{self.name}' is fixed to the world: name a frame on a link that moves")

    def place(self, n: Array, xp: Ops) -> Array:
        """The centre of the sphere in the axes of the frame, where n is the ground's normal."""
        return xp.constant(np.array(self.offset))

    @property
    def rolls(self) -> bool:
        """Whether the place moves over a round body as it turns."""
        return False

    def evaluate(self, motion: Motion, ground: Surface, place: Array | None = None) -> Touch:
        """Rows and distance in this configuration, or of a given `place`, 3 x 1 in the axes of the frame."""
        xp, frame = motion.xp, motion.model.frame(self.frame)
        link, X = frame.link, frame.placement
        R, p = motion.poses[link]
        C, height = ground.under(p + R @ xp.constant(X.p), xp)
        turn, n = xp.constant(X.R), C[:, 2:3]
        place = self.place(turn.T @ (R.T @ n), xp) if place is None else place
        centre = R @ (xp.constant(X.p) + turn @ place)
        if ground.curved:
            C, height = ground.under(p + centre, xp)
            for _ in range(NEARER if self.radius else 0):
                C, height = ground.under(p + centre - self.radius * C[:, 2:3], xp)
            n = C[:, 2:3]
        lever = centre - self.radius * n
        CR = C.T @ R
        turned = -(C.T @ xp.cross(lever, R))  # C^T (R w) x d = -C^T (d x R w)
        gap = (n.T @ (p + centre))[0, 0] - (self.radius + self.margin + height)
        none = xp.zeros(3, 3)
        whole = {link: xp.vstack([xp.hstack([CR, none]), xp.hstack([none, CR])])}
        return Touch({link: xp.hstack([CR, turned])}, gap, C, {link: R}, C.T @ lever, link, whole)


GROUND = instance(Surface, "a linkwork.Ground, Terrain or HeightField")
