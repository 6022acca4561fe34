"""How coordinates change between a parent frame and a child frame.

A `Transform` X is a chain of elementary moves from the parent to the child: shift the origin, rotate the axes, turn
about one coordinate axis. `X @ v` gives a motion vector in child coordinates, `X.T @ f` a force vector in parent
coordinates, `X.congruence(I)` the inertia X^T I X. Moves are not multiplied, because two cheap ones cost less than
their product: turning by a joint and permuting axes, for instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.lazy import cached_property
from linkwork.spatial.inertia import OTHER_AXES
from linkwork.spatial.vectors import angular, linear


class Congruent(Protocol):
    """A 6 x 6 matrix I that moves between frames as X^T I X does."""

    def translated(self, p: Array) -> Self: ...
    def rotated(self, R: Array) -> Self: ...
    def turned(self, axis: int, c: Array, s: Array, R: Array) -> Self: ...


Inertia = TypeVar("Inertia", bound=Congruent)


class Move(Protocol):
    """One elementary step from a parent frame to a child frame."""

    def motion(self, v: Array) -> Array: ...
    def force(self, f: Array) -> Array: ...
    def inertia(self, I: Inertia) -> Inertia: ...
    def vector(self, x: Array) -> Array: ...
    def pose(self, R: Array, p: Array) -> tuple[Array, Array]: ...
    def back(self, R: Array, p: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class Translate:
    """The child's origin is at `p`."""

    p: Array
    xp: Ops

    def motion(self, v: Array) -> Array:
        w = angular(v)
        return self.xp.vstack([linear(v) - self.xp.cross(self.p, w), w])

    def force(self, f: Array) -> Array:
        lin = linear(f)
        return self.xp.vstack([lin, angular(f) + self.xp.cross(self.p, lin)])

    def inertia(self, I: Inertia) -> Inertia:
        return I.translated(self.p)

    def vector(self, x: Array) -> Array:
        return x

    def pose(self, R: Array, p: Array) -> tuple[Array, Array]:
        return R, p + R @ self.p

    def back(self, R: Array, p: Array) -> tuple[Array, Array]:
        return R, p - R @ self.p


class Rotate:
    """The columns of `R` are the child's axes."""

    def __init__(self, R: Array, xp: Ops) -> None:
        self.R, self.xp = R, xp

    def motion(self, v: Array) -> Array:
        return self.xp.vstack([self.R.T @ linear(v), self.R.T @ angular(v)])

    def force(self, f: Array) -> Array:
        return self.xp.vstack([self.R @ linear(f), self.R @ angular(f)])

    def inertia(self, I: Inertia) -> Inertia:
        return I.rotated(self.R)

    def vector(self, x: Array) -> Array:
        return self.R.T @ x

    def pose(self, R: Array, p: Array) -> tuple[Array, Array]:
        return R @ self.R, p

    def back(self, R: Array, p: Array) -> tuple[Array, Array]:
        return R @ self.R.T, p


class Turn(Rotate):
    """The child is turned about coordinate axis `axis` by an angle with cosine `c` and sine `s`."""

    def __init__(self, axis: int, c: Array, s: Array, xp: Ops, angle: Array | None = None) -> None:
        i, j = OTHER_AXES[axis]
        R: list[list[Array]] = [[0.0] * 3 for _ in range(3)]
        R[axis][axis], R[i][i], R[i][j], R[j][i], R[j][j] = 1.0, c, -s, s, c
        super().__init__(xp.matrix(R), xp)
        self.axis, self.c, self.s, self.angle = axis, c, s, angle

    @staticmethod
    def by(axis: int, angle: Array, xp: Ops) -> Turn:
        """A turn by an angle."""
        return Turn(axis, xp.cos(angle), xp.sin(angle), xp, angle)

    def inertia(self, I: Inertia) -> Inertia:
        return I.turned(self.axis, self.c, self.s, self.R)

    def after(self, c: float, s: float) -> Turn:
        """This turn after another about the same axis by a constant angle, added to the angle if any."""
        if self.angle is not None and is_permutation(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])):
            c, s = float(np.round(c)), float(np.round(s))
        elif self.angle is not None:
            return Turn.by(self.axis, self.angle + float(np.arctan2(s, c)), self.xp)
        return Turn(self.axis, c * self.c - s * self.s, s * self.c + c * self.s, self.xp)


