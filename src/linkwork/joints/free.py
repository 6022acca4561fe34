"""Free joint: q = [x y z  qx qy qz qw], v = [linear; angular] in child coordinates."""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import checked, choice
from linkwork.joints.base import Joint
from linkwork.joints.spherical import quaternion_rate, random_quaternion
from linkwork.spatial.rotations import (
    exp6,
    log6,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_normalised,
    quaternion_product,
)
from linkwork.spatial.transforms import Move, Rotate, Translate


class Free(Joint):
    """Six degrees of freedom.

    `armature_axes` are the axes in which the linear part of an armature is constant: "link", as Pinocchio has it (m
    vdot), or "parent", as MuJoCo has it (m times the acceleration of the link's origin, m (vdot + w x v)).
    """

    kind, nq, nv = "free", 7, 6
    units = (slice(3, 7),)
    selects = tuple(range(6))

    @checked(armature_axes=choice("axes of an armature", ("link", "parent")))
    def __init__(self, armature_axes: str = "link") -> None:
        self.armature_axes = armature_axes

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return (Translate(q[0:3, :], xp), Rotate(quaternion_matrix(q[3:7, :], xp), xp))

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.eye(6)

    def integrate(self, q: Array, v: Array, xp: Ops) -> Array:
        turn = q[3:7, :]
        _, p = exp6(v, xp)
        turned = quaternion_product(turn, quaternion_exp(v[3:6, :], xp), xp)
        return xp.vstack([q[0:3, :] + quaternion_matrix(turn, xp) @ p, quaternion_normalised(turned, xp)])

    def difference(self, q0: Array, q1: Array, xp: Ops) -> Array:
        back = quaternion_conjugate(q0[3:7, :], xp)
        R = quaternion_matrix(quaternion_product(back, q1[3:7, :], xp), xp)
        return log6(R, quaternion_matrix(back, xp) @ (q1[0:3, :] - q0[0:3, :]), xp)

    def displacement(self, rest: Array, q: Array, xp: Ops) -> Array:
        """The way from `rest` and the rotation vector from there, in child coordinates."""
        away = quaternion_matrix(q[3:7, :], xp).T @ (q[0:3, :] - rest[0:3, :])
        turn = quaternion_product(quaternion_conjugate(rest[3:7, :], xp), q[3:7, :], xp)
        return xp.vstack([away, quaternion_log(turn, xp)])

    def rate(self, q: Array, v: Array, xp: Ops) -> Array:
        turn = q[3:7, :]
        return xp.vstack([quaternion_matrix(turn, xp) @ v[0:3, :], quaternion_rate(turn, v[3:6, :], xp)])

    def normalised(self, q: Array, xp: Ops) -> Array:
        return xp.vstack([q[0:3, :], quaternion_normalised(q[3:7, :], xp)])

    def neutral(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([rng.uniform(-1, 1, 3), random_quaternion(rng)])
