"""Two frames joined by a cut joint: contacts with the world and closed kinematic loops.

Frame `a` may move relative to frame `b` as the cut joint allows. The rows are the forbidden directions T of the twist
of `a` relative to `b`, in the axes of `a`:

    J v = T^T (V_a - X V_b),      d/dt (J v) = T^T (A_a - X A_b + V_rel x V_a) + (dT/dt)^T V_rel

with spatial velocities V and accelerations A of the two frames. The spherical joint instead equates the velocities
of the two points themselves, d/dt (p_a - p_b) = 0, as in other libraries, which is exact in open positions, too. Time
steps compare them as `b` sees them (`SeenPoints`): forces of a loop that has opened then act on one point, and leave
momentum as it is.

With axes="b" rows and forces are in the axes of `b` instead, those of the world for a contact:

    J_b v = R J v,      d/dt (J_b v) = R (d/dt (J v) + w x J v),      w the angular velocity of `a` relative to `b`

(for a spherical joint without w x J v: accelerations of points are compared in the world, whatever axes they are in).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import NAME, NOT_NEGATIVE, NUMBER, checked, checked_class, choice
from linkwork.constraints.base import Constraint, Rows
from linkwork.constraints.stabilisation import STABILISATION, Stabilisation
from linkwork.errors import ModelError, not_found
from linkwork.joints.base import AXIS, coordinate_axis, unit_axis
from linkwork.lazy import cached_property
from linkwork.spatial import Transform, angular, cross_motion, linear
from linkwork.spatial.rotations import log3, log6, matrix_quaternion

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion


def _across(axis: np.ndarray) -> np.ndarray:
    """Two unit vectors across an axis, as columns; coordinate axes where the axis is one."""
    aligned = coordinate_axis(axis)
    if aligned is not None:
        return np.delete(np.eye(3), aligned[0], axis=1)
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first)])


def _directions(lin: np.ndarray, ang: np.ndarray) -> np.ndarray:
    """T, 6 x m, from forbidden translations and forbidden rotations (columns)."""
    return np.block([[lin, np.zeros((3, ang.shape[1]))], [np.zeros((3, lin.shape[1])), ang]])


ALL, NONE = np.eye(3), np.zeros((3, 0))

CUT_JOINTS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "fixed": lambda u, h: _directions(ALL, ALL),
    "revolute": lambda u, h: _directions(ALL, _across(u)),
    "prismatic": lambda u, h: _directions(_across(u), ALL),
    "cylindrical": lambda u, h: _directions(_across(u), _across(u)),
    "helical": lambda u, h: np.hstack([_directions(_across(u), _across(u)), np.concatenate([u, -h * u])[:, None]]),
    "planar": lambda u, h: _directions(u[:, None], _across(u)),
    "spherical": lambda u, h: _directions(ALL, NONE),
    "universal": lambda u, h: _directions(ALL, u[:, None]),
    "point_on_line": lambda u, h: _directions(_across(u), NONE),
    "point_on_plane": lambda u, h: _directions(u[:, None], NONE),
}
"""The forbidden directions of each cut joint for its axis and pitch, as columns [linear; angular]."""

ALIASES = {"weld": "fixed", "ball": "spherical", "hinge": "revolute", "continuous": "revolute", "screw": "helical"}
FIXED_IN_B = ("point_on_line", "point_on_plane")
"""Cut joints whose forbidden directions are fixed in frame `b`, because `a` may turn freely."""

RESISTING = ("revolute", "prismatic")
"""Cut joints that leave one direction free, along which they may have damping and springs."""

IN_ANY_AXES = ("fixed", "spherical")
"""Cut joints that forbid all translations, and all rotations or none: their rows may be in any axes."""


@checked_class(
    a=NAME,
    b=NAME,
    joint=NAME,
    axis=AXIS,
    second=AXIS,
    pitch=NUMBER,
    name=NAME,
    stabilisation=STABILISATION,
    axes=choice("axes of a closure", ("a", "b")),
    damping=NOT_NEGATIVE,
    stiffness=NOT_NEGATIVE,
    rest=NUMBER,
)
@dataclass(frozen=True, eq=False, repr=False)
class Closure(Constraint):
    """Frames `a` and `b` (names of frames or links; "world") joined by a cut joint.

    `axis` is the joint's axis, the same in both frames when closed; for "universal" it is fixed in `b` and `second`
    in `a`; for "planar" and "point_on_plane" it is the normal. The multiplier of each row is the force or torque
    along its direction that acts on `a`; directions are in the axes of `a`, or of `b` where `axes` says so ("fixed" and
    "spherical" only; those of "point_on_line" and "point_on_plane" are fixed in `b` anyway).

    A revolute or prismatic cut joint may have `damping`, and a spring of this `stiffness` that rests at `rest` (rad, m,
    within half a turn): they act along the direction that it leaves free. They are explicit in time steps.

    Examples:
        >>> model = chain(6).with_constraints(lw.Closure("linktip", "link2", joint="universal", axis="x", second="y"))
        >>> model.rows
        4
    """

    a: str
    b: str = "world"
    joint: str = "fixed"
    axis: object = "z"
    second: object = "x"
    pitch: float = 0.0
    name: str = ""
    stabilisation: Stabilisation | None = None
    axes: str = "a"
    damping: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0

    def __post_init__(self) -> None:
        kind = ALIASES.get(self.joint, self.joint)
        if kind not in CUT_JOINTS:
            raise not_found("cut joint", self.joint, CUT_JOINTS)
        axis, second = unit_axis(self.axis), unit_axis(self.second)
        if kind == "universal" and abs(axis @ second) > 1e-6:
            raise ModelError("the two axes of a universal closure must be perpendicular")
        if self.axes == "b" and kind not in IN_ANY_AXES:
            raise ModelError(
                f"the rows of a '{kind}' closure have directions of their own; axes='b' is for "
                + " and ".join(IN_ANY_AXES)
            )
        if (self.damping or self.stiffness) and kind not in RESISTING:
            raise ModelError(f"damping and springs are for {' and '.join(RESISTING)} closures, not for '{kind}'")
        object.__setattr__(self, "joint", kind)
        object.__setattr__(self, "axis", tuple(axis.tolist()))
        object.__setattr__(self, "second", tuple(second.tolist()))
        object.__setattr__(self, "name", self.name or f"{self.a}~{self.b}")

    @cached_property
    def directions(self) -> np.ndarray:
        """The forbidden directions T, 6 x m, of the closed joint."""
        T = CUT_JOINTS[self.joint](np.array(self.axis), self.pitch)
        T.setflags(write=False)
        return T

    @property
    def rows(self) -> int:
        return int(self.directions.shape[1])

    def check(self, model: Model) -> None:
        fa, fb = model.frame(self.a), model.frame(self.b)
        if fa.link == fb.link:
            raise ModelError(
                f"closure '{self.name}' joins '{self.a}' and '{self.b}', which are on the same link "
                f"'{model.links[fa.link].name}'; name frames on two different links"
            )

    def touches(self, model: Model) -> tuple[int, ...]:
        return (model.frame(self.a).link, model.frame(self.b).link)

    def without_passive(self) -> Closure:
        return replace(self, damping=0.0, stiffness=0.0) if self.damping or self.stiffness else self

    def renamed(self, new: Callable[[str], str]) -> Closure:
        return replace(self, a=new(self.a), b=new(self.b), name=new(self.name))

    def describe(self) -> str:
        return f"{self.joint} {self.a} ~ {self.b}"

    def row_axes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The axes of the rows of "fixed" and "spherical" closures: one of those of `a` and of `b`."""
        return a if self.axes == "a" else b

    def _frames(self, motion: Motion) -> tuple[Transform, Transform, Array, Array]:
        """The transforms from the two links to the two frames, and axes and origin of `a` in `b`."""
        return motion.to_frame(self.a), motion.to_frame(self.b), *motion.between(self.a, self.b)

    def evaluate(self, motion: Motion) -> Rows:
        rows = self._points(motion) if self.joint == "spherical" else self._twists(motion)
        return rows if self.axes == "a" else self._turned(rows, motion)

    def evaluate_relative(self, motion: Motion) -> Rows:
        """Of two points, the velocity of one as `b` sees it: zero is right where they are apart, too."""
        apart = self.joint == "spherical" and 0 not in self.touches(motion.model)
        return self._twists(motion) if apart else self.evaluate(motion)

    def _turned(self, rows: Rows, motion: Motion) -> Rows:
        """Rows in the axes of `b`."""
        xp, (la, lb) = motion.xp, self.touches(motion.model)
        Xa, Xb, R, _ = self._frames(motion)
        drift = rows.drift
        if rows.relative:
            w = Xa.rotate(angular(motion.V[la])) - R.T @ Xb.rotate(angular(motion.V[lb]))
            rate = sum((K @ motion.V[l] for l, K in rows.links.items()), xp.zeros(self.rows))
            drift = drift + xp.vstack([xp.cross(w, rate[k : k + 3, :]) for k in range(0, self.rows, 3)])

        def turned(x: Array) -> Array:
            return xp.vstack([R @ x[k : k + 3, :] for k in range(0, self.rows, 3)])

        return replace(rows, links={l: turned(K) for l, K in rows.links.items()}, drift=turned(drift))

    def _twists(self, motion: Motion) -> Rows:
        """The twist of `a` relative to `b` along the forbidden directions."""
        xp = motion.xp
        la, lb = self.touches(motion.model)
        Xa, Xb, R, p = self._frames(motion)
        Va, Vb = Xa @ motion.V[la], Xb @ motion.V[lb]
        Vrel = Va - _into(R, p, Vb, xp)
        T, Tdot = self._forbidden(R, angular(Vrel), xp)
        KaT = Xa.T @ T
        KbT = -(Xb.T @ _out(R, p, T, xp))
        if motion.still:
            return Rows({la: KaT.T, lb: KbT.T}, {}, xp.zeros(self.rows))
        drift = T.T @ cross_motion(Vrel, Va, xp) + Tdot.T @ Vrel
        for l, KT in ((la, KaT), (lb, KbT)):
            drift = drift - KT.T @ spatial_excess(motion, l)
        return Rows({la: KaT.T, lb: KbT.T}, {}, drift)

    def resistance(self, motion: Motion) -> dict[int, Array]:
        """Forces of damping and spring on the two links, [force; torque] at their origins; empty without any.

        f = -damping s^T V_rel - stiffness (x - rest) along the free direction s, with x the angle or length.
        """
        if not (self.damping or self.stiffness):
            return {}
        xp, u = motion.xp, motion.xp.constant(np.array(self.axis))
        la, lb = self.touches(motion.model)
        Xa, Xb, R, p = self._frames(motion)
        turns = self.joint == "revolute"
        s = xp.vstack([xp.zeros(3), u] if turns else [u, xp.zeros(3)])
        rate = s.T @ (Xa @ motion.V[la] - _into(R, p, Xb @ motion.V[lb], xp))
        if turns:
            turn = matrix_quaternion(R, xp)
            x = 2 * xp.atan2((u.T @ turn[0:3, :])[0, 0], turn[3, 0]) * xp.eye(1)
        else:
            x = u.T @ p
        f = -self.damping * rate - self.stiffness * (x - self.rest)
        return {la: Xa.T @ (s @ f), lb: -(Xb.T @ _out(R, p, s @ f, xp))}

    def _forbidden(self, R: Array, w: Array, xp: Ops) -> tuple[Array, Array]:
        """T and dT/dt in the axes of `a`, which turn with `w` relative to `b`."""
        T = xp.constant(self.directions)
        if self.joint in FIXED_IN_B:
            lin = R.T @ linear(T)
            return xp.vstack([lin, angular(T)]), xp.vstack([-xp.cross(w, lin), xp.zeros(3, T.shape[1])])
        if self.joint == "universal":
            first, second = R.T @ xp.constant(np.array(self.axis)), xp.constant(np.array(self.second))
            turn, rate = xp.cross(second, first), xp.cross(second, -xp.cross(w, first))
            T = xp.hstack([T[:, 0:3], xp.vstack([xp.zeros(3), turn])])
            return T, xp.hstack([xp.zeros(6, 3), xp.vstack([xp.zeros(3), rate])])
        return T, xp.zeros(*T.shape)

    def _points(self, motion: Motion) -> Rows:
        """The two points: K_a = [1  -r^] in the axes of `a`; drift R_a^T (w x (w x r)) of each, subtracted."""
        xp = motion.xp
        la, lb = self.touches(motion.model)
        Xa, Xb, R, _ = self._frames(motion)
        T = xp.constant(self.directions)
        KaT = Xa.T @ T
        KbT = -(Xb.T @ xp.vstack([R, xp.zeros(3, 3)]))
        still = motion.still
        drift = xp.zeros(3) if still else centripetal(motion, la, Xa) - R.T @ centripetal(motion, lb, Xb)
        # in open positions the two points are apart, and a link that carries both turns them about each other
        return Rows({la: KaT.T, lb: KbT.T}, {}, drift, relative=False)

    def position_error(self, motion: Motion) -> Array:
        xp = motion.xp
        _, _, R, p = self._frames(motion)
        T, u = xp.constant(self.directions), xp.constant(np.array(self.axis))
        if self.axes == "b" and self.joint == "spherical":
            return p
        if self.joint == "fixed":
            error = log6(R, p, xp)
            return error if self.axes == "a" else xp.vstack([R @ linear(error), R @ angular(error)])
        if self.joint in FIXED_IN_B:
            return linear(T).T @ p
        if self.joint == "prismatic":
            return T.T @ xp.vstack([R.T @ p, log3(R, xp)])
        if self.joint == "universal":
            return xp.vstack([R.T @ p, u.T @ R @ xp.constant(np.array(self.second))])
        tilt = xp.vstack([R.T @ p, _tilt(R.T @ u, np.array(self.axis), xp)])
        if self.joint == "helical":
            return xp.vstack([T[:, 0:4].T @ tilt, self._off_thread(R, u.T @ p, xp)])
        return T.T @ tilt

    def _off_thread(self, R: Array, advance: Array, xp: Ops) -> Array:
        """Metres along the screw's axis to the nearest turn of its thread, after any number of turns."""
        if self.pitch == 0:
            return advance
        turn = matrix_quaternion(R, xp)
        half = xp.atan2((xp.constant(np.array(self.axis)).T @ turn[0:3, :])[0, 0], turn[3, 0])
        off = advance[0, 0] / self.pitch - 2 * half
        return self.pitch * xp.atan2(xp.sin(off), xp.cos(off)) * xp.eye(1)