class Product:
    """Several moves as one, by a 6 x 6 matrix.

    Where zeros cost as much as other numbers, one product costs least.
    """

    def __init__(self, moves: Sequence[Move], xp: Ops) -> None:
        self.X: Array = xp.eye(6)
        self.R: Array = xp.eye(3)
        self.p: Array = xp.zeros(3)
        done = 0
        if isinstance(first := moves[0], Product):
            self.X, self.R, self.p, done = first.X, first.R, first.p, 1
        for move in moves[done:]:
            self.X = move.motion(self.X)
            self.R, self.p = move.pose(self.R, self.p)

    def motion(self, v: Array) -> Array:
        return self.X @ v

    def force(self, f: Array) -> Array:
        return self.X.T @ f

    def inertia(self, I: Inertia) -> Inertia:
        return I.rotated(self.R).translated(self.p)

    def vector(self, x: Array) -> Array:
        return self.R.T @ x

    def pose(self, R: Array, p: Array) -> tuple[Array, Array]:
        return R @ self.R, p + R @ self.p

    def back(self, R: Array, p: Array) -> tuple[Array, Array]:
        R = R @ self.R.T
        return R, p - R @ self.p


@dataclass(frozen=True)
class Transform:
    """A chain of moves, in order from the parent to the child."""

    moves: tuple[Move, ...]
    xp: Ops

    __array_ufunc__ = None

    @classmethod
    def of(cls, moves: tuple[Move, ...], xp: Ops) -> Transform:
        """The transform by these moves, multiplied where that costs less."""
        return cls((Product(moves, xp),) if xp.dense and moves else moves, xp)

    def __matmul__(self, v: Array) -> Array:
        """X v: a motion vector (or the columns of a 6 x k matrix) from parent to child coordinates."""
        for move in self.moves:
            v = move.motion(v)
        return v

    @cached_property
    def T(self) -> TransposedTransform:
        return TransposedTransform(self.moves)

    def congruence(self, I: Inertia) -> Inertia:
        """X^T I X: an inertia from the child's to the parent's frame."""
        for move in reversed(self.moves):
            I = move.inertia(I)
        return I

    def rotate(self, x: Array) -> Array:
        """A free 3-vector from parent to child coordinates."""
        for move in self.moves:
            x = move.vector(x)
        return x

    @cached_property
    def pose(self) -> tuple[Array, Array]:
        """Axes R and origin p of the child in the parent's frame."""
        R, p = self.xp.eye(3), self.xp.zeros(3)
        for move in self.moves:
            R, p = move.pose(R, p)
        return R, p

    def after(self, R: Array, p: Array) -> tuple[Array, Array]:
        """The child's axes and origin in a frame in which the parent's are `R` and `p`."""
        for move in self.moves:
            R, p = move.pose(R, p)
        return R, p

    def before(self, R: Array, p: Array) -> tuple[Array, Array]:
        """The parent's axes and origin in a frame in which the child's are `R` and `p`."""
        for move in reversed(self.moves):
            R, p = move.back(R, p)
        return R, p


@dataclass(frozen=True)
class TransposedTransform:
    """X^T, which takes forces from child to parent coordinates."""

    moves: tuple[Move, ...]

    __array_ufunc__ = None

    def __matmul__(self, f: Array) -> Array:
        for move in reversed(self.moves):
            f = move.force(f)
        return f


AXIS_TOLERANCE = 1e-12
"""Entries of a constant rotation closer than this to 0 or +-1 are taken as exact."""


