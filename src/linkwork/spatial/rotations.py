"""Rotations and rigid motions: quaternions [x y z w], exp and log maps, all without branches.

Where a formula is 0/0 at the identity, its Taylor series takes over below a threshold at which both are exact to
rounding; both sides are always finite, so a trace can hold both.
"""

from __future__ import annotations

from linkwork.backends.ops import Array, Ops
from linkwork.spatial.vectors import skew

SMALL = 1e-4
"""Squared angle below which series replace closed forms: the first term left out is then below rounding."""


def quaternion_matrix(q: Array, xp: Ops) -> Array:
    """The rotation matrix of a unit quaternion [x y z w]."""
    x, y, z, w = q[0, 0], q[1, 0], q[2, 0], q[3, 0]
    x2, y2, z2 = x + x, y + y, z + z
    xx, xy, xz, yy, yz, zz = x * x2, x * y2, x * z2, y * y2, y * z2, z * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    rows = [[1 - (yy + zz), xy - wz, xz + wy], [xy + wz, 1 - (xx + zz), yz - wx], [xz - wy, yz + wx, 1 - (xx + yy)]]
    return xp.matrix(rows)


def quaternion_product(a: Array, b: Array, xp: Ops) -> Array:
    """a b: first turn by b, then by a (both [x y z w])."""
    av, aw, bv, bw = a[0:3, :], a[3, 0], b[0:3, :], b[3, 0]
    dot = (av.T @ bv)[0, 0]
    return xp.vstack([aw * bv + bw * av + xp.cross(av, bv), xp.matrix([[aw * bw - dot]])])


def quaternion_conjugate(a: Array, xp: Ops) -> Array:
    """The inverse of a unit quaternion."""
    return xp.vstack([-a[0:3, :], a[3:4, :]])


def quaternion_normalised(a: Array, xp: Ops) -> Array:
    return a / xp.sqrt((a.T @ a)[0, 0])


def quaternion_exp(w: Array, xp: Ops) -> Array:
    """The unit quaternion of a rotation vector."""
    t2 = (w.T @ w)[0, 0] / 4
    small = t2 < SMALL
    t = xp.sqrt(xp.where(small, 1.0, t2))
    ratio = xp.where(small, 1 - t2 / 6 * (1 - t2 / 20 * (1 - t2 / 42)), xp.sin(t) / t)
    real = xp.where(small, 1 - t2 / 2 * (1 - t2 / 12 * (1 - t2 / 30)), xp.cos(t))
    return xp.vstack([w * (ratio / 2), xp.matrix([[real]])])


def quaternion_log(q: Array, xp: Ops) -> Array:
    """The rotation vector, of length at most pi, of a unit quaternion."""
    w = q[3, 0]
    sign = xp.where(w < 0, -1.0, 1.0)
    s2 = (q[0:3, :].T @ q[0:3, :])[0, 0]
    small = s2 < SMALL
    s = xp.sqrt(xp.where(small, 1.0, s2))
    series = 2 * (1 + s2 / 6 * (1 + s2 * (9 / 20) * (1 + s2 * (25 / 42))))
    angle_over_s = xp.where(small, series, 2 * xp.atan2(s, sign * w) / s)
    return q[0:3, :] * (sign * angle_over_s)


def matrix_quaternion(R: Array, xp: Ops) -> Array:
    """A unit quaternion of a rotation matrix, from the largest of its four squared components."""
    rows = [[R[i, j] for j in range(3)] for i in range(3)]
    (a, b, c), (d, e, f), (g, h, i) = rows
    candidates = [
        [1 + a - e - i, b + d, c + g, h - f],
        [b + d, 1 - a + e - i, f + h, c - g],
        [c + g, f + h, 1 - a - e + i, d - b],
        [h - f, c - g, d - b, 1 + a + e + i],
    ]
    best, size = candidates[0], candidates[0][0]
    for k in range(1, 4):
        larger = candidates[k][k] > size
        best = [xp.where(larger, new, old) for new, old in zip(candidates[k], best, strict=True)]
        size = xp.where(larger, candidates[k][k], size)
    return quaternion_normalised(xp.matrix([[x] for x in best]), xp)


def log3(R: Array, xp: Ops) -> Array:
    """The rotation vector of a rotation matrix; accurate at 0 and at pi."""
    return quaternion_log(matrix_quaternion(R, xp), xp)


def exp3(w: Array, xp: Ops) -> Array:
    """The rotation matrix of a rotation vector."""
    return quaternion_matrix(quaternion_exp(w, xp), xp)


def _left_jacobian_terms(w: Array, xp: Ops) -> tuple[Array, Array]:
    """(1 - cos t) / t^2 and (t - sin t) / t^3 for t = |w|."""
    t2 = (w.T @ w)[0, 0]
    small = t2 < SMALL
    safe = xp.where(small, 1.0, t2)
    t = xp.sqrt(safe)
    half = xp.sin(t / 2)
    a = xp.where(small, 0.5 - t2 / 24 * (1 - t2 / 30 * (1 - t2 / 56)), 2 * half * half / safe)
    b = xp.where(small, 1 / 6 - t2 / 120 * (1 - t2 / 42 * (1 - t2 / 72)), (t - xp.sin(t)) / (safe * t))
    return a, b


def exp6(v: Array, xp: Ops) -> tuple[Array, Array]:
    """Axes R and origin p reached in unit time from the identity by a constant body velocity."""
    u, w = v[0:3, :], v[3:6, :]
    a, b = _left_jacobian_terms(w, xp)
    wu = xp.cross(w, u)
    return exp3(w, xp), u + a * wu + b * xp.cross(w, wu)


def log6(R: Array, p: Array, xp: Ops) -> Array:
    """The constant body velocity that reaches axes R and origin p from the identity in unit time."""
    w = log3(R, xp)
    t2 = (w.T @ w)[0, 0]
    small = t2 < SMALL
    safe = xp.where(small, 1.0, t2)
    t = xp.sqrt(safe)
    half = t / 2
    # (1 - (t/2) cot(t/2)) / t^2, whose denominator sin(t/2) is safe because t <= pi
    closed = (1 - half * xp.cos(half) / xp.sin(half)) / safe
    g = xp.where(small, 1 / 12 + t2 / 720 * (1 + t2 / 42 * (1 + t2 / 40)), closed)
    wp = xp.cross(w, p)
    return xp.vstack([p - wp / 2 + g * xp.cross(w, wp), w])


def rotation_about(axis: Array, c: Array, s: Array, xp: Ops) -> Array:
    """The rotation matrix about a unit axis (numbers), from cosine and sine (Rodrigues)."""
    k = xp.constant(axis)
    return c * xp.eye(3) + s * skew(k, xp) + (1 - c) * xp.constant(axis.reshape(3, 1) @ axis.reshape(1, 3))
