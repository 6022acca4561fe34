"""Rims of discs and cylinders as candidates of contact, on planes and over curved ground.

On a plane a rim is lowest where its tangent is horizontal. Over curved ground its distance g(x) at the angle x may have
two minima (on a saddle), and neither need be on the lower side. With the ground's normal n below the place

    g'(x) = n^T t,      t = r (-sin x e_1 + cos x e_2),

so the least of some samples is improved by Newton's steps, with g'' from three samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwork.backends.ops import Array, Ops, tiny
from linkwork.checks import NOT_NEGATIVE, NUMBER, checked_class
from linkwork.constraints.contact import CONTACT, Surface, Touch
from linkwork.constraints.ground_shapes import FLAT, LARGEST, Moving, RoundContact, turned
from linkwork.constraints.outlines import FAR, Outline
from linkwork.joints.base import AXIS, unit_axis
from linkwork.lazy import cached_property

if TYPE_CHECKING:
    from linkwork.model.motion import Motion

SAMPLES = 16
"""Places between which the nearest one is looked for. Energy of discs of 0.1 m on waves with a radius of curvature of
0.3 m rises in steps of 0.5 ms by 0.1, 0.009 and 0.0024 of 4.4 J with 8, 12 and 16 of them, and by 0.0014 with 24."""

NEARER = 2
"""Newton's steps from the best of these."""

THIRD = 0.49
"""The cosine of half a third of a turn, and a little less: two minima may be half a turn apart."""

MOST = 0.5
"""The largest of these steps (rad)."""

EVEN = 1e-5
"""The second difference of distances, relative to the radius, below which the ground under a rim is even."""


@checked_class(**CONTACT, axis=AXIS, rim=NOT_NEGATIVE, turn=NUMBER)
@dataclass(frozen=True, eq=False, repr=False)
class RimContact(RoundContact):
    """A point on the rim of a disc or cylinder: the lowest one, or one `turn` rad further on.

    The disc has its centre at `offset`, the radius `rim` and the normal `axis`, in the axes of `frame`. Three of them,
    a third of a turn apart, let it stand on its rim, roll, and lie flat; while it turns over, two that are not the
    lowest are put where it will touch at the end of a step. Lowest is where e = (n - a a^T n) / |...| is
    subtracted: o - rim e. On curved ground each is where its third of the rim is nearest to the ground.

    Examples:
        >>> lw.RimContact("wheel", axis="y", rim=0.3, friction=0.9).rim
        0.3
    """

    axis: object = "z"
    rim: float = 0.0
    turn: float = 0.0

    @property
    def rolls(self) -> bool:
        """Only on the lowest point: others are there for a disc that lies flat."""
        return self.turn == 0

    @property
    def body(self) -> tuple[object, ...]:
        """The rim."""
        return self.frame, self.offset, tuple(unit_axis(self.axis)), self.rim, self.radius

    @property
    def plane(self) -> np.ndarray:
        """e_1 and e_2 in the plane of the disc, as rows, in the axes of the frame."""
        a = unit_axis(self.axis)
        first = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
        return np.vstack([first / np.linalg.norm(first), np.cross(a, first) / np.linalg.norm(first)])

    def place(self, n: Array, xp: Ops) -> Array:
        plane = self.plane
        x, y = (xp.constant(plane) @ n)[0, 0], (xp.constant(plane) @ n)[1, 0]
        x = x + FLAT
        length = xp.sqrt(x * x + y * y + tiny(xp))
        x, y = x / length, y / length
        c, s = float(np.cos(self.turn)), float(np.sin(self.turn))
        e = xp.constant(plane.T) @ xp.matrix([[c * x - s * y], [s * x + c * y]])
        return xp.constant(np.array(self.offset)) - self.rim * e

    def evaluate(self, motion: Motion, ground: Surface, place: Array | None = None) -> Touch:
        if ground.curved and place is None:
            place = self.outline(motion, ground).nearest(self)
        return super().evaluate(motion, ground, place)

    def outline(self, motion: Motion, ground: Surface) -> Rim:
        return Rim(self, motion, ground)

    @property
    def spread(self) -> np.ndarray:
        return self.rim * self.plane.T

    def halfway(self, body: Moving, touch: Touch, ground: Surface, h: Array, motion: Motion) -> tuple[Array, ...]:
        xp, rim = motion.xp, self.outline(motion, ground)
        spot = rim.first
        d, t = (turned(rim.axes @ x, (h / 2) * body.w, xp) for x in (spot.x, ahead(spot.x, xp)))
        by, then, n = xp.zeros(1)[0, 0], d, touch.axes[:, 2:3]
        for _ in range(NEARER):
            n = ground.under(body.centre + (h / 2) * body.v + then - self.radius * n, xp).axes[:, 2:3]
            by = by - (n.T @ (t - by * d))[0, 0] / xp.where(spot.bend > 0, spot.bend, 1.0)
            by = xp.where(by * by < 1, by, 1.0)
            then = (d + by * t) / xp.sqrt(1 + by * by)
        inside = xp.where((h * h * (body.w.T @ body.w))[0, 0] < LARGEST * LARGEST, 1.0 - by * by, 0.0)
        return then, n, xp.where(xp.where(spot.bend > 0, inside, 0.0) > 0, 1.0, 0.0)


