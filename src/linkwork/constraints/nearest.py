"""Where two bodies are nearest to each other: balls and rods, and what all pairs share.

Without branches: whatever the case, all lanes of a kernel compute the same, and `where` selects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwork.backends.ops import Array, Ops

TINY = 1e-30
"""Added to squared distances, in square metres."""

NEVER = 1e30
"""The depth, in metres, along a direction that does not exist."""

AWAY = 10.0
"""Sizes of both bodies by which the gap of a contact that does not exist is more than their distance: to close it in a
step one would have to pass the other by as much. (A million metres cost digits: with 1e6 a third of float32 throws are
not solved.)"""

EDGE = 1e-6
"""The share of an edge by which a point may be beside a face and still be over it: blocks of one size are stacked."""

FLAT = 0.05
"""Radians by which a rod or a face may be inclined to a face and still lie on it: its contacts have the normal of that
face, which is off by at most as much, and those that are still open count, for they close within a step or two."""

NEARER = 1e-9
"""Metres by which a direction must be better than those before: faces that lie on each other tie."""

PARALLEL = 1e-6
"""The square of the sine of the angle below which two edges are parallel: no normal follows from them."""


class Nearest(NamedTuple):
    """Where two bodies are nearest to each other: points from the world's origin, the normal, the gap."""

    a: Array
    b: Array
    normal: Array
    gap: Array


class Box(NamedTuple):
    """A block in the world: its middle, its axes as columns, half its edges."""

    middle: Array
    axes: Array
    half: np.ndarray


def axes(n: Array, xp: Ops) -> Array:
    """[t1 t2 n], without a branch (Duff et al. 2017).

    t1 turns steadily but where n_z changes its sign.
    """
    x, y, z = n[0, 0], n[1, 0], n[2, 0]
    sign = xp.where(z < 0, -1.0, 1.0)
    c = -1.0 / (sign + z)
    d = x * y * c
    return xp.matrix([[1.0 + sign * x * x * c, d, x], [sign * d, sign + y * y * c, y], [-sign * x, -y, z]])


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
        return x, y + share(dot(e, r), dot(e, e), xp) * e
    if e is None:
        return x - share(dot(d, r), dot(d, d), xp) * d, y
    a, c, b, f, g = dot(d, d), dot(e, e), dot(d, e), dot(d, r), dot(e, r)
    s = share(b * g - f * c, a * c - b * b, xp)  # 0 for parallel lines
    t = share(b * s + g, c, xp)
    s = share(b * t - f, a, xp)
    return x + s * d, y + t * e


def ball_on_box(centre: Array, radius: float, B: Box, xp: Ops) -> Nearest:
    """From outside, the nearest point of the box; from inside, out through the nearest face."""
    x = B.axes.T @ (centre - B.middle)
    apart = beyond(x, B.half, xp)
    distance = xp.sqrt(dot(apart, apart) + TINY)
    # inside: the face of least depth
    signs = [sign(x[k, 0], xp) for k in range(3)]
    depths = [float(h) - signs[k] * x[k, 0] for k, h in enumerate(B.half)]
    least = smaller(smaller(depths[0], depths[1], xp), depths[2], xp)
    first = xp.where(depths[0] <= least, 1.0, 0.0)
    second = (1.0 - first) * xp.where(depths[1] <= least, 1.0, 0.0)
    face = xp.matrix([[first * signs[0]], [second * signs[1]], [(1.0 - first - second) * signs[2]]])
    outside = least < 0
    normal = xp.where(outside, apart / distance, face)
    reach = xp.where(outside, distance, -least)
    n = B.axes @ normal
    return Nearest(centre - radius * n, centre - reach * n, n, reach - radius)


def beyond(x: Array, half: np.ndarray, xp: Ops) -> Array:
    """A point less the nearest point of a box, both in the axes of the box: zero inside."""
    return xp.matrix([[_past(x[k, 0], float(h), xp)] for k, h in enumerate(half)])


def _past(x: Array, h: float, xp: Ops) -> Array:
    return xp.where(x > h, x - h, xp.where(x < -h, x + h, 0.0))


def away(distance: Array, size: float, xp: Ops) -> Array:
    """The gap of a contact that does not exist, of bodies of this size and distance."""
    return larger(distance, 0.0, xp) + AWAY * (size or 1.0)


def dot(a: Array, b: Array) -> Array:
    """a^T b of two columns."""
    return (a.T @ b)[0, 0]


def share(over: Array, whole: Array, xp: Ops) -> Array:
    """over / whole, between 0 and 1; 0 if the whole is."""
    return between(xp.where(whole > TINY, over / xp.where(whole > TINY, whole, 1.0), 0.0), 0.0, 1.0, xp)


def between(x: Array, least: Array, most: Array, xp: Ops) -> Array:
    """x, but at least and at most these."""
    return larger(smaller(x, most, xp), least, xp)


def larger(a: Array, b: Array, xp: Ops) -> Array:
    """The larger of two scalars."""
    return xp.where(a < b, b, a)


def smaller(a: Array, b: Array, xp: Ops) -> Array:
    """The smaller of two scalars."""
    return xp.where(a > b, b, a)


def sign(x: Array, xp: Ops) -> Array:
    """-1.0 below zero, else 1.0."""
    return xp.where(x < 0, -1.0, 1.0)


def absolute(x: Array, xp: Ops) -> Array:
    """|x| of a scalar."""
    return xp.where(x < 0, -x, x)