@dataclass(frozen=True, eq=False, repr=False)
class SeenPoints(Closure):
    """A spherical closure of two links, as one of them sees it.

    Its point `a` has no velocity as `b` sees it, in open positions, too. Forces on the two points themselves, where
    these are apart, turn the whole robot; and a row across the plane of a linkage, which no joint moves, holds the
    links that carry it as far as it is open.
    """

    def evaluate(self, motion: Motion) -> Rows:
        rows = self._twists(motion)
        return rows if self.axes == "a" else self._turned(rows, motion)


def seen(closure: Constraint, model: Model) -> Constraint:
    """A closure as time steps take it."""
    if type(closure) is not Closure or closure.joint != "spherical" or 0 in closure.touches(model):
        return closure
    return SeenPoints(**{f.name: getattr(closure, f.name) for f in fields(closure)})


def _tilt(one: Array, axis: np.ndarray, xp: Ops) -> Array:
    """The turn from a unit vector to a constant one: its axis, times 2 sin(angle / 2).

    That is the angle where it is small, grows up to opposite vectors and, unlike sin(angle), is not zero for them.
    """
    half = (1 + (one.T @ xp.constant(axis))[0, 0]) / 2  # cos^2 (angle / 2)
    opposite = half < 1e-14
    turn = xp.cross(one, xp.constant(axis)) / xp.sqrt(xp.where(opposite, 1.0, half))
    return xp.where(opposite, xp.constant(2 * _across(axis)[:, 0]), turn)


