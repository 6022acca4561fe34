"""Planar joint: q = [x, y, cos, sin] in the parent's xy plane, v = [vx, vy, wz] in child coordinates."""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.joints.base import Joint, selection, spatial_columns
from linkwork.spatial.rotations import exp6, log6
from linkwork.spatial.transforms import Move, Translate, Turn


class Planar(Joint):
    kind, nq, nv = "planar", 4, 3
    units = (slice(2, 4),)

    def __init__(self) -> None:
        x, y, z = np.eye(3)
        self._S = spatial_columns((x, None), (y, None), (None, z))
        self.selects = selection(self._S)

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        o = 0 * q[0, 0]
        return (Translate(xp.matrix([[q[0, 0]], [q[1, 0]], [o]]), xp), Turn(2, q[2, 0], q[3, 0], xp))

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.constant(self._S)

    def integrate(self, q: Array, v: Array, xp: Ops) -> Array:
        x, y, c, s = q[0, 0], q[1, 0], q[2, 0], q[3, 0]
        R, p = exp6(xp.constant(self._S) @ v, xp)
        dx, dy, dc, ds = p[0, 0], p[1, 0], R[0, 0], R[1, 0]
        turned = xp.matrix([[x + c * dx - s * dy], [y + s * dx + c * dy], [c * dc - s * ds], [s * dc + c * ds]])
        return self.normalised(turned, xp)

    def difference(self, q0: Array, q1: Array, xp: Ops) -> Array:
        c, s = q0[2, 0], q0[3, 0]
        dx, dy = q1[0, 0] - q0[0, 0], q1[1, 0] - q0[1, 0]
        dc, ds = c * q1[2, 0] + s * q1[3, 0], c * q1[3, 0] - s * q1[2, 0]
        o = 0 * c
        R = xp.matrix([[dc, -ds, o], [ds, dc, o], [o, o, 1 + o]])
        return xp.constant(self._S).T @ log6(R, xp.matrix([[c * dx + s * dy], [c * dy - s * dx], [o]]), xp)

    def displacement(self, rest: Array, q: Array, xp: Ops) -> Array:
        """The way from `rest` and the angle from there, in child coordinates."""
        dx, dy, c, s = q[0, 0] - rest[0, 0], q[1, 0] - rest[1, 0], q[2, 0], q[3, 0]
        turn = xp.atan2(rest[2, 0] * s - rest[3, 0] * c, rest[2, 0] * c + rest[3, 0] * s)
        return xp.matrix([[c * dx + s * dy], [c * dy - s * dx], [turn]])

    def rate(self, q: Array, v: Array, xp: Ops) -> Array:
        c, s, vx, vy, w = q[2, 0], q[3, 0], v[0, 0], v[1, 0], v[2, 0]
        return xp.matrix([[c * vx - s * vy], [s * vx + c * vy], [-s * w], [c * w]])

    def normalised(self, q: Array, xp: Ops) -> Array:
        turn = q[2:4, :]
        return xp.vstack([q[0:2, :], turn / xp.sqrt((turn.T @ turn)[0, 0])])

    def neutral(self) -> np.ndarray:
        return np.array([0.0, 0.0, 1.0, 0.0])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        angle = rng.uniform(-np.pi, np.pi)
        return np.array([*rng.uniform(-1, 1, 2), np.cos(angle), np.sin(angle)])
