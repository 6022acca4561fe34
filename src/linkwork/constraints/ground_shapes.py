"""Candidates of contact of boxes, and what all round bodies have in common.

A shape touches a plane where it is farthest along -n, with n the plane's normal seen from the link. On a round one that
place moves when it rolls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import array, checked_class, optional, whole
from linkwork.constraints.contact import CONTACT, Contact, Surface, Touch, check_sizes
from linkwork.model.body import PLACEMENT, Placement

if TYPE_CHECKING:
    from linkwork.constraints.outlines import Outline
    from linkwork.model.motion import Motion

FLAT = 1e-12
"""The slope, relative to 1, below which a disc lies flat: it touches with its whole rim."""

LARGEST = 0.25
"""The rotation (rad) of a body in a step up to which the place of contact in the middle of it is foreseen."""


@checked_class(
    **CONTACT,
    corner=whole(0, 3, "the number of a corner of the lowest face, 0 to 3"),
    size=array(3, what="three edges (3,), in metres"),
    placement=optional(PLACEMENT),
)
@dataclass(frozen=True, eq=False, repr=False)
class BoxContact(Contact):
    """A corner of the lowest face of a box.

    The box has edges `size` along the axes of `placement` in `frame`. Four of them let it stand on a face, an edge or a
    corner, whichever side is down.

    Examples:
        >>> [lw.BoxContact("trunk", size=(0.4, 0.2, 0.1), corner=k).corner for k in range(4)]
        [0, 1, 2, 3]
    """

    size: object = (1.0, 1.0, 1.0)
    corner: int = 0
    placement: Placement | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(f"contact '{self.name}'", self.size)

    def place(self, n: Array, xp: Ops) -> Array:
        X = self.placement or Placement()
        half = np.asarray(self.size, dtype=float) / 2
        return xp.constant(X.p) + xp.constant(X.R) @ lowest_corner(xp.constant(X.R.T) @ n, half, self.corner, xp)


def lowest_corner(n: Array, half: np.ndarray, corner: int, xp: Ops) -> Array:
    """One of the four corners of the face of a box that is farthest along -n, in the box's axes."""
    square = [n[k, 0] * n[k, 0] for k in range(3)]
    first = xp.where(square[0] >= square[1], xp.where(square[0] >= square[2], 1.0, 0.0), 0.0)
    second = (1.0 - first) * xp.where(square[1] >= square[2], 1.0, 0.0)
    is_down = [first, second, 1.0 - first - second]
    one, other = (1.0 if corner & bit else -1.0 for bit in (1, 2))
    down = [xp.where(n[k, 0] > 0, -1.0, 1.0) for k in range(3)]
    return xp.matrix(
        [[float(half[k]) * (is_down[k] * down[k] + is_down[k - 1] * one + is_down[k - 2] * other)] for k in range(3)]
    )


class Moving(NamedTuple):
    """A round body in motion: axes of its frame, centre, lever from the link and velocities, in the world."""

    R: Array
    centre: Array
    arm: Array
    v: Array  # of the centre
    w: Array


class RoundContact(Contact):
    """A candidate whose place moves over a round body as it rolls."""

    @property
    def rolls(self) -> bool:
        """Whether the place moves."""
        return True

    @property
    def centre(self) -> np.ndarray:
        """Of the body, in the axes of the frame."""
        return np.array(self.offset)

    @property
    def body(self) -> tuple[object, ...]:
        """What is equal for all candidates of one body."""
        raise NotImplementedError

    @property
    def spread(self) -> np.ndarray:
        """A: places are centre + A x for unit vectors x, in the axes of the frame."""
        raise NotImplementedError

    def outline(self, motion: Motion, ground: Surface) -> Outline[Any]:
        """All of its places, over curved ground."""
        raise NotImplementedError

    def moving(self, motion: Motion) -> Moving:
        """The body in this state."""
        xp, frame = motion.xp, motion.model.frame(self.frame)
        (R, p), V = motion.poses[frame.link], motion.V[frame.link]
        arm, w = R @ xp.constant(frame.placement.p + frame.placement.R @ self.centre), R @ V[3:6, :]
        return Moving(R @ xp.constant(frame.placement.R), p + arm, arm, R @ V[0:3, :] + xp.cross(w, arm), w)

    def moves(self, motion: Motion, touch: Touch, ground: Surface, h: Array) -> Array:
        """w x (d' - d) in the contact's axes: from the lever d to that in the middle of the step.

        Levers are from the centre; the body turns with w until then. Zero where the place cannot be foreseen, and often
        another one touches next: the step turns the body by more than LARGEST, or the place moves by more than |d| (60
        degrees of a rim), or it could, because a disc lies nearly flat: |h w / 2| > tan(60) sin(slope of d).
        """
        if ground.curved:
            return self._moves_over(motion, touch, ground, h)
        xp, frame, axes = motion.xp, motion.model.frame(self.frame), touch.axes
        R = motion.poses[frame.link][0] @ xp.constant(frame.placement.R)
        w, n = xp.constant(frame.placement.R.T) @ motion.V[frame.link][3:6, :], R.T @ axes[:, 2:3]
        d = self.place(n, xp) - xp.constant(self.centre)
        then = self.place(turned(n, -(h / 2) * w, xp), xp) - xp.constant(self.centre)
        return can_be_foreseen(n, d, then, h * h * (w.T @ w), xp) * (
            axes.T @ (R @ xp.cross(w, turned(then, (h / 2) * w, xp) - d))
        )

    def _moves_over(self, motion: Motion, touch: Touch, ground: Surface, h: Array) -> Array:
        """The same over curved ground, and n'^T u - n^T u for the velocity u of what slips along it.

        n' is the normal below the place in the middle of the step.
        """
        xp, body, n = motion.xp, self.moving(motion), touch.axes[:, 2:3]
        d = touch.axes @ touch.lever - body.arm
        then, below, foreseen = self.halfway(body, touch, ground, h, motion)
        slips = (below - n).T @ (body.v + xp.cross(body.w, d))
        rolls = touch.axes.T @ xp.cross(body.w, then - self.radius * below - d)
        return foreseen * (rolls + xp.vstack([xp.zeros(2), slips]))

    def halfway(self, body: Moving, touch: Touch, ground: Surface, h: Array, motion: Motion) -> tuple[Array, ...]:
        """d' in the world, n' below it, and whether they can be foreseen (1 or 0)."""
        raise NotImplementedError


def can_be_foreseen(n: Array, d: Array, then: Array, turn: Array, xp: Ops) -> Array:
    """Whether place `then` can be told from d: 1 or 0, for a body that turns by sqrt(`turn`) in a step."""
    depth, long, apart = n.T @ d, d.T @ d, (then - d).T @ (then - d)
    inside = xp.where(turn < LARGEST * LARGEST, long - apart, 0.0)
    return xp.where(12 * depth * depth > turn * long, xp.where(inside > 0, 1.0, 0.0), 0.0)[0, 0]


def turned(x: Array, by: Array, xp: Ops) -> Array:
    """x after a small rotation, by Cayley's formula."""
    half = by / 2
    across = xp.cross(half, x)
    return x + 2 / (1 + (half.T @ half)[0, 0]) * (across + xp.cross(half, across))
