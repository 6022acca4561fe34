"""Inverse kinematics: configurations in which frames are where they should be, by Levenberg-Marquardt.

    min 1/2 |e(q)|^2   with   lower <= q <= upper,     e = [log6(T_frame^-1 T_target); ...;  -w phi(q)]

A step is d = F J^T (J F J^T + lambda)^-1 e, q <- clip(q + d), with F the degrees of freedom that are not at a limit
which d would cross, lambda = nu |e|^2 + rounding, and nu smaller after a step that succeeds, larger after one that does
not. J is that of the frames' velocities and of the constraint rows: it is the derivative of e where e is zero, so steps
end as Newton's. The damping vanishes with |e|^2, which makes singular and redundant rows harmless (Sugihara,
"Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", 2011). No branches: eight lanes can be
in different phases of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from linkwork.algorithms.tree.kinematics import frame_jacobian, frame_placement
from linkwork.backends.ops import Array, Ops
from linkwork.constraints import jacobian, position_error
from linkwork.model import Frame, Model, Motion
from linkwork.spatial.rotations import log6, quaternion_matrix

LOOPS = 100.0
"""The weight w of constraint rows: where targets cannot be reached, loops open by 1e-4 of what is left of them."""
DAMPING, SUCCESS, FAILURE = 1e-2, 0.1, 8.0
"""The first nu, and its factors."""
STUCK = 1e10
"""Where nu says that no step helps."""
ROUNDING = 1e-13
"""The part of J J^T below which singular values are rounding."""


class Target(NamedTuple):
    """A frame, and whether its target is a pose ([x y z  qx qy qz qw]) or a position (three numbers)."""

    frame: Frame
    pose: bool


class Guess(NamedTuple):
    """A configuration, nu, and |e|^2."""

    q: Array
    nu: Array
    cost: Array


@dataclass(frozen=True)
class InverseKinematics:
    """Targets of a model, with `goals` as one column; the model's constraints are rows, too.

    `locked` are the degrees of freedom that stay as they are.
    """

    model: Model
    targets: Sequence[Target]
    goals: Array
    xp: Ops
    locked: frozenset[int] = frozenset()

    def first(self, q: Array) -> Guess:
        """The guess to start with, moved into its limits."""
        q = self._clipped(q)
        e = self.error(q)
        return Guess(q, DAMPING * self.xp.eye(1), e.T @ e)

    def next(self, guess: Guess) -> Guess:
        """The guess after one step, or with more damping if that failed."""
        xp, e, J = self.xp, self.error(guess.q), self._jacobian(guess.q)
        JF = self._free(J, e, guess.q)
        there = self._clipped(self._moved(guess.q, self._step(JF, e, guess.nu * guess.cost)))
        left = self.error(there)
        cost = left.T @ left
        better = cost[0, 0] < guess.cost[0, 0]
        nu = xp.where(better, SUCCESS, FAILURE) * guess.nu
        return Guess(xp.where(better, there, guess.q), nu, xp.where(better, cost, guess.cost))

    def left(self, guess: Guess) -> Array:
        """What is left to improve, 1 x 1: |e|, or zero where no step helps."""
        return self.xp.where(guess.nu > STUCK, 0.0, self.xp.sqrt(guess.cost))

    def error(self, q: Array, loops: float = LOOPS) -> Array:
        """e, in metres and radians, constraint rows times the weight `loops`."""
        motion, parts, at = self._motion(q), [], 0
        for frame, pose in self.targets:
            R, p = frame_placement(motion, frame)
            away = R.T @ (self.goals[at : at + 3, :] - p)
            parts.append(log6(R.T @ self._turn(at), away, self.xp) if pose else away)
            at += 7 if pose else 3
        return self.xp.vstack([*parts, -loops * position_error(motion)])

    def _turn(self, at: int) -> Array:
        return quaternion_matrix(self.goals[at + 3 : at + 7, :], self.xp)

    def _jacobian(self, q: Array) -> Array:
        motion = self._motion(q)
        rows = [frame_jacobian(motion, f)[0 : 6 if pose else 3, :] for f, pose in self.targets]
        return self.xp.vstack([*rows, LOOPS * jacobian(motion)])

    def _motion(self, q: Array) -> Motion:
        return Motion(self.model, q, self.xp.zeros(self.model.nv), self.xp)

    def _step(self, J: Array, e: Array, damping: Array) -> Array:
        """(J^T J + lambda)^-1 J^T e, by the smaller of the two Gram matrices."""
        xp, (m, n) = self.xp, J.shape
        G = J @ J.T if m <= n else J.T @ J
        trace = sum((G[i, i] for i in range(1, G.shape[0])), G[0, 0])
        factor = xp.factor_spd(xp.symmetric(G) + (damping[0, 0] + ROUNDING * trace) * xp.eye(G.shape[0]))
        return J.T @ factor.solve(e) if m <= n else factor.solve(J.T @ e)

    def _free(self, J: Array, e: Array, q: Array) -> Array:
        """J without the columns of locked joints, and of those at a limit that e pushes across it."""
        xp, push = self.xp, J.T @ e
        columns = [J[:, k : k + 1] for k in range(J.shape[1])]
        for i, k, lower, upper in self._limited():
            down, up = xp.where(push[k, 0] < 0, 0.0, 1.0), xp.where(push[k, 0] > 0, 0.0, 1.0)
            columns[k] = xp.where(q[i, 0] <= lower, down, xp.where(q[i, 0] >= upper, up, 1.0)) * columns[k]
        return xp.hstack([0 * c if k in self.locked else c for k, c in enumerate(columns)])

    def _clipped(self, q: Array) -> Array:
        xp, parts = self.xp, [q[i : i + 1, :] for i in range(self.model.nq)]
        for i, _, lower, upper in self._limited():
            x = xp.where(parts[i] < lower, lower, parts[i])
            parts[i] = xp.where(x > upper, upper, x)
        return xp.vstack(parts)

    def _limited(self) -> list[tuple[int, int, float, float]]:
        """Entries of q and v with a limit, and the limits."""
        t, limits, out = self.model.topology, self.model.limits, []
        for i in t.links:
            if self.model.links[i].joint.nq == self.model.links[i].joint.nv:
                pairs = zip(range(t.nq)[t.q_slices[i]], range(t.nv)[t.v_slices[i]], strict=True)
                out += [(a, b, float(limits.lower[a]), float(limits.upper[a])) for a, b in pairs]
        return [x for x in out if (isfinite(x[2]) or isfinite(x[3])) and x[2] <= x[3]]

    def _moved(self, q: Array, d: Array) -> Array:
        """q after moving with d for unit time."""
        t, parts = self.model.topology, [self.xp.zeros(0)]
        for i in t.links:
            parts.append(self.model.links[i].joint.integrate(q[t.q_slices[i], :], d[t.v_slices[i], :], self.xp))
        return self.xp.vstack(parts)
