"""Universal joint: q = [about `axis`, then about `second` in the turned frame]."""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import checked
from linkwork.errors import ModelError
from linkwork.joints.base import AXIS, Joint, unit_axis
from linkwork.joints.revolute import turn_about
from linkwork.spatial.transforms import Move


class Universal(Joint):
    kind, nq, nv = "universal", 2, 2

    @checked(axis=AXIS, second=AXIS)
    def __init__(self, axis: object = "x", second: object = "y") -> None:
        self.axis, self.second = unit_axis(axis), unit_axis(second)
        if np.linalg.norm(np.cross(self.axis, self.second)) < 1e-6:
            raise ModelError("the two axes of a universal joint must not be parallel")

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return (turn_about(self.axis, q[0, 0], xp), turn_about(self.second, q[1, 0], xp))

    def _first_axis(self, q: Array, xp: Ops) -> Array:
        """The first axis in child coordinates."""
        return turn_about(self.second, q[1, 0], xp).vector(xp.constant(self.axis))

    def subspace(self, q: Array, xp: Ops) -> Array:
        turning = xp.hstack([self._first_axis(q, xp), xp.constant(self.second)])
        return xp.vstack([xp.zeros(3, 2), turning])

    def subspace_rate(self, q: Array, v: Array, xp: Ops) -> Array:
        """The apparent rate of the first axis: -v2 second x first."""
        turning = xp.cross(xp.constant(self.second), self._first_axis(q, xp)) * (-v[1, 0])
        return xp.vstack([xp.zeros(3, 2), xp.hstack([turning, xp.zeros(3)])])

    def bias(self, q: Array, v: Array, xp: Ops) -> Array:
        """The apparent rate of the first axis times v1: -v1 v2 second x first."""
        turning = xp.cross(xp.constant(self.second), self._first_axis(q, xp)) * (v[0, 0] * v[1, 0])
        return xp.vstack([xp.zeros(3), -turning])

    def subspace_slope(self, q: Array, x: Array, xp: Ops) -> Array:
        """The second angle turns the first axis: its derivative is -second x first."""
        slope = -xp.cross(xp.constant(self.second), self._first_axis(q, xp)) * x[0, 0]
        return xp.vstack([xp.zeros(3, 2), xp.hstack([xp.zeros(3), slope])])

    def bias_slopes(self, q: Array, v: Array, xp: Ops) -> tuple[Array, Array]:
        second = xp.constant(self.second)
        slope = -xp.cross(second, self._first_axis(q, xp))
        curve = -xp.cross(second, slope) * (v[0, 0] * v[1, 0])
        by_q, by_v = xp.hstack([xp.zeros(3), curve]), xp.hstack([slope * v[1, 0], slope * v[0, 0]])
        return xp.vstack([xp.zeros(3, 2), by_q]), xp.vstack([xp.zeros(3, 2), by_v])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-np.pi, np.pi, 2)
