"""The same state in another library's coordinates.

For each joint the other library's velocity is `T(q) v` with an orthogonal T (a permutation, a rotation, or both), so

    v' = T v,    a' = T a + (dT/dt) v,    tau' = T tau,    M' = T M T^T

so a codec has the position of a joint, its T, and (dT/dt) v.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwork.checks import NAME, NAMES, Refused, either, finite_array, mapping, optional, shown
from linkwork.constraints import Coupling
from linkwork.errors import InputError, UnsupportedError, listing, not_found
from linkwork.interop.codecs import Same, apply
from linkwork.joints import Free
from linkwork.model import Model


@dataclass(frozen=True)
class Pair:
    """One of our joints: the indices of its coordinates here and there, and its codec."""

    joint: str
    q: slice
    v: slice
    there_q: tuple[int, ...]
    there_v: tuple[int, ...]
    codec: Same


PAIRED = optional(mapping(either(NAME, NAMES), "a dictionary from our names of joints to theirs"))


class Map:
    """From our coordinates to another library's (`..._to`) and back (`..._from`).

    Arrays have the coordinates in their last axis: (n,) for one state, (B, n) for a batch. A `q` that is needed besides
    what is converted is ours, with quaternions [x y z w]: velocities, accelerations and forces of free joints are
    rotated by it.
    """

    def __init__(self, model: Model, pairs: Sequence[Pair], nq: int, nv: int, library: str) -> None:
        self.model, self.pairs, self.nq, self.nv, self.library = model, tuple(pairs), nq, nv, library
        theirs = {p.joint for p in pairs}
        self.rotors = [r for i, r in rotors(model).items() if model.links[i].joint_name not in theirs]

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
        for r in self.rotors:
            out[..., r.q] = r.offset + sum(c * out[..., k] for k, c in r.by_q.items())
        return out

    def v_to(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._turned(q, v)

    def v_from(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._with_rotors(self._turned_back(q, v))

    def tau_to(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Joint forces: they do the same work."""
        if self.rotors:
            tau = np.array(self._ours(tau, self.model.nv, "tau"), float)
            for r in self.rotors:
                for k, c in r.by_v.items():
                    tau[..., k] += c * tau[..., r.v]
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
        return self._with_rotors(self._turned_back(q, a))

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

    def _with_rotors(self, v: np.ndarray) -> np.ndarray:
        """Velocities or accelerations with those of rotors that the other library has not."""
        for r in self.rotors:
            v[..., r.v] = sum(c * v[..., k] for k, c in r.by_v.items())
        return v

    def _ours(self, x: np.ndarray, n: int, what: str) -> np.ndarray:
        return _checked(x, n, f"{what} (in Linkwork's order)")

    def _theirs(self, x: np.ndarray, n: int, what: str) -> np.ndarray:
        return _checked(x, n, f"{what} (in {self.library}'s order)")

    def __repr__(self) -> str:
        return f"Map({self.model.name!r} to {self.library}: {len(self.pairs)} joints, nq={self.nq}, nv={self.nv})"


@dataclass(frozen=True)
class Rotor:
    """A joint without a body, turned by others: q_r = offset + sum c_k q_k.

    It stands for armature that couples joints; other libraries have that as a number.
    """

    q: int
    v: int
    offset: float
    by_q: Mapping[int, float]
    by_v: Mapping[int, float]


def rotors(model: Model) -> dict[int, Rotor]:
    """The rotors of a model that gears turn, by link."""
    t, out = model.topology, dict[int, Rotor]()
    for c in model.constraints:
        if not (isinstance(c, Coupling) and c.has_fixed_ratios):
            continue
        i, *others = c.links(model)
        if model.links[i].inertia.mass or any(model.links[k].joint.nv != 1 for k in (i, *others)):
            continue
        ratios = [terms[0] for terms in c.terms.values()]
        by_q, by_v = ({s[k].start: x for k, x in zip(others, ratios, strict=True)} for s in (t.q_slices, t.v_slices))
        out[i] = Rotor(t.q_slices[i].start, t.v_slices[i].start, c.offset, by_q, by_v)
    return out


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
    """For each of our moving joints (by its link) the corresponding joints of the other library.

    By name; `names` gives other names, several where one of our joints is several of theirs; the remaining free joints
    of both sides are paired in order. A joint without a partner on either side is an error, but for `rotors`.
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
    missing = [model.links[i].joint_name for i in moving if i not in out and i not in rotors(model)]
    if missing or by_name:
        raise InputError(
            f"the joints do not pair up: {listing(missing)} of '{model.name}' are not in the {library} model, "
            f"{listing(by_name)} of that are not in '{model.name}'; give names={{ours: theirs}} for joints that are "
            "called differently, or load both models with the same base"
        )
    return [(i, out[i]) for i in moving if i in out]


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
        raise InputError(f"{what} is not an array of finite numbers: {str(why) or shown(x)}") from None
    if x.ndim == 0 or x.shape[-1] != n:
        raise InputError(f"{what} has shape {x.shape}; its last axis must have {n} entries")
    return x
