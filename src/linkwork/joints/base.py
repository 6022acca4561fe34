"""The interface of joint types."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import ClassVar

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import Kind, Refused, finite_array, instance, shown
from linkwork.errors import ModelError
from linkwork.spatial.transforms import Move
from linkwork.value_objects import Value, clipped, ours, read_only, short, uncached


class Joint(Value):
    """A joint from a parent frame to a child frame.

    The relative velocity in child coordinates is `S(q) v`, and its apparent derivative `S(q) vdot + bias(q, v)`.
    `selects` names the coordinates that S picks when its columns are unit vectors up to sign: the articulated
    inertia has exact zeros there after the joint is eliminated. `units` are the parts of q that must be of length one:
    quaternions and [cos sin].
    """

    kind: ClassVar[str]
    nq: int
    nv: int
    selects: tuple[int, ...] = ()
    units: tuple[slice, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        if name in vars(self) and ours(type(self)):
            raise FrozenInstanceError(f"a {type(self).__name__} does not change ('{name}'); make another")
        super().__setattr__(name, value)

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        """The moves from the parent frame to the child frame."""
        raise NotImplementedError

    def subspace(self, q: Array, xp: Ops) -> Array:
        """The motion subspace S, 6 x nv, in child coordinates."""
        raise NotImplementedError

    def subspace_rate(self, q: Array, v: Array, xp: Ops) -> Array:
        """dS/dt, 6 x nv, apparent in child coordinates; zero where S is constant."""
        return xp.zeros(6, self.nv)

    def bias(self, q: Array, v: Array, xp: Ops) -> Array:
        """(dS/dt) v, in child coordinates; zero where S is constant."""
        return self.subspace_rate(q, v, xp) @ v if self.nv else xp.zeros(6)

    @property
    def constant_subspace(self) -> bool:
        """Whether S is the same in all positions.

        If not, `subspace_slope` and `bias_slopes` are its derivatives, where the joint has them.
        """
        own = type(self)
        return own.bias is Joint.bias and own.subspace_rate is Joint.subspace_rate

    def subspace_slope(self, q: Array, x: Array, xp: Ops) -> Array:
        """(dS/dq) x, 6 x nv: the derivative of S(q) x for a constant x, by each degree of freedom."""
        raise NotImplementedError(f"{type(self).__name__} has no derivative of its subspace")

    def bias_slopes(self, q: Array, v: Array, xp: Ops) -> tuple[Array, Array]:
        """The derivatives of `bias` by positions and by velocities, 6 x nv each."""
        raise NotImplementedError(f"{type(self).__name__} has no derivatives of its bias")

    def integrate(self, q: Array, v: Array, xp: Ops) -> Array:
        """The joint position after moving with the constant joint velocity `v` for unit time."""
        return q + v

    def difference(self, q0: Array, q1: Array, xp: Ops) -> Array:
        """The joint velocity that `integrate` takes from `q0` to `q1`."""
        return q1 - q0

    def displacement(self, rest: Array, q: Array, xp: Ops) -> Array:
        """What a spring of stiffness 1 that rests at `rest` pulls with, nv x 1: x with d/dt |x|^2 / 2 = x . v."""
        return q - rest

    def rate(self, q: Array, v: Array, xp: Ops) -> Array:
        """dq/dt, of length nq."""
        return v

    def velocity(self, q: Array, qdot: Array, xp: Ops) -> Array:
        """The joint velocity of which `qdot` is the rate; the nearest one (least squares) where there is none."""
        if self.nq == self.nv:
            return qdot
        T = xp.hstack([self.rate(q, xp.constant(e), xp) for e in np.eye(self.nv)])
        return xp.factor_spd(T.T @ T).solve(T.T @ qdot)

    def normalised(self, q: Array, xp: Ops) -> Array:
        """The nearest valid joint position: unit quaternions and the like."""
        return q

    def neutral(self) -> np.ndarray:
        return np.zeros(self.nq)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """A random joint position: angles in +-pi, lengths in +-1 m."""
        return rng.uniform(-1.0, 1.0, self.nq)

    def describe(self) -> str:
        return self.kind

    def __repr__(self) -> str:
        given = {n: x for n, x in uncached(self).items() if n != "selects" and not n.startswith("_")}
        return clipped(f"{type(self).__name__}({', '.join(f'{n}={_shown(x)}' for n, x in given.items())})")


AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def unit_axis(axis: object) -> np.ndarray:
    """A unit vector from "x", "-y" or three numbers; entries within rounding of 0 and 1 are made exact."""
    return np.asarray(AXIS.checked("axis", axis, {}))


def _unit_axis(axis: object) -> np.ndarray:
    if isinstance(axis, str):
        sign, name = (-1.0, axis[1:]) if axis.startswith("-") else (1.0, axis)
        if name not in AXES:
            raise ModelError(f"axis {shown(axis)} is not one of x, y, z, -x, -y, -z or three numbers")
        return sign * np.array(AXES[name])
    try:
        a = finite_array(axis)
    except Refused:
        a = np.zeros(0)
    if a.shape != (3,):
        raise ModelError(f"an axis is x, y, z, -x, -y, -z or three finite numbers, not {shown(axis)}")
    norm = float(np.linalg.norm(a))
    if norm < 1e-9:
        raise ModelError("an axis must not be the zero vector; give the direction of the joint")
    a = a / norm
    a[np.abs(a) < 1e-12] = 0.0
    return np.asarray(read_only(a / np.linalg.norm(a)))


AXIS = Kind("x, y, z, -x, -y, -z or three numbers", _unit_axis)
JOINT = instance(Joint, 'a joint, such as linkwork.joints.Revolute("z")')


def coordinate_axis(axis: np.ndarray) -> tuple[int, float] | None:
    """(index, sign) of an axis that lies along a coordinate axis, else None."""
    entries = [(k, x) for k, x in enumerate(axis.tolist()) if x]
    return (entries[0][0], float(np.copysign(1.0, entries[0][1]))) if len(entries) == 1 else None


def _shown(x: object) -> str:
    """A parameter of a joint, an axis along a coordinate by its letter."""
    aligned = coordinate_axis(x) if isinstance(x, np.ndarray) and x.shape == (3,) else None
    return short(x) if aligned is None else repr(f"{'-' if aligned[1] < 0 else ''}{'xyz'[aligned[0]]}")


def spatial_columns(*columns: tuple[np.ndarray | None, np.ndarray | None]) -> np.ndarray:
    """A 6 x k matrix from (linear, angular) columns, None standing for zero."""
    zero = np.zeros(3)
    rows = [np.concatenate([zero if l is None else l, zero if a is None else a]) for l, a in columns]
    return np.asarray(read_only(np.array(rows).T))


def selection(S: np.ndarray) -> tuple[int, ...]:
    """The coordinates that the columns of S pick, if each is a unit vector up to sign; else nothing."""
    if all(np.count_nonzero(c) == 1 and abs(np.abs(c).sum() - 1) < 1e-15 for c in S.T):
        return tuple(int(np.flatnonzero(c)[0]) for c in S.T)
    return ()
