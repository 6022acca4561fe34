"""Two blocks: the points in which they touch, without branches.

Of 15 directions, the normals of the faces of A and B and the cross products of their edges, the one along which the two
are farthest apart, or overlap least, is the normal n, from B to A (separating axes: Gottschalk, Lin, Manocha 1996).

Where it is a face's, two faces lie on each other, or nearly. Seen along n they are two parallelograms, and the corners
of what both cover are the contacts: at most eight. Each side of that polygon is a part of an edge of A's face or of
B's. With the edges of both in one sense of rotation, contact k is the point where the part of edge k begins: every
corner of the polygon once, and no more contacts than the corners of each face on the other would be.

Where it is that of two edges, they touch in one point, the nearest of their lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.constraints.nearest import (
    EDGE,
    FLAT,
    NEARER,
    NEVER,
    PARALLEL,
    Box,
    Nearest,
    absolute,
    away,
    dot,
    larger,
    sign,
    smaller,
)

ACROSS = 1e-12
"""The change of a coordinate along an edge below which the edge is parallel to the side that bounds it."""

THIN = 1e-6
"""The least width of a face, relative to the longest edge: flat blocks are blocks."""


class Face(NamedTuple):
    """A face seen along n: its centre, half edges u and v in the sense of rotation, and its normal.

    The normal m is the one with m^T n > 0.
    """

    centre: Array
    u: Array
    v: Array
    normal: Array


def block_on_block(A: Box, B: Box, slot: int, xp: Ops) -> Nearest:
    """Contact number `slot` of two blocks; away if they have fewer."""
    R, d = A.axes.T @ B.axes, A.middle - B.middle
    n, face_gap, of_A = _face_normal(A, B, R, d, xp)
    touched = _edges(A, B, R, d, xp)
    none = away(face_gap, float(np.linalg.norm(A.half) + np.linalg.norm(B.half)), xp)
    skew = xp.where(dot(n, touched.normal) < float(np.cos(FLAT)), 1.0, 0.0)
    edges = skew * xp.where(touched.gap > face_gap + NEARER, 1.0, 0.0) > 0.5
    F, G = _face(A, n, -1.0, 1.0 + EDGE * of_A, xp), _face(B, n, 1.0, 1.0 + EDGE * (1.0 - of_A), xp)
    corner = _corner(F, G, n, slot, none, xp)
    if slot:  # of what does not exist only the normal counts: that of all contacts of the two
        return corner._replace(normal=xp.where(edges, touched.normal, n), gap=xp.where(edges, none, corner.gap))
    return Nearest(*(xp.where(edges, one, other) for one, other in zip(touched.within(none), corner, strict=True)))


def _face_normal(A: Box, B: Box, R: Array, d: Array, xp: Ops) -> tuple[Array, Array, Array]:
    """The face normal along which the blocks are farthest apart, how far, and whether it is A's."""
    best: Array = -NEVER
    n: Array = xp.constant(np.zeros((3, 1)))
    of_A: Array = 0.0
    for owner, other, across in ((B, A, R), (A, B, R.T)):
        for k in range(3):
            axis = owner.axes[:, k : k + 1]
            along = dot(axis, d)
            side = sign(along, xp)
            gap = side * along - float(owner.half[k]) - _reach(other.half, across[:, k : k + 1], xp)
            better = gap > best + NEARER
            best, n = xp.where(better, gap, best), xp.where(better, side * axis, n)
            of_A = xp.where(better, 1.0, of_A) if owner is A else of_A
    return n, best, of_A


def _reach(half: np.ndarray, n: Array, xp: Ops) -> Array:
    """How far a block reaches along n, in its axes."""
    return sum((float(h) * absolute(n[k, 0], xp) for k, h in enumerate(half)), start=0.0)


class Crossing(NamedTuple):
    """Where the lines of two edges are nearest to each other, and whether that is beside one of the edges."""

    a: Array
    b: Array
    normal: Array
    gap: Array
    beside: Array

    def within(self, none: Array) -> Nearest:
        """As a contact, with the gap `none` more beside the edges."""
        return Nearest(self.a, self.b, self.normal, self.gap + none * self.beside)


def _edges(A: Box, B: Box, R: Array, d: Array, xp: Ops) -> Crossing:
    """Of all pairs of edges the one along whose cross product the blocks are farthest apart."""
    dA, best = A.axes.T @ d, xp.matrix([[-NEVER], [0.0], [0.0]])
    for i in range(3):
        for j in range(3):
            k, l, m, o = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
            x, y = -R[l, j], R[k, j]  # a_i x b_j along a_k and a_l
            along = absolute(x * dA[k, 0] + y * dA[l, 0], xp)
            reach = float(A.half[k]) * absolute(x, xp) + float(A.half[l]) * absolute(y, xp)
            reach = reach + float(B.half[m]) * absolute(R[i, o], xp) + float(B.half[o]) * absolute(R[i, m], xp)
            square = x * x + y * y
            skew = square > PARALLEL
            gap = xp.where(skew, (along - reach) / xp.sqrt(xp.where(skew, square, 1.0)), -NEVER)
            best = xp.where(gap > best[0, 0], xp.matrix([[gap], [float(i)], [float(j)]]), best)
    return _crossing(A, B, _unit(best[1, 0], xp), _unit(best[2, 0], xp), d, xp)