def spatial_excess(motion: Motion, l: int) -> Array:
    """[w x v; 0]: the classical acceleration of a link's origin less its spatial one."""
    V = motion.V[l]
    return motion.xp.vstack([motion.xp.cross(angular(V), linear(V)), motion.xp.zeros(3)])


def centripetal(motion: Motion, l: int, X: Transform) -> Array:
    """w x (w x r) of a frame's origin on link l, in the frame's axes."""
    w, xp = angular(motion.V[l]), motion.xp
    return X.rotate(xp.cross(w, xp.cross(w, X.pose[1])))


def _into(R: Array, p: Array, V: Array, xp: Ops) -> Array:
    """A motion from the frame in which (R, p) is given to the frame it describes."""
    w = angular(V)
    return xp.vstack([R.T @ (linear(V) - xp.cross(p, w)), R.T @ w])


def _out(R: Array, p: Array, F: Array, xp: Ops) -> Array:
    """Forces (columns) the other way."""
    f = R @ linear(F)
    return xp.vstack([f, R @ angular(F) + xp.cross(p, f)])


@checked(a=NAME, b=NAME)
def Weld(a: str, b: str = "world", **options: Any) -> Closure:
    """`a` fixed to `b`: six rows.

    Examples:
        >>> chain(8).with_constraints(lw.Weld("linktip")).rows
        6
    """
    return Closure(a, b, "fixed", **options)


