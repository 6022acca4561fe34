"""The laws of single contacts, each solved for the impulse of that contact alone.

With all other impulses given, the velocity of a contact is affine in its own impulse, u = A p + b.

`Cone`, Signorini and Coulomb: u_n >= 0, p_n >= 0, u_n p_n = 0; |p_t| <= mu p_n; if it slips, p_t = -mu p_n u_t / |u_t|.
    Slipping with the unknown s = |u_t| / (mu p_n) is linear: (A_tt + s) p_t + A_tn p_n + b_t = 0, A_n p + b_n = 0. Then
    s >= 0 solves |p_t(s)| = mu p_n(s), and s = 0 is sticking: Newton's method on 1 / |p_t|, one step at a time, as for
    the radius of a trust region. The step is exact if the slip does not change the normal force.

`Stop`, a joint with limits and dry friction: |p| <= p_max while lower < u < upper, more of it only to stay between. So
are torsional and rolling friction of a contact, with p_max = p_n of that contact, and rows that are angular velocities
times their coefficients (lengths): turning about n, t1 and t2 is resisted separately, in a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from linkwork.backends.ops import Array, Ops, tiny

LEAST = 1e-10
"""The least mobility along an axis, relative to their mean: in a plane mechanism one of them is zero."""

FASTEST, SINGLE = 1e60, 1e9
"""The largest s, relative to the contact's own mobility, and that in float32: without friction there would be no end to
it. Its fourth power is still a number."""


class Held(NamedTuple):
    """The part of a law that is in force.

    u + diag(slip) p = velocity if `active` is 1, p = impulse if it is 0.
    """

    active: Array  # a scalar
    slip: Array  # rows x 1, as velocity and impulse
    velocity: Array
    impulse: Array


class Cone:
    """A contact with friction `mu`; rows are [t1 t2 n], its memory is s."""

    rows, memory = 3, 1

    def __init__(self, A: Array, mu: Array, xp: Ops) -> None:
        self.mu, self.xp = mu, xp
        mean = (A[0, 0] + A[1, 1] + A[2, 2]) / 3
        self.scale = xp.where(mean > 0, mean, 1.0)
        self.fastest = (SINGLE if xp.single else FASTEST) * self.scale
        # the tangential problem with the normal velocity held at zero
        least = LEAST * self.scale
        self.n = 1.0 / xp.where(A[2, 2] > least, A[2, 2], least)
        self.c0, self.c1 = A[0, 2] * self.n, A[1, 2] * self.n
        W00, W11 = A[0, 0] - self.c0 * A[0, 2], A[1, 1] - self.c1 * A[1, 2]
        W00, W11 = (xp.where(w > least, w, least) for w in (W00, W11))
        self.W01 = A[0, 1] - self.c0 * A[1, 2]
        # along a line, as a single joint moves a contact, the determinant is rounding
        line = W00 * W11 - self.W01 * self.W01 <= LEAST * W00 * W11
        least = xp.where(line, LEAST * (W00 + W11), 0.0)
        self.W00, self.W11 = W00 + least, W11 + least

    def given(self, p: Sequence[Array]) -> Self:
        """The law where other contacts have the impulses p: it does not depend on these."""
        return self

    def solved(self, b: Array, s: Array) -> tuple[Array, Array, Array]:
        """The impulse, 3 x 1, s for the next time, and how far the impulse with that s is from the cone."""
        xp, mu, bn = self.xp, self.mu, b[2, 0]
        w0, w1 = b[0, 0] - self.c0 * bn, b[1, 0] - self.c1 * bn
        # Newton's step for s
        t0, t1, d0, d1 = self._slip(w0, w1, s)
        N, dN = self._normal(bn, t0, t1), -(self.c0 * d0 + self.c1 * d1)
        length = xp.sqrt(t0 * t0 + t1 * t1 + tiny(xp))
        slope = (t0 * d0 + t1 * d1) / length - mu * dN
        ratio = xp.where(N > 0, length / (mu * xp.where(N > 0, N, 1.0) + tiny(xp)), 1.0)
        excess, falls = length - mu * N, slope < 0
        new = s - excess * ratio / xp.where(falls, slope, -1.0)
        # where slip raises the normal force by more than its own, there is no root nearby: stick, or slip faster
        new = xp.where(falls, new, xp.where(excess < 0, 0.0, 2 * s + self.scale))
        new = xp.where(new > 0, xp.where(new < self.fastest, new, self.fastest), 0.0)
        # the impulse with that s, moved into the cone while s is not exact
        t0, t1, _, _ = self._slip(w0, w1, new)
        N = self._normal(bn, t0, t1)
        length = xp.sqrt(t0 * t0 + t1 * t1 + tiny(xp))
        excess = length - mu * N
        off = xp.where(bn < 0, xp.where(excess > 0, excess, xp.where(new > 0, -excess, 0.0)), 0.0)
        N = xp.where(bn < 0, xp.where(N > 0, N, 0.0), 0.0)
        inside = xp.where(length > mu * N, mu * N / length, 1.0)
        return xp.matrix([[inside * t0], [inside * t1], [N]]), xp.where(bn < 0, new, s), off * xp.eye(1)

    def _slip(self, w0: Array, w1: Array, s: Array) -> tuple[Array, Array, Array, Array]:
        """p_t for a value of s, and its derivative by s."""
        B00, B11 = self.W00 + s, self.W11 + s
        r = -1.0 / (B00 * B11 - self.W01 * self.W01)
        t0, t1 = r * (B11 * w0 - self.W01 * w1), r * (B00 * w1 - self.W01 * w0)
        return t0, t1, r * (B11 * t0 - self.W01 * t1), r * (B00 * t1 - self.W01 * t0)

    def _normal(self, bn: Array, t0: Array, t1: Array) -> Array:
        return -(self.n * bn + self.c0 * t0 + self.c1 * t1)

    def inside(self, p: Array) -> Array:
        """An impulse in the cone near p, 3 x 1."""
        xp = self.xp
        N = xp.where(p[2, 0] > 0, p[2, 0], 0.0)
        length = xp.sqrt(p[0, 0] * p[0, 0] + p[1, 0] * p[1, 0] + tiny(xp))
        share = xp.where(length > self.mu * N, self.mu * N / length, 1.0)
        return xp.matrix([[share * p[0, 0]], [share * p[1, 0]], [N]])

    def near(self, p: Array, r: Array) -> Array:
        """The impulse that the law requires if the velocity of an impulse x is r (x - p)."""
        return self.inside(p)

    def held(self, p: Array, b: Array, s: Array) -> Held:
        """Open where it does not push; else it slips with s, or sticks with s = 0."""
        xp, none = self.xp, self.xp.zeros(3)
        return Held(xp.where(p[2, 0] > 0, 1.0, 0.0), xp.matrix([[s], [s], [0.0]]), none, none)

    def violation(self, p: Array, u: Array) -> Array:
        """The largest entry of (p - proj(p - r (u + mu |u_t| n))) / r: zero exactly for solutions.

        u + mu |u_t| n is in the dual cone and at right angles to p (de Saxce's form of the two laws).
        """
        xp, mu, r = self.xp, self.mu, 1.0 / self.scale
        slip = xp.sqrt(u[0, 0] * u[0, 0] + u[1, 0] * u[1, 0])
        x0, x1, xn = p[0, 0] - r * u[0, 0], p[1, 0] - r * u[1, 0], p[2, 0] - r * (u[2, 0] + mu * slip)
        length = xp.sqrt(x0 * x0 + x1 * x1 + tiny(xp))
        N = (xn + mu * length) / (1 + mu * mu)
        N = xp.where(length > mu * xn, xp.where(N > 0, N, 0.0), xn)
        inside = xp.where(length > mu * N, mu * N / length, 1.0)
        off = xp.matrix([[p[0, 0] - inside * x0], [p[1, 0] - inside * x1], [p[2, 0] - N]])
        return self.scale * largest(xp, off)


@dataclass(frozen=True)
class Stop:
    """A joint that moves between two velocities; friction resists with up to `p_max`. One row, no memory.

    `A` is its mobility; `alone` is any measure of that, by which violations are weighed: of the joint with links before
    it at rest, say. If it is `of` a contact, `p_max` is that one's normal impulse. `sides` says whether it has
    a lower and an upper velocity.
    """

    A: Array
    alone: Array
    lower: Array
    upper: Array
    p_max: Array
    xp: Ops
    of: int | None = None
    sides: tuple[bool, bool] = (True, True)
    rows, memory = 1, 0

    @property
    def scale(self) -> Array:
        return self._unless_still(self.A[0, 0])

    def given(self, p: Sequence[Array]) -> Self:
        """The law where other contacts have the impulses p."""
        return self if self.of is None else replace(self, p_max=p[self.of][2, 0])

    def solved(self, b: Array, s: Array) -> tuple[Array, Array, Array]:
        """The impulse, 1 x 1, which is exact."""
        return self._graph(b[0, 0], self.scale) * self.xp.eye(1), s, self.xp.zeros(1)

    def inside(self, p: Array) -> Array:
        """Any impulse is possible."""
        return p

    def near(self, p: Array, r: Array) -> Array:
        """The impulse that the law requires if the velocity of an impulse x is r (x - p)."""
        return self._graph(-r * p[0, 0], r) * self.xp.eye(1)

    def _graph(self, bn: Array, A: Array) -> Array:
        xp, A = self.xp, self._unless_still(A)
        p = -bn / A
        p = xp.where(p > self.p_max, self.p_max, xp.where(p < -self.p_max, -self.p_max, p))
        least, most = (self.lower - bn) / A, (self.upper - bn) / A
        return xp.where(p < least, least, xp.where(p > most, most, p))

    def held(self, p: Array, b: Array, s: Array) -> Held:
        """At one of the two velocities, at rest by friction, or moving against friction."""
        xp, bn, p_max = self.xp, b[0, 0], self.p_max
        free = -bn / self.scale
        against = xp.where(free > p_max, p_max, xp.where(free < -p_max, -p_max, free))
        u = bn + self.A[0, 0] * against
        at, moves = xp.where(u < self.lower, self.lower, self.upper), free * free > p_max * p_max
        stops = xp.where(u < self.lower, 1.0, xp.where(u > self.upper, 1.0, 0.0))
        active = xp.where(moves, stops, 1.0)
        one = xp.eye(1)
        return Held(active, xp.zeros(1), (stops * at) * one, ((1.0 - active) * against) * one)

    def violation(self, p: Array, u: Array) -> Array:
        """|p - p(u - A p)|, times A, with A alone."""
        off = p[0, 0] - self._graph(u[0, 0] - self.alone * p[0, 0], self.alone)
        return self.alone * self.xp.sqrt(off * off) * self.xp.eye(1)

    def _unless_still(self, A: Array) -> Array:
        """A mobility, or 1 if no joint turns the link of a contact about this axis: no impulse matters."""
        return A if self.of is None else self.xp.where(A > 0, A, 1.0)


Law = Cone | Stop


def largest(xp: Ops, x: Array) -> Array:
    """The largest absolute entry of a column, 1 x 1; NaN if any is."""
    worst = xp.zeros(1)
    for i in range(x.shape[0]):
        square = x[i : i + 1, :] * x[i : i + 1, :]
        worst = xp.where(square <= worst, worst, square)
    return xp.sqrt(worst)


def larger(xp: Ops, a: Array, b: Array) -> Array:
    """The larger of two numbers that are not negative, 1 x 1; NaN if b is."""
    return xp.where(b <= a, a, b)