class Spot(NamedTuple):
    """Where something is least on a rim: its value, x, and its second derivative by the angle."""

    least: Array
    x: Array
    bend: Array


class Rim(Outline[RimContact]):
    """A rim over curved ground."""

    @property
    def units(self) -> Sequence[np.ndarray]:
        return [np.array([[np.cos(a)], [np.sin(a)]]) for a in 2 * np.pi / SAMPLES * np.arange(SAMPLES)]

    @cached_property
    def first(self) -> Spot:
        """Where it is nearest."""
        return self._nearer(self.least(self.gaps))

    def nearest(self, c: RimContact) -> Array:
        """Where a third of the rim is nearest, its middle `turn` rad from the nearest place; there if nowhere."""
        xp, x = self.xp, self.first.x
        if not c.turn:
            return self.place(x)
        x = float(np.cos(c.turn)) * x + float(np.sin(c.turn)) * ahead(x, xp)
        own = [xp.where((x.T @ xp.constant(sample))[0, 0] > THIRD, 1.0, 0.0) for sample in self.units]
        best = self._nearer(self.least(self.gaps, own))
        return self.place(xp.where(best.least < FAR, best.x, x))

    def lowest(self, z: Sequence[Array], axes: Array, centre: Array) -> Array:
        return self.least(z).x

    def least(self, z: Sequence[Array], among: Sequence[Array] | None = None) -> Spot:
        """Where z is least, by its samples; of minima `among` some of them, FAR if there is none."""
        xp, even = self.xp, self.contact.rim * EVEN
        best: tuple[Array, ...] = (FAR * xp.eye(1)[0, 0], z[-1], z[1], xp.constant(self.units[0]))
        for k, x in enumerate(self.units):
            before, here, after = z[k - 1], z[k], z[(k + 1) % SAMPLES]
            if among is not None:
                lowest = xp.where(here <= before, xp.where(here <= after, among[k], 0.0), 0.0)
                here = xp.where(xp.where(before + after - 2 * here > even, lowest, 0.0) > 0, here, FAR)
            lower = here < best[0] - FLAT * self.contact.rim
            this = here, before, after, xp.constant(x)
            best = tuple(xp.where(lower, a, b) for a, b in zip(this, best, strict=True))
        here, before, after, x = best
        bend = before + after - 2 * here
        off = (np.pi / SAMPLES) * xp.where(bend > 0, (before - after) / xp.where(bend > 0, bend, 1.0), 0.0)
        return Spot(here, self._moved(x, off), (SAMPLES / (2 * np.pi)) ** 2 * bend)

    def _nearer(self, spot: Spot) -> Spot:
        """By Newton's method, with the slope of the ground there."""
        xp, (_, x, bend) = self.xp, spot
        for _ in range(NEARER):
            t = self.axes @ ahead(x, xp)
            slope = (self.ground.under(self.at(x), xp).axes[:, 2:3].T @ t)[0, 0]
            by = -slope / xp.where(bend > self.contact.rim * EVEN, bend, self.contact.rim)
            x = self._moved(x, xp.where(by > MOST, MOST, xp.where(by < -MOST, -MOST, by)))
        return Spot(spot.least, x, bend)

    def _moved(self, x: Array, by: Array) -> Array:
        """The angle changed."""
        return (x + by * ahead(x, self.xp)) / self.xp.sqrt(1 + by * by)


def ahead(x: Array, xp: Ops) -> Array:
    """A quarter of a turn further on."""
    return xp.matrix([[-x[1, 0]], [x[0, 0]]])
