"""A rod and a block: two of the balls that a rod is made of, each nearest to the block in its place.

One is where the rod is nearest. With x + t e, 0 <= t <= 1, in the axes of the block, the squared distance is convex,

    f(t) = sum_k past(x_k + t e_k)^2,     past(y) = y beyond the face y = h, else 0,

and f' is linear between the t at which the rod passes a face's plane. So f' at these six finds the piece with its zero.

The other is where the part of the rod that lies on the same face or edge ends, whichever of its two ends is farther:
a rod lies on two places, the ends of what is over the face. Where it crosses an edge, it touches in one.

An axis inside the block comes out along the normal of a face, or of the rod and an edge, along which it is least deep
(separating axes, as for two blocks).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwork.backends.ops import Array, Ops, threshold
from linkwork.constraints.nearest import (
    EDGE,
    FLAT,
    NEARER,
    NEVER,
    PARALLEL,
    TINY,
    Box,
    Nearest,
    absolute,
    away,
    between,
    beyond,
    dot,
    larger,
    share,
    sign,
    smaller,
)

STEEP = 1e-12
"""The part of a rod along an axis, relative to the block, below which it is at right angles to it."""

INSIDE = 1e-8
"""The distance of the axis from the block, relative to the block, below which it gives no normal."""


class Deep(NamedTuple):
    """The way out for an axis inside a block: normal, whether it is over an edge, where on the rod."""

    normal: Array
    edge: Array
    t: Array


def rod_on_block(start: Array, along: Array, radius: float, B: Box, slot: int, xp: Ops) -> Nearest:
    """Contact number `slot` of a rod and a block: the first or second place, seen from `start`."""
    x, e, size = B.axes.T @ (start - B.middle), B.axes.T @ along, float(B.half.max())
    flat = [e[k, 0] * e[k, 0] > (STEEP * size) ** 2 for k in range(3)]
    inverse = [1.0 / xp.where(flat[k], e[k, 0], STEEP * size + TINY) for k in range(3)]
    t = _nearest(x, e, inverse, B.half, xp)
    apart = beyond(x + t * e, B.half, xp)
    distance = xp.sqrt(dot(apart, apart) + TINY)
    outside = distance > threshold(xp, INSIDE) * size
    deep = _deep(x, e, B.half, xp)
    normal = xp.where(outside, apart / distance, deep.normal)
    # the part that lies on what has this normal
    first, last = 0.0, 1.0
    for k, h in enumerate(B.half):
        on = normal[k, 0] * normal[k, 0] < FLAT * FLAT
        most = larger(float(h), absolute(x[k, 0] + t * e[k, 0], xp), xp)
        low, high = (-most - x[k, 0]) * inverse[k], (most - x[k, 0]) * inverse[k]
        first = xp.where(on, larger(first, smaller(low, high, xp), xp), first)
        last = xp.where(on, smaller(last, larger(low, high, xp), xp), last)
    first, last = smaller(first, t, xp), larger(last, t, xp)
    lowest = xp.where(dot(deep.normal, e) > 0, first, last)
    t = xp.where(outside, t, xp.where(deep.edge, deep.t, lowest))
    end = xp.where(t - first > last - t, first, last)
    here = smaller(t, end, xp) if slot == 0 else larger(t, end, xp)
    # the ball there
    place = x + here * e
    apart = beyond(place, B.half, xp)
    distance = xp.sqrt(dot(apart, apart) + TINY)
    out = xp.where(outside, apart / distance, normal)
    top = sum((float(h) * absolute(normal[k, 0], xp) for k, h in enumerate(B.half)), start=0.0)
    reach = xp.where(outside, distance, dot(normal, place) - top)
    # the end is no contact of its own where it is the same place, or where the axis comes out over an edge
    two = (t - end) * (t - end) > EDGE * EDGE
    of_end = (t - here) * (t - here) > EDGE * EDGE
    crossed = xp.where(outside, 0.0, xp.where(deep.edge, 1.0, 0.0))
    none = xp.where(two, xp.where(of_end, crossed, 0.0), float(slot)) > 0.5
    gap = xp.where(none, away(distance, float(np.linalg.norm(B.half)) + radius, xp), reach - radius)
    n, centre = B.axes @ out, start + here * along
    return Nearest(centre - radius * n, centre - reach * n, n, gap)


def _nearest(x: Array, e: Array, inverse: list[Array], half: np.ndarray, xp: Ops) -> Array:
    """The t of the least f; the first one if there are several."""

    def rate(t: Array) -> Array:
        return dot(beyond(x + t * e, half, xp), e)  # f' / 2

    low, falls, high, rises = 0.0, rate(0.0), 1.0, rate(1.0)
    low, falls = xp.where(rises < 0, 1.0, low), xp.where(rises < 0, rises, falls)
    for k, h in enumerate(half):
        for face in (-float(h), float(h)):
            t = between((face - x[k, 0]) * inverse[k], 0.0, 1.0, xp)
            slope = rate(t)
            before, after = xp.where(slope < 0, t, -1.0) > low, xp.where(slope < 0, 2.0, t) < high
            low, falls = xp.where(before, t, low), xp.where(before, slope, falls)
            high, rises = xp.where(after, t, high), xp.where(after, slope, rises)
    return low + (high - low) * share(-falls, rises - falls, xp)


def _deep(x: Array, e: Array, half: np.ndarray, xp: Ops) -> Deep:
    """The way out of the block along which the axis is least deep."""
    middle, long = x + 0.5 * e, dot(e, e)
    best: Array = -NEVER
    normal: Array = xp.constant(np.zeros((3, 1)))
    for k, h in enumerate(half):
        gap = absolute(middle[k, 0], xp) - 0.5 * absolute(e[k, 0], xp) - float(h)
        face = sign(middle[k, 0], xp) * xp.constant(np.eye(3)[:, k : k + 1])
        better = gap > best + NEARER
        best, normal = xp.where(better, gap, best), xp.where(better, face, normal)
    over, out, place = -NEVER, xp.constant(np.zeros((3, 1))), 0.0
    for k in range(3):
        l, m = (k + 1) % 3, (k + 2) % 3
        square = e[l, 0] * e[l, 0] + e[m, 0] * e[m, 0]
        skew = square > PARALLEL * long
        length = xp.sqrt(xp.where(skew, square, 1.0))
        along = e[m, 0] * middle[l, 0] - e[l, 0] * middle[m, 0]
        reach = float(half[l]) * absolute(e[m, 0], xp) + float(half[m]) * absolute(e[l, 0], xp)
        gap = xp.where(skew, (absolute(along, xp) - reach) / length, -NEVER)
        side = sign(along, xp) / length
        nl, nm = side * e[m, 0], -side * e[l, 0]
        L, M = float(half[l]) * sign(nl, xp), float(half[m]) * sign(nm, xp)
        t = ((L - x[l, 0]) * e[l, 0] + (M - x[m, 0]) * e[m, 0]) / (length * length)
        n = xp.constant(np.eye(3)[:, l : l + 1]) * nl + xp.constant(np.eye(3)[:, m : m + 1]) * nm
        better = gap > over
        over, out, place = xp.where(better, gap, over), xp.where(better, n, out), xp.where(better, t, place)
    skew = xp.where(dot(out, normal) < float(np.cos(FLAT)), 1.0, 0.0)
    edge = skew * xp.where(over > best + NEARER, 1.0, 0.0) > 0.5
    return Deep(xp.where(edge, out, normal), edge, between(place, 0.0, 1.0, xp))
