"""A motion in the frame of the first link of each tree: what derivatives are made of.

Derivatives are products of vectors of two joints, one of which carries the other. In one frame for all links of a tree
these are dot products, and no vector is moved from link to link; the frame of the first link, because a free base is
there its own unit matrix. Accelerations are spatial here, not classical as elsewhere.

With I, V the inertia and velocity of a link, the force that a motion needs is f = I A + V x* I V, and its change for a
change dV = x, dA + V x x = y is  I y + 2 B x,  where, with [p; L] = I V the momentum and Idot the rate of the
rotational inertia about the frame's origin,

    2 B = V x* I - I V x + (I V) xbar* = [0, -2 p^; 0, Idot - L^]

(Singh, Russell and Wensing 2022, who have it as a full matrix.) Like inertias, forces and momenta, the parts of 2 B of
links behind a joint add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from linkwork.backends.ops import Array, Ops
from linkwork.joints import Free
from linkwork.lazy import cached_property
from linkwork.model import Motion
from linkwork.spatial import RigidInertia, angular, linear
from linkwork.spatial.vectors import cross_force, cross_motion, skew


@dataclass(frozen=True)
class Coriolis:
    """2 B of one link, or of all behind a joint: momentum [p; L] and the rate of the rotational inertia."""

    momentum: Array
    rate: Array
    xp: Ops

    @staticmethod
    def of(I: RigidInertia, V: Array, xp: Ops) -> Coriolis:
        v, w = linear(V), angular(V)
        turn, shift = xp.cross(w, I.I), I.h @ v.T
        along = (v.T @ I.h)[0, 0]
        rate = xp.symmetric(turn + turn.T - shift - shift.T) + (along + along) * xp.eye(3)
        return Coriolis(I @ V, rate, xp)

    def __add__(self, other: Coriolis) -> Coriolis:
        return Coriolis(self.momentum + other.momentum, self.rate + other.rate, self.xp)

    def __matmul__(self, x: Array) -> Array:
        """2 B x, for the columns of x."""
        w, p = angular(x), linear(self.momentum)
        return self.xp.vstack([-self.xp.cross(p + p, w), self.rate @ w - self.xp.cross(angular(self.momentum), w)])

    def transposed(self, y: Array) -> Array:
        """The lower half of (2 B)^T y, for the columns of y; the upper half is zero."""
        w, p = angular(y), linear(self.momentum)
        return self.xp.cross(p + p, linear(y)) + self.rate @ w + self.xp.cross(angular(self.momentum), w)


class Slopes(NamedTuple):
    """(dS/dq) v, (dS/dq) vdot + dbias/dq and dbias/dv of a joint, 6 x nv each."""

    velocity: Array
    acceleration: Array
    bias: Array


class Rooted:
    """Kinematics, composite inertias and forces of a motion; lists are by link, entry 0 is the world."""

    def __init__(self, motion: Motion) -> None:
        self.motion, self.xp, self.topology = motion, motion.xp, motion.model.topology

    @cached_property
    def poses(self) -> list[tuple[Array, Array]]:
        """Axes and origin of each link in the frame of the first link of its tree."""
        out = [(self.xp.eye(3), self.xp.zeros(3))]
        for i in self.topology.links:
            p = self.topology.parent[i]
            out.append(self.motion.X[i].after(*out[p]) if p else out[0])
        return out

    def from_link(self, i: int, x: Array) -> Array:
        """Motions (columns) in the coordinates of link i."""
        R, p = self.poses[i]
        w = R @ angular(x)
        return self.xp.vstack([R @ linear(x) + self.xp.cross(p, w), w])

    def to_link(self, i: int, x: Array) -> Array:
        """Motions (columns), to the coordinates of link i."""
        R, p = self.poses[i]
        w = angular(x)
        return self.xp.vstack([R.T @ (linear(x) - self.xp.cross(p, w)), R.T @ w])

    def force_from_link(self, i: int, f: Array) -> Array:
        """Forces (columns) in the coordinates of link i."""
        R, p = self.poses[i]
        lin = R @ linear(f)
        return self.xp.vstack([lin, R @ angular(f) + self.xp.cross(p, lin)])

    @cached_property
    def S(self) -> list[Array]:
        """The motion subspaces."""
        return [self.from_link(i, S) for i, S in enumerate(self.motion.S)]

    @cached_property
    def V(self) -> list[Array]:
        """The velocities; the first entry, of the world, is that of each tree's parent."""
        out = [self.xp.zeros(6)]
        for i in self.topology.links:
            out.append(out[self.topology.parent[i]] + self.S[i] @ self.motion.joint_v(i))
        return out

    @cached_property
    def P(self) -> list[Array]:
        """V_p x S: how the motion of what carries a joint changes its axes."""
        return [cross_motion(self.V[self.topology.parent[i]], S, self.xp) for i, S in enumerate(self.S)]

    @cached_property
    def bias(self) -> list[Array]:
        """(dS/dt) v of each joint, apparent."""
        m, out = self.motion, [self.xp.zeros(6)]
        for i in self.topology.links:
            bias = m.model.links[i].joint.bias(m.joint_q(i), m.joint_v(i), self.xp)
            out.append(bias if self.xp.is_zero(bias) else self.from_link(i, bias))
        return out

    @cached_property
    def up(self) -> list[Array]:
        """-g, the acceleration of the world, in the frame of each link's tree."""
        out = [self.motion.a0]
        for i in self.topology.links:
            p = self.topology.parent[i]
            turned = self.motion.X[i].rotate(linear(self.motion.a0)) if not p else linear(out[p])
            out.append(self.xp.vstack([turned, self.xp.zeros(3)]))
        return out

    def accelerations(self, vdot: Array | None) -> list[Array]:
        """Spatial accelerations with gravity as the world's, A_i = A_p + S vdot + V_p x S v + (dS/dt) v."""
        t, out = self.topology, [self.motion.a0]
        for i in t.links:
            A = (out[t.parent[i]] if t.parent[i] else self.up[i]) + self.P[i] @ self.motion.joint_v(i) + self.bias[i]
            out.append(A if vdot is None else A + self.S[i] @ vdot[t.v_slices[i], :])
        return out

    def parent_acceleration(self, i: int, A: list[Array]) -> Array:
        """That of what carries joint i."""
        p = self.topology.parent[i]
        return A[p] if p else self.up[i]

    @cached_property
    def I(self) -> list[RigidInertia]:  # noqa: E743
        """The inertia of each link."""
        return [I.rotated(R).translated(p) for I, (R, p) in zip(self.motion.I, self.poses, strict=True)]

    @cached_property
    def Ic(self) -> list[RigidInertia]:
        """The inertia of each link and all that it carries."""
        return self.composite(self.I)

    @cached_property
    def B(self) -> list[Coriolis]:
        """2 B of each link."""
        return [Coriolis.of(I, V, self.xp) for I, V in zip(self.I, self.V, strict=True)]

    @cached_property
    def Bc(self) -> list[Coriolis]:
        """2 B of each link and all that it carries."""
        return self.composite(self.B)

    @cached_property
    def _weightless(self) -> dict[int, RigidInertia]:
        """The part of each link, and of all that it carries, that gravity does not pull, where there is one."""
        xp, t, out = self.xp, self.topology, dict[int, RigidInertia]()
        for i in reversed(t.links):
            body, (R, p) = self.motion.model.links[i].weightless, self.poses[i]
            if body.mass or body.first_moment.any():
                own = RigidInertia(body.mass, xp.constant(body.first_moment), xp.zeros(3, 3), xp)
                own = own.rotated(R).translated(p)
                out[i] = out[i] + own if i in out else own
            if i in out and (carrier := t.parent[i]):
                out[carrier] = out[carrier] + out[i] if carrier in out else out[i]
        return out

    def lift(self, i: int) -> Array:
        """What a turn x of link i and all that it carries changes in the force that takes their gravity back.

        6 x 6.
        """
        if i not in self._weightless:
            return self.xp.zeros(6, 6)
        return -(self._weightless[i] @ cross_motion(self.up[i], self.xp.eye(6), self.xp))

    @cached_property
    def U(self) -> list[Array]:
        """Ic S: the force that moves a joint alone with unit acceleration."""
        return [I @ S for I, S in zip(self.Ic, self.S, strict=True)]

    def forces(self, A: list[Array], external: Mapping[int, Array]) -> list[Array]:
        """The force through each joint, for accelerations and external forces on links, in link coordinates."""
        f = [I @ a + cross_force(V, B.momentum, self.xp) for I, a, V, B in zip(self.I, A, self.V, self.B, strict=True)]
        for i, given in external.items():
            f[i] = f[i] - self.force_from_link(i, given)
        f = self.composite(f)
        # the recursions apply gravity to the weightless part too: it is taken back
        return [f[i] - self._weightless[i] @ self.up[i] if i in self._weightless else f[i] for i in range(len(f))]

    def composite(self, parts: list) -> list:  # type: ignore[type-arg]
        """Of each link and all that it carries."""
        out = list(parts)
        for i in reversed(self.topology.links):
            if p := self.topology.parent[i]:
                out[p] = out[p] + out[i]
        return out

    def mass(self) -> dict[tuple[int, int], Array]:
        """The blocks M[i, j] of the mass matrix for each link i and each link j that carries it."""
        out = {}
        for i in self.topology.links:
            for j in self.topology.supports[i]:
                block = self.U[i].T @ self.S[j]
                out[i, j] = self.xp.symmetric(block) + self.motion.armature(i) if i == j else block
        return out

    def tau(self, f: list[Array], vdot: Array | None) -> Array:
        """Joint forces."""
        m, parts = self.motion, [self.xp.zeros(0)]
        for i in self.topology.links:
            tau = self.S[i].T @ f[i]
            if vdot is not None and m.model.links[i].armature.any():
                tau = tau + m.armature(i) @ vdot[self.topology.v_slices[i], :]
            parts.append(tau + self._turned_armature(i))
        return self.xp.vstack(parts)

    # joints that are not like the others

    def is_free_base(self, i: int) -> bool:
        """Whether joint i is a free one on the world: its S is the unit matrix here."""
        return not self.topology.parent[i] and isinstance(self.motion.model.links[i].joint, Free)

    def slopes(self, i: int, vdot: Array) -> Slopes:
        """What moving joint i changes in its own velocity and acceleration, where its subspace depends on q."""
        m, joint = self.motion, self.motion.model.links[i].joint
        if joint.constant_subspace:
            none = 0 * self.S[i]
            return Slopes(none, none, none)
        q, v = m.joint_q(i), m.joint_v(i)
        bias_q, bias_v = joint.bias_slopes(q, v, self.xp)
        more = joint.subspace_slope(q, vdot[self.topology.v_slices[i], :], self.xp)
        parts = (joint.subspace_slope(q, v, self.xp), more + bias_q, bias_v)
        return Slopes(*(self.from_link(i, x) for x in parts))

    def subspace_force(self, i: int, f: Array) -> Array:
        """(dS/dq)^T f, nv x nv, of joint i."""
        joint, q = self.motion.model.links[i].joint, self.motion.joint_q(i)
        if joint.constant_subspace:
            return self.xp.zeros(joint.nv, joint.nv)
        units = [self.xp.eye(joint.nv)[:, k : k + 1] for k in range(joint.nv)]
        return self.xp.vstack([f.T @ self.from_link(i, joint.subspace_slope(q, e, self.xp)) for e in units])

    def _world_armature(self, i: int) -> float:
        """The linear armature of a free joint in its parent's axes, else 0."""
        link = self.motion.model.links[i]
        given = isinstance(link.joint, Free) and link.joint.armature_axes == "parent"
        return float(link.armature[0]) if given else 0.0

    def _turned_armature(self, i: int) -> Array:
        """m w x v of such an armature."""
        v, m = self.motion.joint_v(i), self._world_armature(i)
        if not m:
            return 0 * v
        return self.xp.vstack([m * self.xp.cross(v[3:6, :], v[0:3, :]), self.xp.zeros(3)])

    def armature_slope(self, i: int) -> Array:
        """Its derivative by the joint's velocity, nv x nv."""
        v, m, xp = self.motion.joint_v(i), self._world_armature(i), self.xp
        if not m:
            return xp.zeros(v.shape[0], v.shape[0])
        top = xp.hstack([m * skew(v[3:6, :], xp), -m * skew(v[0:3, :], xp)])
        return xp.vstack([top, xp.zeros(3, 6)])
