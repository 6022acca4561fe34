"""Spherical joint: q is a unit quaternion [x y z w], v the angular velocity in child coordinates."""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.joints.base import Joint, selection, spatial_columns
from linkwork.spatial.rotations import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_normalised,
    quaternion_product,
)
from linkwork.spatial.transforms import Move, Rotate


def quaternion_rate(q: Array, w: Array, xp: Ops) -> Array:
    """dq/dt = q [w, 0] / 2 for a body angular velocity w."""
    return quaternion_product(q, xp.vstack([w, xp.zeros(1)]), xp) / 2


def random_quaternion(rng: np.random.Generator) -> np.ndarray:
    """A rotation drawn uniformly."""
    q = rng.normal(size=4)
    return np.asarray(q / np.linalg.norm(q))


class Spherical(Joint):
    kind, nq, nv = "spherical", 4, 3
    units = (slice(0, 4),)

    def __init__(self) -> None:
        self._S = spatial_columns(*((None, e) for e in np.eye(3)))
        self.selects = selection(self._S)

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return (Rotate(quaternion_matrix(q, xp), xp),)

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.constant(self._S)

    def integrate(self, q: Array, v: Array, xp: Ops) -> Array:
        return quaternion_normalised(quaternion_product(q, quaternion_exp(v, xp), xp), xp)

    def difference(self, q0: Array, q1: Array, xp: Ops) -> Array:
        return quaternion_log(quaternion_product(quaternion_conjugate(q0, xp), q1, xp), xp)

    def displacement(self, rest: Array, q: Array, xp: Ops) -> Array:
        """The rotation vector from `rest`, in child coordinates."""
        return self.difference(rest, q, xp)

    def rate(self, q: Array, v: Array, xp: Ops) -> Array:
        return quaternion_rate(q, v, xp)

    def normalised(self, q: Array, xp: Ops) -> Array:
        return quaternion_normalised(q, xp)

    def neutral(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, 1.0])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return random_quaternion(rng)
