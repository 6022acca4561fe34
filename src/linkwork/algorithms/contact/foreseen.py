"""Where a round body will touch the ground at the end of a step, beyond its lowest place.

A law of contact is linear: a place x of the body, which turns with w, keeps gap(x) + h u_n(x) >= 0. A disc or a flat
ellipsoid that turns over is lowest somewhere else at the end of the step, and would have sunk there. The exact law,

    z(v) = min over x of gap(x) + h n^T v + n^T (exp(h w) - 1) d(x) >= 0,

is concave in v but for the second order of exp. So it is cut by its tangent at a velocity v*: the law of the place x*
that is lowest at the end of a step with v*, with a gap that makes it exact there. The first further candidate has v*
the impulse at the lowest place alone, the second with those at both places, and so on: Kelley's method of cutting
planes, with impulses without friction, by sweeps over the laws so far.

Over curved ground the distances of a body, and what they become with v*, are sampled all around
(constraints/outlines.py).

A body that is below the ground already must not sink deeper. A further candidate stays where it is without all
that (`place`) if the body sinks by next to nothing, SHARE (gap(x*) - gap) + FALLS g h^2, or is nearly at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from linkwork.algorithms.contact.approach import Approach, rolled
from linkwork.algorithms.contact.mobility import Mobility, columns_of, times
from linkwork.backends.ops import Array
from linkwork.constraints.collisions import Pair
from linkwork.constraints.contact import Contact, Surface, Touch
from linkwork.constraints.ground_shapes import RoundContact, turned
from linkwork.constraints.outlines import FAR, Outline
from linkwork.constraints.rows import jacobian_blocks
from linkwork.lazy import cached_property
from linkwork.model import Motion

SHARE, FALLS = 0.1, 0.5
"""What a body may sink by in a step: a share of the height from which the place comes down that then touches, and of
g h^2. With less the law of a body that rolls, which dissipates nothing, gives way to further ones, which do: thrown
discs have 0.57 J left after 1.5 s in steps of 2 ms, and 0.02 J with 0.02 and 0."""

RESTS = 2.0
"""The velocity of turning over, in units of g h, below which a body is nearly at rest."""

FURTHER = 2
"""Candidates of a body that are foreseen: with three bodies sink by as much, for a plane has three points."""

SWEEPS = 3
"""Over the laws of places, before the next one is found: with ten of them bodies sink by as much."""


class Cut(NamedTuple):
    """The normal law of a place: b^T V >= -offset for the velocities V of the link."""

    b: Array
    moved: Array  # by a unit impulse
    u: Array  # b^T V + offset without impulses


def foreseen(
    motion: Motion,
    contacts: Sequence[Contact | Pair],
    ground: Surface,
    mobility: Mobility,
    v_free: Array,
    approach: Approach,
) -> list[Touch]:
    """Evaluate all contacts, those of round bodies beyond the first where they will touch.

    `v_free` are the velocities of joints without contacts, means over the step.
    """
    touches = [c.evaluate(motion, ground) for c in contacts]
    bodies: dict[object, list[tuple[int, RoundContact]]] = {}
    for k, c in enumerate(contacts):
        if isinstance(c, RoundContact):
            bodies.setdefault(c.body, []).append((k, c))
    for members in bodies.values():
        lowest = [(k, c) for k, c in members if c.rolls][:1]
        further = [(k, c) for k, c in members if not c.rolls][:FURTHER]
        for k, c in lowest if further else []:
            of = RollingOver if ground.curved else Rolling
            body = of(motion, c, touches[k], mobility, v_free, approach, ground)
            for j, other in further:
                touches[j] = body.next(other)
    return touches


class Rolling:
    """A round body with the places that it touches at so far."""

    def __init__(
        self,
        motion: Motion,
        c: RoundContact,
        touch: Touch,
        mobility: Mobility,
        v_free: Array,
        approach: Approach,
        ground: Surface,
    ) -> None:
        self.motion, self.xp, self.contact, self.touch, self.approach = motion, motion.xp, c, touch, approach
        self.ground = ground
        xp, X = self.xp, motion.model.frame(c.frame).placement
        (link, K), none = next(iter(touch.K.items())), xp.zeros(3, 3)
        CR = K[:, 0:3]
        whole = xp.vstack([xp.hstack([CR, none]), xp.hstack([none, CR])])
        J = columns_of(jacobian_blocks(motion, {link: whole}, {}), motion)
        self.before, self.free = times([J], motion.v, xp), times([J], v_free, xp)  # [v; w] in the contact's axes
        self.Omega = mobility.gram([J], [6])[0, 0]
        self.axes, self.arm = CR @ xp.constant(X.R), xp.constant(X.R.T @ X.p)  # of the frame
        self.n = self.axes.T @ xp.constant([0.0, 0.0, 1.0])
        self.place = self._lowest()
        self.sunk = xp.where(touch.gap < 0, touch.gap, 0.0)
        B = xp.hstack([xp.eye(3), xp.cross(touch.lever, xp.eye(3)).T])
        rolls = rolled(c.moves(motion, touch, ground, approach.h), B @ self.before, B @ self.Omega @ B.T, xp)
        self.cuts = [self._cut(self._row(touch, self.place), touch.gap, c, rolls[2, 0])]
        self.impulses = [xp.zeros(1)[0, 0]]

    def _lowest(self) -> Array:
        """The place that touches now, in the axes of the frame."""
        return self.contact.place(self.n, self.xp)

    def next(self, c: RoundContact) -> Touch:
        """The next candidate of this body."""
        xp, h = self.xp, self.approach.h
        V = self._swept()
        end = turned(self.n, -h * (self.axes.T @ V[3:6, :]), xp)
        low, place = self.contact.place(end, xp), c.place(self.n, xp)
        higher = (self.n.T @ (low - self.place))[0, 0]
        # z(v*), but no deeper than it is now
        z = self.touch.gap + higher - self.sunk + h * V[2, 0]
        z = z + ((end - self.n).T @ (self.arm + low))[0, 0]
        used = self._sinks(z, higher)
        place = place + used * (low - place)
        gap = used * (z - h * (self._row(self.touch, low).T @ V)[0, 0])
        touch = c.evaluate(self.motion, self.ground, place)
        touch = touch._replace(gap=gap + (1.0 - used) * touch.gap)
        return self._with(touch, self._row(touch, place), c)

    def _sinks(self, z: Array, higher: Array) -> Array:
        """Whether a place that was `higher` sinks to z by more than next to nothing: 1 or 0."""
        xp, h = self.xp, self.approach.h
        sinks = xp.where(z < -(SHARE * higher + FALLS * self.approach.g * h * h), 1.0, 0.0)
        return xp.where(self._turns_over(), sinks, 0.0)

    def _with(self, touch: Touch, row: Array, c: RoundContact) -> Touch:
        """This candidate, whose law is one more from now on."""
        self.cuts.append(self._cut(row, touch.gap, c, self.xp.zeros(1)[0, 0]))
        self.impulses.append(self.xp.zeros(1)[0, 0])
        return touch

    def _turns_over(self) -> Array:
        """Whether the body turns over faster than gravity accelerates it in a step."""
        d, w = self.place - self.xp.constant(self.contact.centre), self.before[3:5, :]
        least = RESTS * self.approach.g * self.approach.h
        return (w.T @ w)[0, 0] * (d.T @ d)[0, 0] > least * least

    def _row(self, touch: Touch, place: Array) -> Array:
        """b: n^T (v + w x d) = b^T V, for the normal of the first touch."""
        d = self.axes @ (self.arm + place)
        return self.xp.matrix([[0.0], [0.0], [1.0], [d[1, 0]], [-d[0, 0]], [0.0]])

    def _cut(self, b: Array, gap: Array, c: RoundContact, rolls: Array) -> Cut:
        """The law that a place has in the contact problem."""
        free, before = (b.T @ self.free)[0, 0], (b.T @ self.before)[0, 0]
        return Cut(b, self.Omega @ b, free + self.approach.offset(gap, free, before, c.restitution, rolls))

    def _swept(self) -> Array:
        """The velocities of the link with the impulses of all cuts so far."""
        xp, p = self.xp, self.impulses
        for _ in range(SWEEPS if len(p) > 1 else 1):
            for i, cut in enumerate(self.cuts):
                u = cut.u + sum((cut.b.T @ other.moved)[0, 0] * p[j] for j, other in enumerate(self.cuts))
                new = p[i] - u / (cut.b.T @ cut.moved)[0, 0]
                p[i] = xp.where(new > 0, new, 0.0)
        return self.free + sum(cut.moved * x for cut, x in zip(self.cuts, p, strict=True))


class RollingOver(Rolling):
    """A round body over curved ground, where the lowest place is looked for all around."""

    free_place: tuple[Array, Array] | None = None
    """Where the candidate before would be if it were not used elsewhere, and its gap; FAR if it is there."""

    @cached_property
    def outline(self) -> Outline[Any]:
        """All of it."""
        return self.contact.outline(self.motion, self.ground)

    def _lowest(self) -> Array:
        return self.outline.nearest(self.contact)

    def next(self, c: RoundContact) -> Touch:
        """The next candidate of this body."""
        xp, h, outline, C = self.xp, self.approach.h, self.outline, self.touch.axes
        V = self._swept()
        v, w = h * (C @ V[0:3, :]), h * (C @ V[3:6, :])
        # z(v*) of the samples
        origin = self.motion.poses[self.motion.model.frame(c.frame).link][1]
        arm = turned(outline.centre - origin, w, xp) - (outline.centre - origin)
        axes = turned(outline.axes, w, xp) - outline.axes
        by = [v + arm + axes @ xp.constant(x) for x in outline.units]
        z = [gap + (n.T @ x)[0, 0] for gap, n, x in zip(outline.gaps, outline.normals, by, strict=True)]
        x = outline.lowest(z, outline.axes + axes, outline.centre + v + arm)
        # where it is least, but no deeper than the body is now
        there = c.evaluate(self.motion, self.ground, outline.place(x))
        deep = there.gap + (there.axes[:, 2:3].T @ (v + arm + axes @ x))[0, 0] - self.sunk
        used = self._sinks(deep, there.gap - self.touch.gap)
        place = self._else(c, used)
        touch = c.evaluate(self.motion, self.ground, place + used * (outline.place(x) - place))
        gap = used * (deep - h * (self._row(there, place).T @ V)[0, 0]) + (1.0 - used) * touch.gap
        return self._with(touch._replace(gap=gap), self._row(touch, place), c)

    def _else(self, c: RoundContact, used: Array) -> Array:
        """Where this candidate is unless it is `used`: where the one before would be, if that is free."""
        xp, place = self.xp, self.outline.nearest(c)
        gap, before = c.evaluate(self.motion, self.ground, place).gap, self.free_place
        self.free_place = place, xp.where(used > 0, gap, FAR)
        return place if before is None else xp.where(before[1] < gap, before[0], place)

    def _row(self, touch: Touch, place: Array) -> Array:
        """b: n^T (v + w x d) = b^T V, for the normal n of this touch."""
        turn = self.touch.axes.T @ touch.axes
        n = turn[:, 2:3]
        return self.xp.vstack([n, self.xp.cross(turn @ touch.lever, n)])
