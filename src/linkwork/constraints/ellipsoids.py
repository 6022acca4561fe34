"""Ellipsoids as candidates of contact, on planes and over curved ground.

Places are A x for unit vectors x, A = X D. On a plane x = -A^T n / |A^T n| touches. Over curved ground the distance
g(x) may have several minima: a flat ellipsoid touches a valley with its edge, at two or three places, and a hill with
its face. With the ground's normal n below the place the slope of g on the unit sphere is

    f - (x^T f) x,      f = A^T n,

so the least of some samples all around is improved by steps against it, as long as Barzilai and Borwein (1988) suggest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import array, checked_class, optional, whole
from linkwork.constraints.contact import CONTACT, Surface, Touch, check_sizes
from linkwork.constraints.ground_shapes import FLAT, Moving, RoundContact, can_be_foreseen, turned
from linkwork.constraints.outlines import FAR, Outline
from linkwork.lazy import cached_property
from linkwork.model.body import PLACEMENT, Placement

if TYPE_CHECKING:
    from linkwork.model.motion import Motion

NEARER = 5
"""Steps from the best sample: with seven energy of thrown ellipsoids rises by as much."""

RINGS = ((-1.2, 8), (-0.45, 16), (0.0, 16), (0.45, 16), (1.2, 8))
"""Samples around the thinnest axis: x along that, and how many. Energy of ellipsoids 25 times as wide as thick on waves
with a radius of curvature of 0.3 m rises in steps of 0.5 ms by up to 0.009 of 4.4 J with 12 instead of 16 of them, by
0.007 without the outer rings, and by 0.002 with these."""

APART = 0.7
"""The cosine of the least angle (of x) between two places of one body."""

MOST = 0.2
"""The largest of these steps (rad): half of what is between samples."""


@checked_class(
    **CONTACT,
    radii=array(3, what="three half axes, in metres"),
    placement=optional(PLACEMENT),
    further=whole(0, 2, "0 for the lowest place, 1 and 2 for those where it will touch"),
)
@dataclass(frozen=True, eq=False, repr=False)
class EllipsoidContact(RoundContact):
    """An ellipsoid, which touches at -D^2 n / |D n|.

    It has the half axes `radii` D along the axes of `placement` in `frame`. One that is flat and turns over sinks into
    the ground with one candidate. Two with `further` 1 and 2 are put where it will touch at the end of a step, and are
    on its top otherwise. On curved ground they are where else it is near.

    Examples:
        >>> lw.EllipsoidContact("head", radii=(0.1, 0.1, 0.15)).frame
        'head'
    """

    radii: object = (1.0, 1.0, 1.0)
    placement: Placement | None = None
    further: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(f"contact '{self.name}'", self.radii)

    @property
    def rolls(self) -> bool:
        """Only the lowest place: others are there for what it turns over to."""
        return self.further == 0

    @property
    def body(self) -> tuple[object, ...]:
        """The ellipsoid."""
        X = self.placement or Placement()
        return self.frame, tuple(X.p), tuple(X.R.ravel()), tuple(np.asarray(self.radii, dtype=float)), self.radius

    @property
    def centre(self) -> np.ndarray:
        return (self.placement or Placement()).p

    @property
    def spread(self) -> np.ndarray:
        return (self.placement or Placement()).R @ np.diag(np.asarray(self.radii, dtype=float))

    def place(self, n: Array, xp: Ops) -> Array:
        A = xp.constant(self.spread)
        f = A.T @ (-n if self.further else n)
        return xp.constant(self.centre) - (A @ f) / xp.sqrt((f.T @ f)[0, 0] + FLAT * FLAT)

    def evaluate(self, motion: Motion, ground: Surface, place: Array | None = None) -> Touch:
        if ground.curved and place is None:
            place = self.outline(motion, ground).nearest(self)
        return super().evaluate(motion, ground, place)

    def outline(self, motion: Motion, ground: Surface) -> Skin:
        return Skin(self, motion, ground)

    def halfway(self, body: Moving, touch: Touch, ground: Surface, h: Array, motion: Motion) -> tuple[Array, ...]:
        xp, skin, by = motion.xp, self.outline(motion, ground), (h / 2) * body.w
        A, n = turned(skin.axes, by, xp), touch.axes[:, 2:3]
        x, below = skin.nearer(skin.first, n, A, body.centre + (h / 2) * body.v)
        return A @ x, below, can_be_foreseen(n, A @ skin.first, A @ x, 4 * (by.T @ by), xp)


class Skin(Outline[EllipsoidContact]):
    """An ellipsoid over curved ground."""

    @property
    def units(self) -> Sequence[np.ndarray]:
        """Rings around the thinnest axis, and the ends of that."""
        thin = int(np.argmin(np.asarray(self.contact.radii, dtype=float)))
        around = [(up, a) for up, count in RINGS for a in 2 * np.pi / count * np.arange(count)]
        x = [(0.0, 0.0, -1.0), (0.0, 0.0, 1.0), *((np.cos(a), np.sin(a), up) for up, a in around)]
        return [np.roll(a, thin + 1)[:, None] / np.linalg.norm(a) for a in x]

    @cached_property
    def first(self) -> Array:
        """x where it is nearest."""
        return self.lowest(self.gaps, self.axes, self.centre)

    def nearest(self, c: EllipsoidContact) -> Array:
        """The nearest place, or the nearest ones apart from that; on top if there are none."""
        xp, found = self.xp, [self.first]
        for _ in range(c.further):
            apart = [self._apart(xp.constant(x), found) for x in self.units]
            z = [xp.where(a > 0, gap, FAR) for a, gap in zip(apart, self.gaps, strict=True)]
            x = self.lowest(z, self.axes, self.centre)
            found.append(xp.where(self._apart(x, found) > 0, x, -self.first))
        return self.place(found[-1])

    def lowest(self, z: Sequence[Array], axes: Array, centre: Array) -> Array:
        xp = self.xp
        samples = zip(z, (xp.constant(x) for x in self.units), self.normals, strict=True)
        best: tuple[Array, ...] = next(samples)
        for sample in samples:
            lower = sample[0] < best[0]
            best = tuple(xp.where(lower, a, b) for a, b in zip(sample, best, strict=True))
        return self.nearer(best[1], best[2], axes, centre)[0]

    def nearer(self, x: Array, n: Array, axes: Array, centre: Array) -> tuple[Array, Array]:
        """x of the nearest place of a body with this centre and A, and n below it, from first ones."""
        xp, none = self.xp, self.xp.zeros(3)
        before = slope = none
        for k in range(NEARER):
            n = self.ground.under(centre + axes @ x - self.contact.radius * n, xp).axes[:, 2:3]
            f = axes.T @ n
            last, slope = slope, f - (x.T @ f)[0, 0] * x
            step, change = x - before, slope - last
            along, most = (step.T @ change)[0, 0], (change.T @ change)[0, 0]
            size = 1.0 / xp.sqrt((f.T @ f)[0, 0] + FLAT * FLAT)
            by = slope * (xp.where(along > 0, along / xp.where(along > 0, most, 1.0), size) if k else size)
            far = (by.T @ by)[0, 0] / (MOST * MOST)
            before, x = x, x - by / xp.sqrt(xp.where(far > 1, far, 1.0))
            x = x / xp.sqrt((x.T @ x)[0, 0])
        return x, n

    def _apart(self, x: Array, found: Sequence[Array]) -> Array:
        """Whether a place is apart from those that were found: 1 or 0."""
        out: Array = 1.0
        for other in found:
            out = self.xp.where((x.T @ other)[0, 0] < APART, out, 0.0)
        return out