@checked(a=NAME, b=NAME)
def Connect(a: str, b: str = "world", **options: Any) -> Closure:
    """The origin of `a` fixed to that of `b`, free to turn: three rows.

    Examples:
        >>> chain(6).with_constraints(lw.Connect("linktip", "link2")).rows
        3
    """
    return Closure(a, b, "spherical", **options)


@checked(a=NAME, b=NAME, axis=AXIS)
def Hinge(a: str, b: str = "world", axis: object = "z", **options: Any) -> Closure:
    """`a` may only turn about `axis` relative to `b`: five rows.

    Examples:
        >>> chain(6).with_constraints(lw.Hinge("linktip", "link2", axis="z")).rows
        5
    """
    return Closure(a, b, "revolute", axis, **options)


AXES = {"frame": "a", "world": "b"}
IN_AXES = choice("axes of a contact", AXES)


@checked(frame=NAME, axes=IN_AXES)
def point(frame: str, *, axes: str = "frame", **options: Any) -> Closure:
    """A point contact of a frame with the world: three rows, in the axes of the frame or of the world.

    Examples:
        >>> model = quadruped().with_constraints(lw.point("front_left_foot", axes="world"))
        >>> model.rows
        3
    """
    return Connect(frame, axes=AXES[axes], **options)


@checked(frame=NAME, axes=IN_AXES)
def surface(frame: str, *, axes: str = "frame", **options: Any) -> Closure:
    """A surface contact of a frame with the world: six rows, in the axes of the frame or of the world.

    Examples:
        >>> humanoid(hands=False).with_constraints(lw.surface("left_foot")).rows
        6
    """
    return Weld(frame, axes=AXES[axes], **options)
