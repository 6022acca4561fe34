"""Composite joint: several joints one behind the other, without links between them.

    S = [X_n..X_2 S_1,  ...,  X_n S_(n-1),  S_n],    X_k from the frame before joint k to that behind it

q and v are those of the joints, one after the other. A column of S is fixed in the frame behind its joint, which moves
relative to the child with the joints that follow: its rate is dS_k/dt - v_(k+1..n) x S_k in child coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import checked, instance
from linkwork.errors import ModelError
from linkwork.joints.base import JOINT, Joint
from linkwork.spatial.transforms import Move, Transform
from linkwork.spatial.vectors import cross_motion

PART = instance(Joint, JOINT.what)


class Composite(Joint):
    """`Composite(Prismatic("x"), Revolute("z"))` slides along x, then turns about z.

    For a place between two joints, give their links a massless link between them instead.
    """

    kind = "composite"
    nq: int
    nv: int

    @checked(joints=PART)
    def __init__(self, *joints: Joint) -> None:
        if not joints:
            raise ModelError("a composite joint is made of at least one joint")
        self.joints = tuple(joints)
        if type(self) is Composite:
            self.nq, self.nv = sum(j.nq for j in joints), sum(j.nv for j in joints)

    @property
    def units(self) -> tuple[slice, ...]:  # type: ignore[override]
        out, at = [], 0
        for j in self.joints:
            out += [slice(at + s.start, at + s.stop) for s in j.units]
            at += j.nq
        return tuple(out)

    def moves(self, q: Array, xp: Ops) -> tuple[Move, ...]:
        return tuple(move for j, part in self._parts(q) for move in j.moves(part, xp))

    def subspace(self, q: Array, xp: Ops) -> Array:
        return xp.hstack(self._columns([j.subspace(part, xp) for j, part in self._parts(q)], q, xp))

    def subspace_rate(self, q: Array, v: Array, xp: Ops) -> Array:
        parts, speeds = list(self._parts(q)), list(self._of_v(v))
        S = self._columns([j.subspace(part, xp) for j, part in parts], q, xp)
        own = [j.subspace_rate(part, w, xp) for (j, part), w in zip(parts, speeds, strict=True)]
        behind, rates = xp.zeros(6), []
        for s, rate, w in reversed(list(zip(S, self._columns(own, q, xp), speeds, strict=True))):
            rates.append(rate - cross_motion(behind, s, xp))
            behind = behind + s @ w
        return xp.hstack(rates[::-1])

    def integrate(self, q: Array, v: Array, xp: Ops) -> Array:
        return xp.vstack([j.integrate(part, w, xp) for (j, part), w in zip(self._parts(q), self._of_v(v), strict=True)])

    def difference(self, q0: Array, q1: Array, xp: Ops) -> Array:
        pairs = zip(self._parts(q0), self._parts(q1), strict=True)
        return xp.vstack([j.difference(a, b, xp) for (j, a), (_, b) in pairs])

    def displacement(self, rest: Array, q: Array, xp: Ops) -> Array:
        pairs = zip(self._parts(rest), self._parts(q), strict=True)
        return xp.vstack([j.displacement(a, b, xp) for (j, a), (_, b) in pairs])

    def rate(self, q: Array, v: Array, xp: Ops) -> Array:
        return xp.vstack([j.rate(part, w, xp) for (j, part), w in zip(self._parts(q), self._of_v(v), strict=True)])

    def velocity(self, q: Array, qdot: Array, xp: Ops) -> Array:
        pairs = zip(self._parts(q), self._parts(qdot), strict=True)
        return xp.vstack([j.velocity(part, rate, xp) for (j, part), (_, rate) in pairs])

    def normalised(self, q: Array, xp: Ops) -> Array:
        return xp.vstack([j.normalised(part, xp) for j, part in self._parts(q)])

    def neutral(self) -> np.ndarray:
        return np.concatenate([j.neutral() for j in self.joints])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([j.random(rng) for j in self.joints])

    def describe(self) -> str:
        return f"{self.kind} of {', '.join(j.describe() for j in self.joints)}"

    def _parts(self, q: Array) -> Iterator[tuple[Joint, Array]]:
        """Each joint with its part of q."""
        at = 0
        for j in self.joints:
            yield j, q[at : at + j.nq, :]
            at += j.nq

    def _of_v(self, v: Array) -> Iterator[Array]:
        """Each joint's part of v."""
        at = 0
        for j in self.joints:
            yield v[at : at + j.nv, :]
            at += j.nv

    def _columns(self, S: Sequence[Array], q: Array, xp: Ops) -> list[Array]:
        """Each joint's columns, given behind that joint, in child coordinates."""
        transforms = [Transform(j.moves(part, xp), xp) for j, part in self._parts(q)]
        out = []
        for k, s in enumerate(S):
            for X in transforms[k + 1 :]:
                s = X @ s
            out.append(s)
        return out
