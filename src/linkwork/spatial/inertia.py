"""Inertias of rigid and of articulated bodies, as 3 x 3 blocks, and how they move between frames.

Blocks instead of 6 x 6 matrices because each has a symmetry of its own, and because turning a block about a
coordinate axis costs a fraction of a general rotation.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.backends.ops import Array, Ops
from linkwork.lazy import cached_property
from linkwork.spatial.vectors import angular, linear, skew

OTHER_AXES = ((1, 2), (2, 0), (0, 1))
"""For each axis, the two that a positive rotation about it turns into each other: first towards second."""


@dataclass(frozen=True)
class RigidInertia:
    """Mass, first moment h = m c and rotational inertia I about the frame's origin."""

    mass: Array
    h: Array
    I: Array
    xp: Ops

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(self.mass + other.mass, self.h + other.h, self.I + other.I, self.xp)

    def __matmul__(self, a: Array) -> Array:
        """The force I a: [m a - h x alpha; I alpha + h x a], for a motion or the columns of a 6 x k matrix."""
        if self.xp.dense:
            return self._matrix @ a
        lin, ang, xp = linear(a), angular(a), self.xp
        return xp.vstack([self.mass * lin - xp.cross(self.h, ang), self.I @ ang + xp.cross(self.h, lin)])

    @cached_property
    def _matrix(self) -> Array:
        """6 x 6: where zeros cost as much as other numbers, one product costs least."""
        return self.articulated().matrix()

    def bias(self, w: Array) -> Array:
        """The force that turning at `w` takes when the origin does not accelerate: [w x (w x h); w x I w]."""
        xp = self.xp
        return xp.vstack([xp.cross(w, xp.cross(w, self.h)), xp.cross(w, self.I @ w)])

    def translated(self, p: Array) -> RigidInertia:
        """Seen from a frame in which this frame's origin is at `p` (Steiner's theorem)."""
        xp = self.xp
        hp = self.h + self.mass * p
        # I - (p^ h^ + h'^ p^), written with a b^T - (a.b) 1 = b^ a^ so that each product appears once
        outer = p @ self.h.T + hp @ p.T
        trace = outer[0, 0] + outer[1, 1] + outer[2, 2]
        return RigidInertia(self.mass, hp, self.I + (trace * xp.eye(3) - xp.symmetric(outer)), xp)

    def rotated(self, R: Array) -> RigidInertia:
        """Seen from a frame in which this frame has the axes R."""
        return RigidInertia(self.mass, R @ self.h, rotate_symmetric(self.I, R, self.xp), self.xp)

    def turned(self, axis: int, c: Array, s: Array, R: Array) -> RigidInertia:
        """Seen from a frame in which this frame is turned about a coordinate axis, R being that rotation."""
        return RigidInertia(self.mass, R @ self.h, turn_symmetric(self.I, axis, c, s, self.xp), self.xp)

    def articulated(self) -> ArticulatedInertia:
        return ArticulatedInertia(self.mass * self.xp.eye(3), -skew(self.h, self.xp), self.I, self.xp)


@dataclass(frozen=True)
class ArticulatedInertia:
    """The symmetric 6 x 6 matrix [[M, H], [H^T, I]]."""

    M: Array
    H: Array
    I: Array
    xp: Ops

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.M + other.M, self.H + other.H, self.I + other.I, self.xp)

    def __matmul__(self, a: Array) -> Array:
        lin, ang = linear(a), angular(a)
        return self.xp.vstack([self.M @ lin + self.H @ ang, self.H.T @ lin + self.I @ ang])

    def matrix(self) -> Array:
        top, bottom = self.xp.hstack([self.M, self.H]), self.xp.hstack([self.H.T, self.I])
        return self.xp.vstack([top, bottom])

    def minus(self, U: Array, V: Array) -> ArticulatedInertia:
        """IA - U V^T, known to be symmetric."""
        xp = self.xp
        Ul, Ua, Vl, Va = linear(U), angular(U), linear(V), angular(V)
        M = self.M - xp.symmetric(Ul @ Vl.T)
        H = self.H - Ul @ Va.T
        I = self.I - xp.symmetric(Ua @ Va.T)
        return ArticulatedInertia(M, H, I, xp)

    def translated(self, p: Array) -> ArticulatedInertia:
        """Seen from a frame in which this frame's origin is at `p`: H' = H - M p^, I' = I + p^ H' + (p^ H)^T."""
        xp = self.xp
        H = self.H + xp.cross(p, self.M).T
        shift = xp.cross(p, H) + xp.cross(p, self.H).T
        return ArticulatedInertia(self.M, H, self.I + xp.symmetric(shift), xp)

    def rotated(self, R: Array) -> ArticulatedInertia:
        """Seen from a frame in which this frame has the axes R."""
        xp = self.xp
        M, I = rotate_symmetric(self.M, R, xp), rotate_symmetric(self.I, R, xp)
        return ArticulatedInertia(M, R @ self.H @ R.T, I, xp)

    def turned(self, axis: int, c: Array, s: Array, R: Array) -> ArticulatedInertia:
        """Seen from a frame in which this frame is turned about a coordinate axis, R being that rotation."""
        xp = self.xp
        M, I = turn_symmetric(self.M, axis, c, s, xp), turn_symmetric(self.I, axis, c, s, xp)
        return ArticulatedInertia(M, turn_general(self.H, axis, c, s, xp), I, xp)


def turn_symmetric(A: Array, axis: int, c: Array, s: Array, xp: Ops) -> Array:
    """R A R^T for symmetric A and a rotation about a coordinate axis: 16 operations.

    With w = s (Aii - Ajj) + 2 c Aij the turned block is Aii - s w, Ajj + s w, c w - Aij.
    """
    i, j = OTHER_AXES[axis]
    k = axis
    sw, cw = _turn_products(A[i, i] - A[j, j], A[i, j] + A[i, j], c, s)
    out = [[A[r, q] for q in range(3)] for r in range(3)]
    out[i][i], out[j][j] = A[i, i] - sw, A[j, j] + sw
    out[i][j] = out[j][i] = cw - A[i, j]
    out[i][k] = out[k][i] = c * A[i, k] - s * A[j, k]
    out[j][k] = out[k][j] = s * A[i, k] + c * A[j, k]
    return xp.matrix(out)


def turn_general(A: Array, axis: int, c: Array, s: Array, xp: Ops) -> Array:
    """R A R^T for any A and a rotation about a coordinate axis: 23 operations, 48 by two products.

    The antisymmetric part of the turned 2 x 2 block does not change, which saves half of it.
    """
    i, j = OTHER_AXES[axis]
    k = axis
    sw, cw = _turn_products(A[i, i] - A[j, j], A[i, j] + A[j, i], c, s)
    out = [[A[r, q] for q in range(3)] for r in range(3)]
    out[i][i], out[j][j] = A[i, i] - sw, A[j, j] + sw
    out[i][j], out[j][i] = cw - A[j, i], cw - A[i, j]
    out[i][k], out[j][k] = c * A[i, k] - s * A[j, k], s * A[i, k] + c * A[j, k]
    out[k][i], out[k][j] = c * A[k, i] - s * A[k, j], s * A[k, i] + c * A[k, j]
    return xp.matrix(out)


def rotate_symmetric(A: Array, R: Array, xp: Ops) -> Array:
    """R A R^T for symmetric A."""
    return xp.symmetric((R @ A) @ R.T)


def _turn_products(difference: Array, total: Array, c: Array, s: Array) -> tuple[Array, Array]:
    w = s * difference + c * total
    return s * w, c * w