def _unit(number: Array, xp: Ops) -> Array:
    """The axis with this number: 0, 1 or 2."""
    first, last = xp.where(number < 0.5, 1.0, 0.0), xp.where(number > 1.5, 1.0, 0.0)
    return xp.matrix([[first], [1.0 - first - last], [last]])


def _crossing(A: Box, B: Box, i: Array, j: Array, d: Array, xp: Ops) -> Crossing:
    """The nearest points of two edges, along axis i of A and axis j of B, each nearest to the other block."""
    a, b = A.axes @ i, B.axes @ j
    across = xp.cross(a, b)
    square = larger(dot(across, across), PARALLEL, xp)
    n = (sign(dot(across, d), xp) / xp.sqrt(square)) * across
    one, other = _middle_of_edge(A, i, -1.0, n, xp), _middle_of_edge(B, j, 1.0, n, xp)
    r = one - other
    f, g, c = dot(a, r), dot(b, r), dot(a, b)
    s, t = (c * g - f) / square, (g - c * f) / square
    beside = larger(absolute(s, xp) - _length(A, i, xp), absolute(t, xp) - _length(B, j, xp), xp)
    return Crossing(one + s * a, other + t * b, n, dot(n, r), xp.where(beside > 0, 1.0, 0.0))


def _middle_of_edge(P: Box, i: Array, side: float, n: Array, xp: Ops) -> Array:
    """The middle of the edge along axis i that is farthest along n (side 1), or against it (-1)."""
    c = P.axes.T @ n
    local = [(side * float(h)) * ((1.0 - i[k, 0]) * sign(c[k, 0], xp)) for k, h in enumerate(P.half)]
    return P.middle + P.axes @ xp.matrix([[x] for x in local])


def _length(P: Box, i: Array, xp: Ops) -> Array:
    """Half the edge along axis i, and what counts as on it."""
    return (1 + EDGE) * dot(xp.constant(P.half[:, None]), i)


def _face(P: Box, n: Array, side: float, scale: Array, xp: Ops) -> Face:
    """The face of a block that looks along n (side 1) or against it (-1), its edges `scale` times as long."""
    c = P.axes.T @ n
    square = [c[k, 0] * c[k, 0] for k in range(3)]
    first = xp.where(square[0] >= square[1], xp.where(square[0] >= square[2], 1.0, 0.0), 0.0)
    second = (1.0 - first) * xp.where(square[1] >= square[2], 1.0, 0.0)
    out = [first, second, 1.0 - first - second]  # which of the axes is its normal
    up = sum((out[k] * sign(c[k, 0], xp) for k in range(3)), start=0.0)
    wide = np.maximum(P.half, THIN * P.half.max(initial=THIN))

    def combined(lengths: np.ndarray, shift: int) -> Array:
        return P.axes @ xp.matrix([[float(lengths[k]) * out[(k - shift) % 3]] for k in range(3)])

    height, normal = combined(P.half, 0), combined(np.ones(3), 0)
    return Face(
        P.middle + (side * up) * height, scale * combined(wide, 1), (scale * up) * combined(wide, 2), up * normal
    )


def _corner(F: Face, G: Face, n: Array, slot: int, none: Array, xp: Ops) -> Nearest:
    """Where edge `slot` begins to be a side of what both faces cover; with the gap `none` where it is not.

    Edges 0 to 3 are those of F, A's face, 4 to 7 those of G, B's.
    From the middle of a face an edge is at x + t y, -1 <= t <= 1, with (x, y) = (-v, u), (u, v), (v, -u) or (-u, -v).
    """
    mine, other = (F, G) if slot < 4 else (G, F)
    near, far = (mine.v, mine.u) if slot % 2 == 0 else (mine.u, mine.v)  # lines of x and of y
    x_side, y_side = ((-1.0, 1.0), (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0))[slot % 4]
    area = dot(xp.cross(other.u, other.v), n)
    start, end = -1.0, 1.0
    for dual in (xp.cross(other.v, n), xp.cross(n, other.u)):  # the other face's coordinates, from -1 to 1 on it
        at = (dot(dual, mine.centre - other.centre) + x_side * dot(dual, near)) / area
        slope = dot(dual, far) / area
        inverse = y_side / xp.where(slope * slope > ACROSS * ACROSS, slope, ACROSS)
        one, two = (-1.0 - at) * inverse, (1.0 - at) * inverse
        start, end = larger(start, smaller(one, two, xp), xp), smaller(end, larger(one, two, xp), xp)
    exists = start < end
    point = mine.centre + x_side * near + xp.where(exists, y_side * start, 0.0) * far
    height = dot(other.normal, point - other.centre) / dot(other.normal, n)
    below = point - height * n  # on the other face
    gap = xp.where(exists, height if slot < 4 else -height, none)
    return Nearest(point, below, n, gap) if slot < 4 else Nearest(below, point, n, gap)
