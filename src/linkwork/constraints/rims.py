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
from linkwork.joints.base import AXIS, unit_axis

if TYPE_CHECKING:
    from linkwork.model.motion import Motion

SAMPLES = 16
"""Places between which the nearest one is looked for. Energy of discs of 0.1 m on waves with a radius of curvature of
0.3 m rises in steps of 0.5 ms by 0.1, 0.009 and 0.0024 of 4.4 J with 8, 12 and 16 of them, and by 0.0014 with 24."""

NEARER = 2
"""Newton's steps from the best of these."""

THIRD = 0.49
"""The cosine of half a third of a turn, and a little less: two minima may be half a turn apart."""

FAR = 1e9
"""Metres: where there is no minimum."""

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
            place = Rim(self, motion, ground).nearest(self.turn)
        return super().evaluate(motion, ground, place)

    def halfway(self, body: Moving, touch: Touch, ground: Surface, h: Array, motion: Motion) -> tuple[Array, ...]:
        xp, rim = motion.xp, Rim(self, motion, ground)
        spot = rim.first
        d, t = (turned(x, (h / 2) * body.w, xp) for x in (rim.lever(spot.c, spot.s), rim.lever(-spot.s, spot.c)))
        by, then, n = xp.zeros(1)[0, 0], d, touch.axes[:, 2:3]
        for _ in range(NEARER):
            n = ground.under(body.centre + (h / 2) * body.v + then - self.radius * n, xp).axes[:, 2:3]
            by = by - (n.T @ (t - by * d))[0, 0] / xp.where(spot.bend > 0, spot.bend, 1.0)
            by = xp.where(by * by < 1, by, 1.0)
            then = (d + by * t) / xp.sqrt(1 + by * by)
        inside = xp.where((h * h * (body.w.T @ body.w))[0, 0] < LARGEST * LARGEST, 1.0 - by * by, 0.0)
        return then, n, xp.where(xp.where(spot.bend > 0, inside, 0.0) > 0, 1.0, 0.0)


class Spot(NamedTuple):
    """Where something is least on a rim: its value, cosine and sine of the angle, second derivative."""

    least: Array
    c: Array
    s: Array
    bend: Array


class Rim:
    """A rim over curved ground."""

    def __init__(self, contact: RimContact, motion: Motion, ground: Surface) -> None:
        self.contact, self.ground, self.xp = contact, ground, motion.xp
        body, xp = contact.moving(motion), motion.xp
        self.centre, self.axes = body.centre, body.R @ xp.constant(contact.rim * contact.plane.T)
        angles = 2 * np.pi / SAMPLES * np.arange(SAMPLES)
        self.samples = [(float(np.cos(a)), float(np.sin(a))) for a in angles]
        below = [ground.under(self.at(c, s), xp) for c, s in self.samples]
        self.normals = [plane.axes[:, 2:3] for plane in below]
        self.gaps = [
            (n.T @ self.at(c, s))[0, 0] - plane.height
            for n, plane, (c, s) in zip(self.normals, below, self.samples, strict=True)
        ]

    def lever(self, c: Array, s: Array) -> Array:
        """From the centre, in the world."""
        return c * self.axes[:, 0:1] + s * self.axes[:, 1:2]

    def at(self, c: Array, s: Array) -> Array:
        """The place, in the world."""
        return self.centre + self.lever(c, s)

    def place(self, c: Array, s: Array) -> Array:
        """The place, in the axes of the frame."""
        contact, xp = self.contact, self.xp
        along = xp.constant(contact.rim * contact.plane.T) @ xp.matrix([[c], [s]])
        return xp.constant(np.array(contact.offset)) + along

    @property
    def first(self) -> Spot:
        """Where it is nearest."""
        return self._nearer(self.least(self.gaps))

    def nearest(self, turn: float) -> Array:
        """Where a third of the rim is nearest, its middle `turn` rad from the nearest place; there if nowhere."""
        xp, spot = self.xp, self.first
        if not turn:
            return self.place(spot.c, spot.s)
        ct, st = float(np.cos(turn)), float(np.sin(turn))
        c, s = spot.c * ct - spot.s * st, spot.s * ct + spot.c * st
        own = [xp.where(c * a + s * b > THIRD, 1.0, 0.0) for a, b in self.samples]
        best = self._nearer(self.least(self.gaps, own))
        found = best.least < FAR
        return self.place(xp.where(found, best.c, c), xp.where(found, best.s, s))

    def least(self, z: Sequence[Array], among: Sequence[Array] | None = None) -> Spot:
        """Where z is least, by its samples; of minima `among` some of them, FAR if there is none."""
        xp, even = self.xp, self.contact.rim * EVEN
        best: tuple[Array, ...] = (FAR * xp.eye(1)[0, 0], z[-1], z[1], *self.samples[0])
        for k, (c, s) in enumerate(self.samples):
            before, here, after = z[k - 1], z[k], z[(k + 1) % SAMPLES]
            if among is not None:
                lowest = xp.where(here <= before, xp.where(here <= after, among[k], 0.0), 0.0)
                here = xp.where(xp.where(before + after - 2 * here > even, lowest, 0.0) > 0, here, FAR)
            lower = here < best[0] - FLAT * self.contact.rim
            this = here, before, after, c, s
            best = tuple(xp.where(lower, x, y) for x, y in zip(this, best, strict=True))
        here, before, after, c, s = best
        bend = before + after - 2 * here
        off = (np.pi / SAMPLES) * xp.where(bend > 0, (before - after) / xp.where(bend > 0, bend, 1.0), 0.0)
        c, s = self._moved(c, s, off)
        return Spot(here, c, s, (SAMPLES / (2 * np.pi)) ** 2 * bend)

    def _nearer(self, spot: Spot) -> Spot:
        """By Newton's method, with the slope of the ground there."""
        xp, (_, c, s, bend) = self.xp, spot
        for _ in range(NEARER):
            slope = (self.ground.under(self.at(c, s), xp).axes[:, 2:3].T @ self.lever(-s, c))[0, 0]
            by = -slope / xp.where(bend > self.contact.rim * EVEN, bend, self.contact.rim)
            c, s = self._moved(c, s, xp.where(by > MOST, MOST, xp.where(by < -MOST, -MOST, by)))
        return Spot(spot.least, c, s, bend)

    def _moved(self, c: Array, s: Array, by: Array) -> tuple[Array, Array]:
        """The angle changed."""
        length = self.xp.sqrt(1 + by * by)
        return (c - by * s) / length, (s + by * c) / length
