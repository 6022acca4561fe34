"""Three- and six-dimensional vectors. A spatial vector is [linear; angular]."""

from __future__ import annotations

from linkwork.backends.ops import Array, Ops


def linear(v: Array) -> Array:
    """The upper half of a spatial vector, or of the columns of a 6 x k matrix."""
    return v[0:3, :]


def angular(v: Array) -> Array:
    """The lower half of a spatial vector, or of the columns of a 6 x k matrix."""
    return v[3:6, :]


def skew(a: Array, xp: Ops) -> Array:
    """The matrix of a x."""
    x, y, z, o = a[0, 0], a[1, 0], a[2, 0], 0 * a[0, 0]
    return xp.matrix([[o, -z, y], [z, o, -x], [-y, x, o]])


def cross_motion(v: Array, m: Array, xp: Ops) -> Array:
    """v x m: how a motion vector `m`, fixed in a frame moving with `v`, changes."""
    w = angular(v)
    return xp.vstack([xp.cross(w, linear(m)) + xp.cross(linear(v), angular(m)), xp.cross(w, angular(m))])


def cross_force(v: Array, f: Array, xp: Ops) -> Array:
    """v x* f: how a force vector `f`, fixed in a frame moving with `v`, changes."""
    w = angular(v)
    return xp.vstack([xp.cross(w, linear(f)), xp.cross(w, angular(f)) + xp.cross(linear(v), linear(f))])


def columns_cross_force(v: Array, f: Array, xp: Ops) -> Array:
    """v x* f for each column of a 6 x k matrix `v`."""
    lin, w = linear(f), angular(v)
    return xp.vstack([-xp.cross(lin, w), -xp.cross(angular(f), w) - xp.cross(lin, linear(v))])
