"""Contacts between two bodies: balls, rods and blocks that may touch each other.

With the points a and b where two bodies are nearest to each other, and the unit normal n from the second to the first,

    gap = n^T (a - b),      u = C^T (velocity of the first at a - velocity of the second at b),      C = [t1 t2 n]

Every `Pair` is one such contact; `touching` gives the pairs that two bodies need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import Array, Ops
from linkwork.checks import NAME, NOT_NEGATIVE, array, checked, checked_class, instance, optional, several, whole
from linkwork.constraints.contact import RESTITUTION, Contact, Ground, Surface, Touch, check_sizes
from linkwork.constraints.ground_shapes import lowest_corner
from linkwork.constraints.rows import rows_jacobian
from linkwork.errors import InputError
from linkwork.model.body import PLACEMENT, Placement
from linkwork.model.motion import Motion
from linkwork.value_objects import Value

if TYPE_CHECKING:
    from linkwork.model import Model

TINY = 1e-30
"""Added to squared distances, in square metres."""

FAR = 1e6
"""The gap, in metres, of corners that are not over the face that they are compared with."""

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


class Nearest(NamedTuple):
    """Where two bodies are nearest to each other: points from the world's origin, the normal, the gap."""

    a: Array
    b: Array
    normal: Array
    gap: Array


POSTURES = 2
"""Random postures in which two bodies are looked at, besides the neutral one."""

STILL = 1e-10
"""Rates of a distance, relative to the reach of links, that are rounding."""


@checked_class(
    a=BODY,
    b=BODY,
    friction=NOT_NEGATIVE,
    restitution=RESTITUTION,
    corner=whole(0, 3, "a number from 0 to 3"),
    name=NAME,
    torsion=NOT_NEGATIVE,
    rolling=NOT_NEGATIVE,
    margin=NOT_NEGATIVE,
)
@dataclass(frozen=True, eq=False, repr=False)
class Pair(Value):
    """One contact between two bodies, on two links or on a link and the world.

    `corner` is the number of a corner (0 to 3) of the face of block `a` towards block `b`, or of an end (0, 1) of a rod
    on a block. `torsion` and `rolling` (lengths) resist turning against each other, as those of a `Contact`;
    the two touch at a distance of `margin`.

    Examples:
        >>> lw.Pair(lw.Ball("tip", radius=0.1), lw.Block("world", (1, 1, 0.2)), friction=0.5).friction
        0.5
    """

    a: Body
    b: Body
    friction: float = 0.8
    restitution: float = 0.0
    corner: int = 0
    name: str = ""
    torsion: float = 0.0
    rolling: float = 0.0
    margin: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"{self.a.frame}-{self.b.frame}/{self.corner}")
        if (isinstance(self.a, Ball | Rod) and isinstance(self.b, Block)) or type(self.a) is type(self.b):
            return
        if not (isinstance(self.a, Ball) and isinstance(self.b, Rod)):
            raise InputError("a pair has a ball before a rod before a block; `touching(a, b)` puts them in order")

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
        """Rows and distance in this configuration."""
        xp, near = motion.xp, self._nearest(motion)
        C = axes(near.normal, xp)
        K, turns = dict[int, Array](), dict[int, Array]()
        for body, point, sign in ((self.a, near.a, 1.0), (self.b, near.b, -1.0)):
            link = motion.model.frame(body.frame).link
            R, p = motion.poses[link]
            if link:
                turns[link] = sign * R
                K[link] = sign * xp.hstack([C.T @ R, -(C.T @ xp.cross(point - p, R))])
        return Touch(K, near.gap - self.margin, C, turns)

    def _nearest(self, motion: Motion) -> Nearest:
        a, b, xp = self.a, self.b, motion.xp
        if isinstance(a, Block) and isinstance(b, Block):
            return corner_on_block(a, b, self.corner, motion)
        if isinstance(b, Block):
            assert isinstance(a, Ball | Rod)
            end = a.offset if isinstance(a, Ball) else (a.start, a.end)[self.corner]
            return ball_on_block(_at(motion, a.frame, end), a.radius, b, motion)
        assert isinstance(a, Ball | Rod)
        assert isinstance(b, Ball | Rod)
        first, second = nearest_points(_line(a, motion), _line(b, motion), xp)
        apart = first - second
        distance = xp.sqrt((apart.T @ apart)[0, 0] + TINY)
        n = apart / distance
        return Nearest(first - a.radius * n, second + b.radius * n, n, distance - (a.radius + b.radius))


