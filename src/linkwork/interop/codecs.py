"""The coordinates of one joint in other libraries: its position, T with v' = T v, and (dT/dt) v."""

from __future__ import annotations

import numpy as np

from linkwork.joints import Joint
from linkwork.model import Placement


class Same:
    """Coordinates that are the same in both libraries."""

    def __init__(self, joint: Joint) -> None:
        self.nq, self.nv = joint.nq, joint.nv

    def q_to(self, q: np.ndarray) -> np.ndarray:
        return q

    def q_from(self, q: np.ndarray) -> np.ndarray:
        return q

    def T(self, q: np.ndarray) -> np.ndarray:
        """T, (..., nv, nv), at our position q."""
        return np.broadcast_to(np.eye(self.nv), (*q.shape[:-1], self.nv, self.nv))

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(dT/dt) v."""
        return np.zeros_like(v)


class Shifted(Same):
    """One coordinate, which is `ref` there where ours is zero."""

    def __init__(self, joint: Joint, ref: float) -> None:
        super().__init__(joint)
        self.ref = ref

    def q_to(self, q: np.ndarray) -> np.ndarray:
        return q + self.ref

    def q_from(self, q: np.ndarray) -> np.ndarray:
        return q - self.ref


class CosineSine(Same):
    """An angle there as [cos, sin]; ours comes back in (-pi, pi]."""

    def __init__(self, joint: Joint) -> None:
        super().__init__(joint)
        self.nq = 2

    def q_to(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    def q_from(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(np.arctan2(q[..., 1:2], q[..., 0:1]))


class WFirst(Same):
    """A quaternion there as [w x y z]; the angular velocity is in the body's axes on both sides."""

    def q_to(self, q: np.ndarray) -> np.ndarray:
        return np.roll(q, 1, axis=-1)

    def q_from(self, q: np.ndarray) -> np.ndarray:
        return np.roll(q, -1, axis=-1)


class PlanarAngle(Same):
    """A planar joint there as [x y angle], with the velocity of x and y in the parent's axes."""

    def __init__(self, joint: Joint) -> None:
        super().__init__(joint)
        self.nq = 3

    def q_to(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([q[..., 0:2], np.arctan2(q[..., 3:4], q[..., 2:3])], axis=-1)

    def q_from(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([q[..., 0:2], np.cos(q[..., 2:3]), np.sin(q[..., 2:3])], axis=-1)

    def T(self, q: np.ndarray) -> np.ndarray:
        T = np.zeros((*q.shape[:-1], 3, 3))
        c, s = q[..., 2], q[..., 3]
        T[..., 0, 0], T[..., 0, 1], T[..., 1, 0], T[..., 1, 1], T[..., 2, 2] = c, -s, s, c, 1.0
        return T

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        w = v[..., 2]
        turned = np.stack([-w * v[..., 1], w * v[..., 0], np.zeros_like(w)], axis=-1)
        return apply(self.T(q), turned)


class RollPitchYaw(Same):
    """A spherical joint there as [roll pitch yaw] (R = Rz Ry Rx), velocities in the parent's axes."""

    def __init__(self, joint: Joint) -> None:
        super().__init__(joint)
        self.nq = 3

    def q_to(self, q: np.ndarray) -> np.ndarray:
        R = rotation(q)
        flat = np.hypot(R[..., 0, 0], R[..., 1, 0])
        roll, pitch = np.arctan2(R[..., 2, 1], R[..., 2, 2]), np.arctan2(-R[..., 2, 0], flat)
        return np.stack([roll, pitch, np.arctan2(R[..., 1, 0], R[..., 0, 0])], axis=-1)

    def q_from(self, q: np.ndarray) -> np.ndarray:
        (cr, cp, cy), (sr, sp, sy) = np.moveaxis(np.cos(q / 2), -1, 0), np.moveaxis(np.sin(q / 2), -1, 0)
        x, y = sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy
        z, w = cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy
        return np.stack([x, y, z, w], axis=-1)

    def T(self, q: np.ndarray) -> np.ndarray:
        return rotation(q)


class FreeInWorld(Same):
    """A free joint there with the quaternion [w x y z], and its linear velocity in world axes.

    `rotation_first` puts the quaternion, and the angular velocity, before the linear part; `spin_in_world` has the
    angular velocity in world axes too. `placement` is our joint's frame in the world.
    """

    def __init__(self, joint: Joint, placement: Placement, rotation_first: bool, spin_in_world: bool) -> None:
        super().__init__(joint)
        self.placement, self.rotation_first, self.spin_in_world = placement, rotation_first, spin_in_world
        self.turn = _quaternion(placement.R)

    def q_to(self, q: np.ndarray) -> np.ndarray:
        p = q[..., 0:3] @ self.placement.R.T + self.placement.p
        turn = np.roll(_product(self.turn, q[..., 3:7]), 1, axis=-1)
        return np.concatenate([turn, p] if self.rotation_first else [p, turn], axis=-1)

    def q_from(self, q: np.ndarray) -> np.ndarray:
        turn, p = (q[..., 0:4], q[..., 4:7]) if self.rotation_first else (q[..., 3:7], q[..., 0:3])
        back = self.turn * np.array([-1.0, -1.0, -1.0, 1.0])
        place = (p - self.placement.p) @ self.placement.R
        return np.concatenate([place, _product(back, np.roll(turn, -1, axis=-1))], axis=-1)

    def T(self, q: np.ndarray) -> np.ndarray:
        R = self.placement.R @ rotation(q[..., 3:7])
        T = np.zeros((*q.shape[:-1], 6, 6))
        lin, ang = (slice(3, 6), slice(0, 3)) if self.rotation_first else (slice(0, 3), slice(3, 6))
        T[..., lin, 0:3] = R
        T[..., ang, 3:6] = R if self.spin_in_world else np.eye(3)
        return T

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        swing = np.cross(v[..., 3:6], v[..., 0:3])
        return apply(self.T(q), np.concatenate([swing, np.zeros_like(swing)], axis=-1))


def apply(T: np.ndarray, x: np.ndarray) -> np.ndarray:
    """T x, for stacks of both."""
    return np.asarray((T @ x[..., None])[..., 0])


def rotation(q: np.ndarray) -> np.ndarray:
    """Rotation matrices of quaternions [x y z w], (..., 3, 3)."""
    x, y, z, w = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of quaternions [x y z w]: first b, then a."""
    av, aw, bv, bw = a[..., 0:3], a[..., 3:4], b[..., 0:3], b[..., 3:4]
    return np.concatenate([aw * bv + bw * av + np.cross(av, bv), aw * bw - np.sum(av * bv, -1, keepdims=True)], axis=-1)


def _quaternion(R: np.ndarray) -> np.ndarray:
    """The quaternion [x y z w] of a rotation: the column of 4 q q^T that is safe to divide by."""
    t = np.trace(R)
    K = np.empty((4, 4))
    K[:3, :3] = R + R.T + (1 - t) * np.eye(3)
    K[:3, 3] = K[3, :3] = [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]
    K[3, 3] = 1 + t
    best = K[:, int(np.argmax(np.diag(K)))]
    return np.asarray(best / np.linalg.norm(best) * (np.sign(best[3]) or 1.0))
