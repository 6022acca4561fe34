"""The inputs of algorithms: transforms, joint subspaces, velocities, velocity products of all links.

Link accelerations in Linkwork's recursions are *classical*: [acceleration of the point at the link's origin;
angular acceleration], not spatial ones. With them the velocity products

    c_i = [R^T (w_p x (w_p x r)) + (w_i + R^T w_p) x v_J ;  w_i x w_J] + (dS/dt) v,    r the joint's place on p,
    b_i = [w x (w x h) ;  w x I w],

hold angular velocities only: no linear velocity is ever propagated, which saves a tenth of a forward dynamics.
The recursions themselves do not change: a_i = X_i a_p + S_i vdot_i + c_i and f_i = I_i a_i + b_i.

The linear part of c_i, summed along the tree, is `known` before any acceleration is. For links without mass (most are,
where rewrite/inertia_lumping.py moved masses to the base) it is left out of c and a: the force I_i [known; 0] that
makes up for it is a torque alone, h x known, and costs less than propagating c_i through an articulated inertia.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.joints import Free
from linkwork.lazy import cached_property
from linkwork.model.body import Placement
from linkwork.model.digest import digest
from linkwork.model.model import Model
from linkwork.spatial import RigidInertia, Transform, angular, linear
from linkwork.spatial.transforms import constant_moves, placed_moves

Found = TypeVar("Found")


@dataclass(frozen=True)
class Given:
    """Parameters that are inputs of a function, in place of the model's own (functions/parameters.py).

    `inertias` of all links as the recursions take them, and the `weightless` parts of them (None: the model's);
    `armature` nv x 1; `gravity` 3 x 1; `targets` are added to the right-hand sides k of all rows; `link_rows` are the K
    (m x 6) of `LinkRows` by the names of constraint and link.
    """

    inertias: list[RigidInertia] | None = None
    weightless: list[RigidInertia | None] | None = None
    armature: Array | None = None
    gravity: Array | None = None
    targets: Array | None = None
    link_rows: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)


NOTHING = Given()

LAST = 5
"""The motions that a model keeps: of the user's state, and of those in which its penalties are fitted."""


@dataclass(frozen=True)
class Motion:
    """Configuration and velocity of a mechanism; lists are indexed by link, entry 0 is the world."""

    model: Model
    q: Array
    v: Array
    xp: Ops
    given: Given = NOTHING
    evaluated: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The rows of constraints that have been evaluated in this state, by their number (constraints/rows.py), and the
    results of functions (`found_once`)."""
    poses_between: dict[tuple[str, str], tuple[Array, Array]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Poses of frames in others (`between`)."""

    def joint_q(self, i: int) -> Array:
        return self.q[self.model.topology.q_slices[i], :]

    def joint_v(self, i: int) -> Array:
        return self.v[self.model.topology.v_slices[i], :]

    @cached_property
    def X(self) -> list[Transform]:
        """From the parent link to each link: its placement, then its joint."""
        out = [Transform((), self.xp)]
        for i in self.model.topology.links:
            place, moves = self.model.links[i].placement, self.model.links[i].joint.moves(self.joint_q(i), self.xp)
            if self.xp.dense:
                before = self._constant(("placement", i), partial(self._placed, place))
                out.append(Transform.of((*before.moves, *moves), self.xp))
            else:
                out.append(Transform(placed_moves(place.R, place.p, moves, self.xp), self.xp))
        return out

    def _constant(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """A constant of the model: made once if the backend executes, and traced by others."""
        if not self.xp.dense:
            return make()
        memo: dict[Any, Found] = self.model._memo
        name = Motion, self.xp, key  # a longer type has constants of its own
        return memo[name] if name in memo else memo.setdefault(name, make())

    def _placed(self, place: Placement) -> Transform:
        return Transform.of(constant_moves(place.R, place.p, self.xp), self.xp)

    def to_frame(self, name: str) -> Transform:
        """From the link that carries a frame to the frame."""
        return self._constant(("frame", name), lambda: self._placed(self.model.frame(name).placement))

    @cached_property
    def S(self) -> list[Array]:
        """The motion subspace of each link's joint, 6 x nv, in link coordinates."""
        return [
            l.joint.subspace(self.joint_q(i), self.xp) if i else self.xp.zeros(6, 0)
            for i, l in enumerate(self.model.links)
        ]

    @cached_property
    def jacobians(self) -> list[Array]:
        """The velocity of each link over all joint velocities, 6 x nv, in link coordinates."""
        xp, t, n, out = self.xp, self.model.topology, self.model.nv, [self.xp.zeros(6, self.model.nv)]
        for i in t.links:
            own = t.v_slices[i]
            J = self.X[i] @ out[t.parent[i]]
            out.append(xp.hstack([J[:, 0 : own.start], self.S[i], xp.zeros(6, n - own.stop)]))
        return out

    @cached_property
    def I(self) -> list[RigidInertia]:  # noqa: E743
        """The inertia of each link about its origin."""
        if self.given.inertias is not None:
            return self.given.inertias
        xp, bodies = self.xp, [l.inertia for l in self.model.links]

        def make() -> list[RigidInertia]:
            return [RigidInertia(b.mass, xp.constant(b.first_moment), xp.constant(b.about_origin), xp) for b in bodies]

        return self._constant("I", make)

    @cached_property
    def still(self) -> bool:
        """Whether nothing moves, where that is known: then V, c, drifts of rows are zero and are not computed."""
        return self.xp.dense and not self.v.any()

    @cached_property
    def vJ(self) -> list[Array]:
        """The velocity of each link relative to its parent, in link coordinates."""
        return [self.S[i] @ self.joint_v(i) if i else self.xp.zeros(6) for i in range(len(self.model.links))]

    @cached_property
    def V(self) -> list[Array]:
        """The spatial velocity of each link, in link coordinates."""
        out = [self.xp.zeros(6)]
        if self.still:
            return out * len(self.model.links)
        for i in self.model.topology.links:
            out.append(self.X[i] @ out[self.model.topology.parent[i]] + self.vJ[i])
        return out

    @cached_property
    def c(self) -> list[Array]:
        """The velocity-product acceleration c_i of each link: see above."""
        return [c for c, _ in self._drifts]

    @cached_property
    def known(self) -> list[Array]:
        """The part that the recursions leave out of each link's acceleration, 3 x 1: see above."""
        return [known for _, known in self._drifts]

    @cached_property
    def _drifts(self) -> list[tuple[Array, Array]]:
        """c and `known` of each link."""
        xp, out = self.xp, [(self.xp.zeros(6), self.xp.zeros(3))]
        if self.still:
            return out * len(self.model.links)
        for i in self.model.topology.links:
            parent = self.model.topology.parent[i]
            wp, w = angular(self.V[parent]), angular(self.V[i])
            r = self.X[i].pose[1]
            swing = self.X[i].rotate(out[parent][1] + xp.cross(wp, xp.cross(wp, r)))
            coriolis = xp.cross(w + self.X[i].rotate(wp), linear(self.vJ[i]))
            turning = xp.cross(w, angular(self.vJ[i]))
            joint = self.model.links[i].joint
            c = xp.vstack([swing + coriolis, turning]) + joint.bias(self.joint_q(i), self.joint_v(i), xp)
            known = linear(c) if self._leaves_out(i) else xp.zeros(3)
            out.append((c - xp.vstack([known, xp.zeros(3)]), known))
        return out

    def _leaves_out(self, i: int) -> bool:
        """Whether the linear part of c_i is left out of the recursions: without mass it needs no force."""
        mass = self.I[i].mass
        return isinstance(mass, float) and mass == 0

    def bias(self, fext: Array | None) -> list[Array]:
        """The force on each link that its velocity and `known` need, less the external force: b_i - f_i."""
        b = self._biases
        if fext is None:
            return list(b)
        return [b[0], *(b[i] - self.felt(i, fext[6 * (i - 1) : 6 * i, :]) for i in self.model.topology.links)]

    @cached_property
    def _biases(self) -> list[Array]:
        """The same without external forces."""
        zero = self.xp.zeros(3)
        b = (
            [self.xp.zeros(6)] * len(self.I)
            if self.still
            else [
                I.bias(angular(V)) + I @ self.xp.vstack([known, zero])
                for I, V, known in zip(self.I, self.V, self.known, strict=True)
            ]
        )
        for i in self.model.topology.links:
            self._lift(i, b)
            self._turn_armature(i, b)
        return b

    def _lift(self, i: int, b: list[Array]) -> None:
        """Subtract the gravity that the recursions apply to the weightless part of a link: [m g; h x g]."""
        held = self.weightless(i)
        if held is not None:
            g = self.gravity[i]
            b[i] = b[i] + self.xp.vstack([held.mass * g, self.xp.cross(held.h, g)])

    def weightless(self, i: int) -> RigidInertia | None:
        """The part of link i that gravity does not pull; None if there is none."""
        if self.given.weightless is not None:
            return self.given.weightless[i]
        body, xp = self.model.links[i].weightless, self.xp
        if not (body.mass or body.first_moment.any()):
            return None
        return RigidInertia(body.mass, xp.constant(body.first_moment), xp.zeros(3, 3), xp)

    def _turn_armature(self, i: int, b: list[Array]) -> None:
        """Armature m of a free joint in its parent's axes needs m (vdot + w x v): add m w x v."""
        link, xp = self.model.links[i], self.xp
        if not (isinstance(link.joint, Free) and link.joint.armature_axes == "parent" and self.has_armature(i)):
            return
        v = self.joint_v(i)
        f = xp.vstack([self.rotor(i, 0) * xp.cross(v[3:6, :], v[0:3, :]), xp.zeros(3)])
        b[i] = b[i] + f
        if link.parent:
            b[link.parent] = b[link.parent] - self.X[i].T @ f

    def felt(self, i: int, f: Array) -> Array:
        """A force at the origin of the user's link i, in its axes, moved to the origin of the recursions."""
        return self.to_frame(self.model.links[i].name).T @ f

    @cached_property
    def a0(self) -> Array:
        """The world's acceleration: -g, which makes every link feel gravity."""
        if self.given.gravity is not None:
            return self.xp.vstack([-self.given.gravity, self.xp.zeros(3)])
        return self.xp.constant([*(-self.model.gravity), 0.0, 0.0, 0.0])

    @cached_property
    def poses(self) -> list[tuple[Array, Array]]:
        """Axes and origin of each link in the world."""
        out = [(self.xp.eye(3), self.xp.zeros(3))]
        for i in self.model.topology.links:
            out.append(self.X[i].after(*out[self.model.topology.parent[i]]))
        return out

    def relative_pose(self, link: int, other: int) -> tuple[Array, Array]:
        """Axes and origin of `link` in the frame of `other`, through the last link that carries both."""
        root = self.model.topology.common_ancestor(link, other)
        R, p = self._pose_from(root, link)
        if other == root:
            return R, p
        Ro, po = self._pose_from(root, other)
        return Ro.T @ R, Ro.T @ (p - po)

    def between(self, a: str, b: str) -> tuple[Array, Array]:
        """Axes and origin of frame `a` in frame `b`, found once."""
        if (a, b) not in self.poses_between:
            links = self.model.frame(a).link, self.model.frame(b).link
            R, p = self.to_frame(a).after(*self.relative_pose(*links))
            Rb, pb = self.to_frame(b).pose
            self.poses_between[a, b] = Rb.T @ R, Rb.T @ (p - pb)
        return self.poses_between[a, b]

    def _pose_from(self, root: int, link: int) -> tuple[Array, Array]:
        if root == 0:
            return self.poses[link]
        pose = (self.xp.eye(3), self.xp.zeros(3))
        for i in self.model.topology.supports[link][self.model.topology.depth[root] :]:
            pose = self.X[i].after(*pose)
        return pose

    @cached_property
    def gravity(self) -> list[Array]:
        """The world's gravity in each link's axes."""
        g = self.given.gravity
        out = [self.xp.constant(self.model.gravity) if g is None else g]
        for i in self.model.topology.links:
            out.append(self.X[i].rotate(out[self.model.topology.parent[i]]))
        return out

    def accelerations(self, vdot: Array | None) -> list[Array]:
        """The recursions' link accelerations, gravity included as that of the world.

        `vdot` None stands for zero.
        """
        t, out = self.model.topology, [self.a0]
        for i in t.links:
            a = self.X[i] @ out[t.parent[i]] + self.c[i]
            out.append(a if vdot is None else a + self.S[i] @ vdot[t.v_slices[i], :])
        return out

    def armature(self, i: int) -> Array:
        """The rotor inertia of joint i as a diagonal matrix."""
        if self.given.armature is None:
            return self.xp.constant(np.diag(self.model.links[i].armature))
        n = self.model.links[i].joint.nv
        unit = np.eye(n)
        return sum((self.rotor(i, k) * self.xp.constant(np.diag(unit[k])) for k in range(n)), self.xp.zeros(n, n))

    def has_armature(self, i: int) -> bool:
        """Whether joint i has a rotor inertia, or one is given."""
        return self.given.armature is not None or bool(self.model.links[i].armature.any())

    def rotor(self, i: int, k: int) -> Array | float:
        """The rotor inertia of degree of freedom k of joint i."""
        if self.given.armature is None:
            return float(self.model.links[i].armature[k])
        return self.given.armature[self.model.topology.v_slices[i].start + k, 0]

    @cached_property
    def classical(self) -> Motion:
        """The same state with complete accelerations, for algorithms that form forces link by link."""
        out = Classical(self.model, self.q, self.v, self.xp, self.given)
        out.__dict__.update(X=self.X, S=self.S, I=self.I, vJ=self.vJ, V=self.V)
        return out

    @cached_property
    def at_rest(self) -> Motion:
        """The same configuration without velocities and gravity: from it follows what forces add."""
        zero = self.xp.zeros(self.model.nv)
        out, links = type(self)(self.model, self.q, zero, self.xp), len(self.model.links)
        out.__dict__.update(X=self.X, S=self.S, I=self.I, c=[self.xp.zeros(6)] * links, a0=self.xp.zeros(6))
        return out


def motion_of(model: Model, q: Array, v: Array, xp: Ops) -> Motion:
    """The motion of a model; with NumPy one of its last, if that is in the same state.

    Several functions of one state then evaluate transforms, velocities and constraint rows once. The memo has copies of
    `q` and `v`, and no algorithm writes to an array. What users write may give other rows in the next call.
    """
    if xp.name != "numpy" or digest(model) is None:
        return Motion(model, q, v, xp)
    state = q.tobytes(), v.tobytes()
    last: tuple[tuple[object, Motion], ...] = model._memo.get(motion_of, ())
    for known, motion in last:
        if known == state:
            return motion
    motion = Motion(model, q.copy(), v.copy(), xp)
    model._memo[motion_of] = ((state, motion), *last[: LAST - 1])
    return motion


def found_once(find: Callable[[Motion], Found]) -> Callable[[Motion], Found]:
    """A function of a motion whose result NumPy computes once in a state.

    A method, its certificates and the dense second opinion then share mass matrix and rows. Nothing that is shared is
    written to; a trace shares equal operations anyway.
    """

    @wraps(find)
    def get(motion: Motion) -> Found:
        if not motion.xp.dense:
            return find(motion)
        known: dict[Any, Found] = motion.evaluated
        return known[find] if find in known else known.setdefault(find, find(motion))

    return get


class Classical(Motion):
    """A motion whose accelerations are the classical ones of all links."""

    def _leaves_out(self, i: int) -> bool:
        return False

    @cached_property
    def classical(self) -> Motion:
        return self