@checked(a=BODY, b=BODY, friction=NOT_NEGATIVE, restitution=RESTITUTION, torsion=NOT_NEGATIVE, rolling=NOT_NEGATIVE)
def touching(
    a: Body, b: Body, friction: float = 0.8, restitution: float = 0.0, torsion: float = 0.0, rolling: float = 0.0
) -> list[Pair]:
    """The contacts that two bodies need: mostly 1.

    For rods on blocks there are 2, at their ends, for two blocks 8, the corners of two faces.

    Two blocks touch with corners on faces; two edges that cross each other do not touch. `a` and `b` are a `Ball`,
    `Rod` or `Block` each; `friction` is Coulomb's coefficient, `restitution` the share of the normal velocity with
    which they bounce back; `torsion` and `rolling` resist turning, as those of a `Contact`.

    Examples:
        >>> lw.touching(lw.Block("table"), lw.Ball("tip", radius=0.1), friction=0.3)[0].a.frame
        'tip'
    """
    order = (Ball, Rod, Block)
    if order.index(type(a)) > order.index(type(b)):
        a, b = b, a
    if isinstance(a, Block) and isinstance(b, Block):
        both: list[tuple[Body, Body, int]] = [(x, y, k) for x, y in ((a, b), (b, a)) for k in range(4)]
    else:
        both = [(a, b, k) for k in range(2 if isinstance(a, Rod) and isinstance(b, Block) else 1)]
    return [Pair(x, y, friction, restitution, k, torsion=torsion, rolling=rolling) for x, y, k in both]


def axes(n: Array, xp: Ops) -> Array:
    """[t1 t2 n], without a branch (Duff et al. 2017).

    t1 turns steadily but where n_z changes its sign.
    """
    x, y, z = n[0, 0], n[1, 0], n[2, 0]
    sign = xp.where(z < 0, -1.0, 1.0)
    c = -1.0 / (sign + z)
    d = x * y * c
    return xp.matrix([[1.0 + sign * x * x * c, d, x], [sign * d, sign + y * y * c, y], [-sign * x, -y, z]])


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


def nearest_points(one: tuple[Array, Array | None], other: tuple[Array, Array | None], xp: Ops) -> tuple[Array, Array]:
    """The nearest points of two segments x + s d, 0 <= s <= 1.

    Ericson, Real-time collision detection, 5.1.9.
    """
    (x, d), (y, e) = one, other
    r = x - y
    if d is None and e is None:
        return x, y
    if d is None:
        assert e is not None
        return x, y + _share(_dot(e, r), _dot(e, e), xp) * e
    if e is None:
        return x - _share(_dot(d, r), _dot(d, d), xp) * d, y
    a, c, b, f, g = _dot(d, d), _dot(e, e), _dot(d, e), _dot(d, r), _dot(e, r)
    s = _share(b * g - f * c, a * c - b * b, xp)  # 0 for parallel lines
    t = _share(b * s + g, c, xp)
    s = _share(b * t - f, a, xp)
    return x + s * d, y + t * e


def _dot(a: Array, b: Array) -> Array:
    return (a.T @ b)[0, 0]


def _share(over: Array, whole: Array, xp: Ops) -> Array:
    """over / whole, between 0 and 1; 0 if the whole is."""
    s = xp.where(whole > TINY, over / xp.where(whole > TINY, whole, 1.0), 0.0)
    return xp.where(s < 0, 0.0, xp.where(s > 1, 1.0, s))


class _Placed(NamedTuple):
    """A block in the world: its middle, its axes as columns, half its edges."""

    middle: Array
    axes: Array
    half: np.ndarray


