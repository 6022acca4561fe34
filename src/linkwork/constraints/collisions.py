"""Contacts between two bodies: balls, rods and blocks that may touch each other.

With the points a and b where two bodies are nearest to each other, and the unit normal n from the second to the first,

    gap = n^T (a - b),      u = C^T (velocity of the first at a - velocity of the second at b),      C = [t1 t2 n]

Every `Pair` is one such contact; `touching` gives the pairs that two bodies need. Where bodies are nearest to each
other is found in nearest.py, rod_on_block.py and block_on_block.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import Array
from linkwork.checks import NAME, NOT_NEGATIVE, array, checked, checked_class, instance, optional, several, whole
from linkwork.constraints.block_on_block import block_on_block
from linkwork.constraints.contact import RESTITUTION, Contact, Ground, Surface, Touch, check_sizes
from linkwork.constraints.nearest import TINY, Box, Nearest, axes, ball_on_box, nearest_points
from linkwork.constraints.rod_on_block import rod_on_block
from linkwork.constraints.rows import rows_jacobian
from linkwork.errors import InputError
from linkwork.model.body import PLACEMENT, Placement
from linkwork.model.motion import Motion
from linkwork.value_objects import Value

if TYPE_CHECKING:
    from linkwork.model import Model

PLACE = array(3, what="a place (3,) in the axes of the frame, in metres")


@checked_class(frame=NAME, offset=PLACE, radius=NOT_NEGATIVE)
@dataclass(frozen=True, eq=False, repr=False)
class Ball(Value):
    """A sphere around a place on `frame`; with radius 0, a point.

    Examples:
        >>> lw.touching(lw.Ball("left", radius=0.1), lw.Ball("right", radius=0.2))[0].name
        'left-right/0'
    """

    frame: str
    offset: object = (0.0, 0.0, 0.0)
    radius: float = 0.0


@checked_class(frame=NAME, start=PLACE, end=PLACE, radius=NOT_NEGATIVE)
@dataclass(frozen=True, eq=False, repr=False)
class Rod(Value):
    """All that is within `radius` of the line from `start` to `end` on `frame`: a capsule.

    Examples:
        >>> len(lw.touching(lw.Rod("arm", (0, 0, 0), (0, 0, 1), 0.05), lw.Block("world")))
        2
    """

    frame: str
    start: object = (0.0, 0.0, 0.0)
    end: object = (0.0, 0.0, 1.0)
    radius: float = 0.0


@checked_class(frame=NAME, size=array(3, what="three edges (3,), in metres"), placement=optional(PLACEMENT))
@dataclass(frozen=True, eq=False, repr=False)
class Block(Value):
    """A box with edges `size` along the axes of `placement` in `frame`.

    Examples:
        >>> len(lw.touching(lw.Block("low", (1, 1, 1)), lw.Block("high", (1, 1, 1))))
        8
    """

    frame: str
    size: object = (1.0, 1.0, 1.0)
    placement: Placement | None = None

    def __post_init__(self) -> None:
        check_sizes(f"block on '{self.frame}'", self.size)


Body = Ball | Rod | Block
BODY = instance((Ball, Rod, Block), "a Ball, Rod or Block")

ORDER = (Ball, Rod, Block)
"""Of the two bodies of a pair."""

MOST: dict[tuple[type, type], int] = {(Rod, Block): 2, (Block, Block): 8}
"""Contacts that two bodies can have at once, where that is more than one: the ends of a rod's part that lies on a face,
the corners of what two faces both cover."""

POSTURES = 2
"""Random postures in which two bodies are looked at, besides the neutral one."""

STILL = 1e-10
"""Rates of a distance, relative to the reach of links, that are rounding."""


@checked_class(
    a=BODY,
    b=BODY,
    friction=NOT_NEGATIVE,
    restitution=RESTITUTION,
    slot=whole(0, 7, "a number from 0 to 7"),
    name=NAME,
    torsion=NOT_NEGATIVE,
    rolling=NOT_NEGATIVE,
    margin=NOT_NEGATIVE,
)
@dataclass(frozen=True, eq=False, repr=False)
class Pair(Value):
    """One contact between two bodies, on two links or on a link and the world.

    `slot` is its number among those of the same two bodies, from 0 on: a rod touches a block at two places, a block
    another one at up to eight. `torsion` and `rolling` (lengths) resist turning against each other, as those of a
    `Contact`; the two touch at a distance of `margin`.

    Examples:
        >>> lw.Pair(lw.Ball("tip", radius=0.1), lw.Block("world", (1, 1, 0.2)), friction=0.5).friction
        0.5
    """

    a: Body
    b: Body
    friction: float = 0.8
    restitution: float = 0.0
    slot: int = 0
    name: str = ""
    torsion: float = 0.0
    rolling: float = 0.0
    margin: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"{self.a.frame}-{self.b.frame}/{self.slot}")
        if ORDER.index(type(self.a)) > ORDER.index(type(self.b)):
            raise InputError("a pair has a ball before a rod before a block; `touching(a, b)` puts them in order")
        if self.slot >= _most(self.a, self.b):
            kinds = f"a {type(self.a).__name__} and a {type(self.b).__name__}"
            raise InputError(
                f"contact '{self.name}': slots of {kinds} are 0 to {_most(self.a, self.b) - 1}, not {self.slot}; "
                "`touching(a, b)` gives all of them"
            )

    @property
    def shared(self) -> object:
        """What is equal for contacts that have the same axes: those of two blocks; others have their own."""
        return (self.a, self.b) if isinstance(self.a, Block) else (self.a, self.b, self.slot)

    def check(self, model: Model) -> None:
        """Raise unless the model has both frames, on different links whose distance some joint changes."""
        a, b = (model.frame(body.frame).link for body in (self.a, self.b))
        if a == b:
            raise InputError(f"contact '{self.name}': '{self.a.frame}' and '{self.b.frame}' are on one link")
        postures = [model.neutral(), *(model.random_q(seed) for seed in range(POSTURES))]
        if not any(self._approaches(model, q) for q in postures):
            raise InputError(
                f"contact '{self.name}': no joint changes the distance of '{self.a.frame}' and '{self.b.frame}', so no "
                "force between them does anything. Leave this pair out, or place its bodies where a joint moves one "
                "towards the other"
            )

    def _approaches(self, model: Model, q: np.ndarray) -> bool:
        """Whether a joint changes the distance in this posture; also where bodies are at one point."""
        motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)
        touch = self.evaluate(motion, Ground())
        rate = rows_jacobian(motion, {l: K[2:3, :] for l, K in touch.K.items()}, {})
        return not float(np.abs(rate).max(initial=0.0)) <= STILL * max(1.0, *model.reach)

    def evaluate(self, motion: Motion, ground: Surface) -> Touch:
        """Rows and distance in this configuration.

        Both bodies are pushed at one place, halfway from one to the other, so that they keep their angular momentum.
        """
        near, links = self._nearest(motion), [motion.model.frame(body.frame).link for body in (self.a, self.b)]
        return between(motion, links, (near.a + near.b) / 2, near.normal, near.gap - self.margin, self.shared)

    def _nearest(self, motion: Motion) -> Nearest:
        a, b, xp = self.a, self.b, motion.xp
        if isinstance(a, Block):
            assert isinstance(b, Block)
            return block_on_block(_placed(a, motion), _placed(b, motion), self.slot, xp)
        if isinstance(b, Block):
            start, along = _line(a, motion)
            if along is None:
                return ball_on_box(start, a.radius, _placed(b, motion), xp)
            return rod_on_block(start, along, a.radius, _placed(b, motion), self.slot, xp)
        first, second = nearest_points(_line(a, motion), _line(b, motion), xp)
        apart = first - second
        distance = xp.sqrt((apart.T @ apart)[0, 0] + TINY)
        n = apart / distance
        return Nearest(first - a.radius * n, second + b.radius * n, n, distance - (a.radius + b.radius))


def between(motion: Motion, links: Sequence[int], place: Array, normal: Array, gap: Array, of: object) -> Touch:
    """The contact of two links at a place in the world, with the normal from the second to the first."""
    xp, C, origin = motion.xp, axes(normal, motion.xp), motion.poses[links[0] or links[1]][1]
    K, turns, whole = dict[int, Array](), dict[int, Array](), dict[int, Array]()
    for link, side in zip(links, (1.0, -1.0), strict=True):
        if link:
            R, p = motion.poses[link]
            CR, none = side * (C.T @ R), xp.zeros(3, 3)
            turns[link] = side * R
            K[link] = xp.hstack([CR, -side * (C.T @ xp.cross(place - p, R))])
            levered = -side * (C.T @ xp.cross(origin - p, R))
            whole[link] = xp.vstack([xp.hstack([CR, levered]), xp.hstack([none, CR])])
    return Touch(K, gap, C, turns, C.T @ (place - origin), of, whole)


@checked(a=BODY, b=BODY, friction=NOT_NEGATIVE, restitution=RESTITUTION, torsion=NOT_NEGATIVE, rolling=NOT_NEGATIVE)
def touching(
    a: Body, b: Body, friction: float = 0.8, restitution: float = 0.0, torsion: float = 0.0, rolling: float = 0.0
) -> list[Pair]:
    """The contacts that two bodies need: mostly 1.

    A rod and a block have 2, the ends of the part of the rod that lies on a face; across an edge or a corner it touches
    with one of them. Two blocks have 8, the corners of what two faces both cover, as many as there are; where an edge
    crosses an edge they touch with one of them.

    `a` and `b` are a `Ball`, `Rod` or `Block` each; `friction` is Coulomb's coefficient, `restitution` the share of the
    normal velocity with which they bounce back; `torsion` and `rolling` resist turning, as those of a `Contact`.

    Examples:
        >>> lw.touching(lw.Block("table"), lw.Ball("tip", radius=0.1), friction=0.3)[0].a.frame
        'tip'
    """
    if ORDER.index(type(a)) > ORDER.index(type(b)):
        a, b = b, a
    slots = range(_most(a, b))
    return [Pair(a, b, friction, restitution, k, torsion=torsion, rolling=rolling) for k in slots]


def _most(a: Body, b: Body) -> int:
    """How many contacts these two can have at once."""
    return MOST.get((type(a), type(b)), 1)


def _at(motion: Motion, frame: str, place: object) -> Array:
    """A place on a frame, from the world's origin."""
    known = motion.model.frame(frame)
    R, p = motion.poses[known.link]
    return p + R @ motion.xp.constant(known.placement.p + known.placement.R @ np.asarray(place, dtype=float))


def _line(body: Ball | Rod, motion: Motion) -> tuple[Array, Array | None]:
    """The start of a body's line, and its end less its start; None for a ball."""
    if isinstance(body, Ball):
        return _at(motion, body.frame, body.offset), None
    start = _at(motion, body.frame, body.start)
    return start, _at(motion, body.frame, body.end) - start


def _placed(block: Block, motion: Motion) -> Box:
    known = motion.model.frame(block.frame)
    R, p = motion.poses[known.link]
    X = known.placement @ (block.placement or Placement())
    return Box(p + R @ motion.xp.constant(X.p), R @ motion.xp.constant(X.R), np.asarray(block.size, dtype=float) / 2)


CONTACTS = several(
    instance((Contact, Pair), "a linkwork.Contact or Pair"), "a list of contacts, as lw.contacts(model) gives"
)