def constant_moves(R: np.ndarray, p: np.ndarray, xp: Ops) -> tuple[Move, ...]:
    """The moves of a constant placement: nothing for an identity, a turn for a rotation about one axis."""
    moves: tuple[Move, ...] = (Translate(xp.constant(p), xp),) if np.any(p) else ()
    if is_identity(R):
        return moves
    axis = rotation_axis(R)
    if axis is None or is_permutation(R):
        return (*moves, Rotate(xp.constant(R), xp))
    i, j = OTHER_AXES[axis]
    return (*moves, constant_turn(axis, R[i, i], R[j, i], xp))


def placed_moves(R: np.ndarray, p: np.ndarray, joint: tuple[Move, ...], xp: Ops) -> tuple[Move, ...]:
    """The moves of a constant placement followed by those of a joint.

    A general rotation before a turn about axis k is split by Euler angles, R = T_k(a) T_i(b) T_k(c), because three
    turns cost half of what a general rotation of an inertia does; T_k(c) merges with the joint's own turn.
    """
    first = joint[0] if joint else None
    if not isinstance(first, Turn) or is_identity(R) or is_permutation(R):
        return (*constant_moves(R, p, xp), *joint)
    k = first.axis
    i, j = OTHER_AXES[k]
    if rotation_axis(R) == k:
        return (*constant_moves(np.eye(3), p, xp), first.after(R[i, i], R[j, i]), *joint[1:])
    if rotation_axis(R) is not None:
        before, along = split_along(p, R[:, k])
        shift = constant_moves(np.eye(3), along * np.eye(3)[k], xp)
        return (*constant_moves(R, before, xp), *shift, *joint)
    tilt = float(np.hypot(R[i, k], R[j, k]))
    ca, sa = (-R[j, k] / tilt, R[i, k] / tilt) if tilt > AXIS_TOLERANCE else (1.0, 0.0)  # axis k kept or turned over
    rest = (turn_matrix(k, ca, sa) @ turn_matrix(i, R[k, k], tilt)).T @ R
    turns = (constant_turn(k, ca, sa, xp), constant_turn(i, R[k, k], tilt, xp))
    return (*constant_moves(np.eye(3), p, xp), *turns, first.after(rest[i, i], rest[j, i]), *joint[1:])


def turn_matrix(axis: int, c: float, s: float) -> np.ndarray:
    """The rotation about a coordinate axis by the angle with this cosine and sine."""
    i, j = OTHER_AXES[axis]
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def split_along(p: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, float]:
    """p = before + along * axis, where that leaves fewer entries of p to multiply with, as in DH frames."""
    for j in np.flatnonzero(np.abs(axis) > 0.05):
        along = p[j] / axis[j]
        before = p - along * axis
        before[np.abs(before) < AXIS_TOLERANCE * np.abs(p).max(initial=0.0)] = 0.0
        if along and np.count_nonzero(before) + 1 < np.count_nonzero(p):
            return before, float(along)
    return p, 0.0


def constant_turn(axis: int, c: float, s: float, xp: Ops) -> Turn:
    """A turn by a constant angle; those of a quarter turn, within rounding, are made exact."""
    if max(abs(x - np.round(x)) for x in (c, s)) < AXIS_TOLERANCE:
        c, s = float(np.round(c)), float(np.round(s))
    return Turn(axis, xp.constant([[c]])[0, 0], xp.constant([[s]])[0, 0], xp)


def rotation_axis(R: np.ndarray) -> int | None:
    """The coordinate axis that a rotation leaves fixed, if there is one."""
    for axis, row in enumerate(R.tolist()):
        if all(abs(x - (i == axis)) < AXIS_TOLERANCE for i, x in enumerate(row)):
            return axis
    return None


def is_identity(R: np.ndarray) -> bool:
    """Whether a rotation leaves all axes where they are."""
    return all(abs(x - (i == j)) < AXIS_TOLERANCE for i, row in enumerate(R.tolist()) for j, x in enumerate(row))


def is_permutation(R: np.ndarray) -> bool:
    """Whether a rotation only permutes and reverses axes, which costs nothing."""
    return bool(sum(abs(x) > AXIS_TOLERANCE for row in R.tolist() for x in row) == 3)