def _placed(block: Block, motion: Motion) -> _Placed:
    known = motion.model.frame(block.frame)
    R, p = motion.poses[known.link]
    X = known.placement @ (block.placement or Placement())
    return _Placed(
        p + R @ motion.xp.constant(X.p), R @ motion.xp.constant(X.R), np.asarray(block.size, dtype=float) / 2
    )


def ball_on_block(centre: Array, radius: float, block: Block, motion: Motion) -> Nearest:
    """From outside, the nearest point of the block; from inside, out through the nearest face."""
    xp, B = motion.xp, _placed(block, motion)
    x = B.axes.T @ (centre - B.middle)
    clamped, depths, signs = [], [], []
    for k, h in enumerate(B.half):
        xk = x[k, 0]
        clamped.append([xp.where(xk > h, h, xp.where(xk < -h, -h, xk))])
        signs.append(xp.where(xk < 0, -1.0, 1.0))
        depths.append(float(h) - signs[k] * xk)
    inside_point = xp.matrix(clamped)
    apart = x - inside_point
    distance = xp.sqrt(_dot(apart, apart) + TINY)
    # inside: the face of least depth
    least = xp.where(depths[1] < depths[0], depths[1], depths[0])
    least = xp.where(depths[2] < least, depths[2], least)
    first = xp.where(depths[0] <= least, 1.0, 0.0)
    second = (1.0 - first) * xp.where(depths[1] <= least, 1.0, 0.0)
    face = xp.matrix([[first * signs[0]], [second * signs[1]], [(1.0 - first - second) * signs[2]]])
    outside = least < 0
    normal = xp.where(outside, apart / distance, face)
    reach = xp.where(outside, distance, -least)
    n = B.axes @ normal
    return Nearest(centre - radius * n, centre - reach * n, n, reach - radius)


def corner_on_block(one: Block, other: Block, corner: int, motion: Motion) -> Nearest:
    """A corner of one block's face towards the other, over the face that separates the two most.

    Of the six face normals of both blocks the one along which they overlap least is the normal (separating axes). A
    corner that is not over the face is FAR.
    """
    xp, A, B = motion.xp, _placed(one, motion), _placed(other, motion)
    d = A.middle - B.middle
    best, n = None, None
    for owner, another in ((B, A), (A, B)):
        across = another.axes.T @ owner.axes
        for k in range(3):
            axis = owner.axes[:, k : k + 1]
            along = _dot(axis, d)
            reach = sum(
                (float(h) * xp.sqrt(across[j, k] * across[j, k] + TINY) for j, h in enumerate(another.half)), start=0.0
            )
            sign = xp.where(along < 0, -1.0, 1.0)
            gap = sign * along - float(owner.half[k]) - reach
            if best is None or n is None:
                best, n = gap, sign * axis
            else:
                better = gap > best + 1e-9
                best, n = xp.where(better, gap, best), xp.where(better, sign * axis, n)
    assert n is not None
    point = A.middle + A.axes @ lowest_corner(A.axes.T @ n, A.half, corner, xp)
    # the height over the other block's face along n, and whether the corner is over it
    x, local = B.axes.T @ (point - B.middle), B.axes.T @ n
    top = sum((float(h) * xp.sqrt(local[j, 0] * local[j, 0] + TINY) for j, h in enumerate(B.half)), start=0.0)
    gap = _dot(n, point - B.middle) - top
    for k, h in enumerate(B.half):
        square = local[k, 0] * local[k, 0]
        beside = xp.where(x[k, 0] * x[k, 0] > (float(h) * (1 + EDGE)) ** 2, 1.0, 0.0)
        skew = xp.where(square > SKEW, 1.0, 0.0)  # n is no normal of the other block
        gap = xp.where(xp.where(square > 1 - SKEW, 0.0, xp.where(beside + skew > 0.5, 1.0, 0.0)) > 0.5, FAR, gap)
    return Nearest(point, point - gap * n, n, gap)


SKEW = 1e-9
"""The square of the largest sine between a face of the other block and the plane of contact."""

EDGE = 1e-6
"""The share of an edge by which a corner may be beside a face and still be over it: blocks of one size are stacked."""

CONTACTS = several(
    instance((Contact, Pair), "a linkwork.Contact or Pair"), "a list of contacts, as lw.contacts(model) gives"
)
