"""The same state in another library's coordinates.

For each joint the other library's velocity is `T(q) v` with an orthogonal T (a permutation, a rotation, or both), so

    v' = T v,    a' = T a + (dT/dt) v,    tau' = T tau,    M' = T M T^T

and a joint only has to say how its position is written, what its T is, and what (dT/dt) v is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwork.checks import NAME, NAMES, Refused, either, finite_array, mapping, optional, shown
from linkwork.errors import InputError, UnsupportedError, listing, not_found
from linkwork.joints import Free, Joint
from linkwork.model import Model, Placement


class Same:
    """Coordinates that both libraries write in the same way."""

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
    """One number that is `ref` there where ours is zero."""

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
    """A spherical joint there as [roll pitch yaw] (R = Rz Ry Rx), with the angular velocity in the parent's axes."""

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
    """A free joint there with its pose in the world, the quaternion [w x y z], and its linear velocity in world axes.

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


@dataclass(frozen=True)
class Pair:
    """One of our joints: where it is here and there, and how its coordinates are written there."""

    joint: str
    q: slice
    v: slice
    there_q: tuple[int, ...]
    there_v: tuple[int, ...]
    codec: Same


PAIRED = optional(mapping(either(NAME, NAMES), "a dictionary from our names of joints to theirs"))


class Map:
    """From our coordinates to another library's (`..._to`) and back (`..._from`).

    Arrays have the coordinates in their last axis: (n,) for one state, (B, n) for a batch. Where a `q` is needed
    besides what is converted it is ours, with quaternions [x y z w]: velocities, accelerations and forces of free
    joints turn with it.
    """

    def __init__(self, model: Model, pairs: Sequence[Pair], nq: int, nv: int, library: str) -> None:
        self.model, self.pairs, self.nq, self.nv, self.library = model, tuple(pairs), nq, nv, library

    def q_to(self, q: np.ndarray) -> np.ndarray:
        q = self._ours(q, self.model.nq, "q")
        out = np.zeros((*q.shape[:-1], self.nq))
        for p in self.pairs:
            out[..., p.there_q] = p.codec.q_to(q[..., p.q])
        return out

    def q_from(self, q: np.ndarray) -> np.ndarray:
        q = self._theirs(q, self.nq, "q")
        out = np.zeros((*q.shape[:-1], self.model.nq))
        for p in self.pairs:
            out[..., p.q] = p.codec.q_from(q[..., p.there_q])
        return out

    def v_to(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._turned(q, v)

    def v_from(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._turned_back(q, v)

    def tau_to(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Joint forces: they do the same work."""
        return self._turned(q, tau)

    def tau_from(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return self._turned_back(q, tau)

    def a_to(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The derivative of `v_to(q, v)` when our v changes at the rate a."""
        turned = self._turned(q, a)
        out = np.array(np.broadcast_to(turned, (*_common(turned, self._ours(v, self.model.nv, "v")), self.nv)))
        for p, qj, vj in self._each(q, v):
            out[..., p.there_v] += p.codec.drift(qj, vj)
        return out

    def a_from(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Our acceleration for theirs, `a`; q and v are ours."""
        a = self._theirs(a, self.nv, "a")
        states = _common(a, self._ours(q, self.model.nq, "q"), self._ours(v, self.model.nv, "v"))
        a = np.array(np.broadcast_to(a, (*states, self.nv)))
        for p, qj, vj in self._each(q, v):
            a[..., p.there_v] = a[..., p.there_v] - p.codec.drift(qj, vj)
        return self._turned_back(q, a)

    def velocity_matrix(self, q: np.ndarray) -> np.ndarray:
        """T, (..., nv there, nv here): v' = T v, and M = T^T M' T."""
        q = self._ours(q, self.model.nq, "q")
        T = np.zeros((*q.shape[:-1], self.nv, self.model.nv))
        for p in self.pairs:
            T[..., np.array(p.there_v)[:, None], np.arange(p.v.start, p.v.stop)] = p.codec.T(q[..., p.q])
        return T

    def _each(self, q: np.ndarray, v: np.ndarray) -> Iterator[tuple[Pair, np.ndarray, np.ndarray]]:
        q, v = self._ours(q, self.model.nq, "q"), self._ours(v, self.model.nv, "v")
        for p in self.pairs:
            yield p, q[..., p.q], v[..., p.v]

    def _turned(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        q, x = self._ours(q, self.model.nq, "q"), self._ours(x, self.model.nv, "the vector to convert")
        out = np.zeros((*_common(q, x), self.nv))
        for p in self.pairs:
            out[..., p.there_v] = apply(p.codec.T(q[..., p.q]), x[..., p.v])
        return out

    def _turned_back(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        q, x = self._ours(q, self.model.nq, "q"), self._theirs(x, self.nv, "the vector to convert")
        out = np.zeros((*_common(q, x), self.model.nv))
        for p in self.pairs:
            out[..., p.v] = apply(np.swapaxes(p.codec.T(q[..., p.q]), -1, -2), x[..., p.there_v])
        return out

    def _ours(self, x: np.ndarray, n: int, what: str) -> np.ndarray:
        return _checked(x, n, f"{what} (in Linkwork's order)")

    def _theirs(self, x: np.ndarray, n: int, what: str) -> np.ndarray:
        return _checked(x, n, f"{what} (in {self.library}'s order)")

    def __repr__(self) -> str:
        return f"Map({self.model.name!r} to {self.library}: {len(self.pairs)} joints, nq={self.nq}, nv={self.nv})"


@dataclass(frozen=True)
class Foreign:
    """A joint of another library: its kind in the words of that library, and where its coordinates are."""

    name: str
    kind: str
    q: range
    v: range


def matched(
    model: Model, theirs: Sequence[Foreign], names: Mapping[str, str | Sequence[str]] | None, library: str
) -> list[tuple[int, list[Foreign]]]:
    """For each of our joints that moves (by its link) the joints of the other library that it is.

    By name; `names` gives other names, several where one of our joints is several of theirs; free joints that are
    left over on both sides are taken in their order. What stays without a partner on either side is an error.
    """
    by_name = {f.name: f for f in theirs}
    given = dict(names or {})
    moving = [i for i in model.topology.links if model.links[i].joint.nv]
    for ours in given:
        model.joint(ours)
    out: dict[int, list[Foreign]] = {}
    for i in moving:
        joint = model.links[i].joint_name
        wanted = given.get(joint, joint)
        parts = [wanted] if isinstance(wanted, str) else list(wanted)
        if joint in given:
            for part in parts:
                if part not in by_name:
                    raise not_found(f"joint in the {library} model", part, by_name)
        if all(part in by_name for part in parts):
            out[i] = [by_name.pop(part) for part in parts]
    rest = [i for i in moving if i not in out]
    floating = [f for f in by_name.values() if len(f.v) == 6]
    for i, f in zip([i for i in rest if isinstance(model.links[i].joint, Free)], floating):
        out[i] = [by_name.pop(f.name)]
    missing = [model.links[i].joint_name for i in moving if i not in out]
    if missing or by_name:
        raise InputError(
            f"the joints do not pair up: {listing(missing)} of '{model.name}' are not in the {library} model, "
            f"{listing(by_name)} of that are not in '{model.name}'; give names={{ours: theirs}} for joints that are "
            "called differently, or load both models with the same base"
        )
    return [(i, out[i]) for i in moving]


def paired(model: Model, i: int, parts: Sequence[Foreign], codec: Same, library: str) -> Pair:
    """The pair of our link i's joint and those joints, if they have as many coordinates as the codec says."""
    t = model.topology
    q, v = tuple(k for f in parts for k in f.q), tuple(k for f in parts for k in f.v)
    if (len(q), len(v)) != (codec.nq, codec.nv):
        raise mismatch(model, i, parts, library)
    return Pair(model.links[i].joint_name, t.q_slices[i], t.v_slices[i], q, v, codec)


def mismatch(model: Model, i: int, parts: Sequence[Foreign], library: str) -> UnsupportedError:
    kinds = " + ".join(f.kind for f in parts)
    return UnsupportedError(
        f"joint '{model.links[i].joint_name}' is {model.links[i].joint.kind} here and {kinds} in "
        f"{library}: there is no conversion between these"
    )


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


def _common(*arrays: np.ndarray) -> tuple[int, ...]:
    """The shape of the batch that these have in common."""
    try:
        return np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    except ValueError:
        raise InputError(f"the arrays have different batches: {', '.join(str(x.shape) for x in arrays)}") from None


def _checked(x: np.ndarray, n: int, what: str) -> np.ndarray:
    try:
        x = finite_array(x)
    except Refused as why:
        raise InputError(f"{what} is not an array of finite numbers: {why or shown(x)}") from None
    if x.ndim == 0 or x.shape[-1] != n:
        raise InputError(f"{what} has shape {x.shape}; its last axis must have {n} entries")
    return x
