"""Kinematics of frames: placements, velocities, accelerations, Jacobians, in three references.

    V = J v,    dV/dt = J vdot + (dJ/dt) v,    V = [linear; angular]

The linear part of V is the velocity of the point of the link that is now at the reference's origin:

    reference        origin       axes          is the derivative of
    "local"          the frame's  the frame's
    "world"          the world's  the world's
    "world_aligned"  the frame's  the world's   the frame's position

With R, p the axes and origin of link i in the reference (and its axes), joint i adds the columns

    J_i = [R S_lin + p x (R S_ang);  R S_ang] .

O(d) a frame, d the depth of its link.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwork.backends.ops import Array
from linkwork.model import Frame, Motion
from linkwork.spatial import Transform, angular, linear
from linkwork.spatial.transforms import Translate, constant_moves

REFERENCES = ("local", "world", "world_aligned")
Pose = tuple[Array, Array]


def frame_transform(motion: Motion, frame: Frame) -> Transform:
    """From the coordinates of the frame's link to those of the frame."""
    return Transform.of(constant_moves(frame.placement.R, frame.placement.p, motion.xp), motion.xp)


def frame_placement(motion: Motion, frame: Frame) -> Pose:
    """Axes R (3 x 3) and origin p (3 x 1) of a frame in the world."""
    return frame_transform(motion, frame).after(*motion.poses[frame.link])


def frame_velocity(motion: Motion, frame: Frame, reference: str = "local") -> Array:
    """V, 6 x 1."""
    return seen(motion, frame, reference)(motion.V[frame.link])


def frame_acceleration(
    motion: Motion, frame: Frame, vdot: Array | None, reference: str = "local", classical: bool = False
) -> Array:
    """dV/dt, 6 x 1, for joint accelerations `vdot` (None: zero, which gives (dJ/dt) v).

    Gravity is not in it.

    In "local" and "world" that is the spatial acceleration. With `classical` the linear part is the acceleration of the
    point instead, w x v more, as it always is in "world_aligned".
    """
    xp, l, view = motion.xp, frame.link, seen(motion, frame, reference)
    felt = motion.classical.accelerations(vdot)[l]
    V, zero = motion.V[l], xp.zeros(3)
    a = view(felt + xp.vstack([motion.gravity[l] - xp.cross(angular(V), linear(V)), zero]))
    if classical or reference == "world_aligned":
        V = view(V)
        a = a + xp.vstack([xp.cross(angular(V), linear(V)), zero])
    return a


def frame_jacobian(motion: Motion, frame: Frame, reference: str = "local") -> Array:
    """J, 6 x nv, with V = J v."""
    t, xp, J = motion.model.topology, motion.xp, {}
    for i, pose in _poses(motion, frame, reference).items():
        J[i] = moved(pose, motion.S[i], motion)
    sizes = {i: t.v_slices[i].stop - t.v_slices[i].start for i in t.links}
    return xp.hstack([xp.zeros(6, 0), *(J[i] if i in J else xp.zeros(6, n) for i, n in sizes.items())])


def seen(motion: Motion, frame: Frame, reference: str) -> Callable[[Array], Array]:
    """The function that takes motions (6 x k) from the coordinates of the frame's link to the reference."""
    if reference == "local":
        return lambda m: frame_transform(motion, frame) @ m
    R, p = motion.poses[frame.link]
    if reference == "world":
        return lambda m: moved((R, p), m, motion)
    at_frame = Translate(motion.xp.constant(frame.placement.p), motion.xp)
    return lambda m: moved((R, motion.xp.zeros(3)), at_frame.motion(m), motion)


def moved(pose: Pose, m: Array, motion: Motion) -> Array:
    """Motions (6 x k) of a link as motions in a frame in which its axes and origin are R and p."""
    (R, p), xp = pose, motion.xp
    w = R @ angular(m)
    return xp.vstack([R @ linear(m) + xp.cross(p, w), w])


def _poses(motion: Motion, frame: Frame, reference: str) -> dict[int, Pose]:
    """Axes and origin, in the reference, of each link that carries the frame."""
    support = motion.model.topology.supports[frame.link]
    if reference != "local":
        origin = frame_placement(motion, frame)[1] if reference == "world_aligned" else motion.xp.zeros(3)
        return {i: (motion.poses[i][0], motion.poses[i][1] - origin) for i in support}
    # from the frame to the base, which needs no pose in the world
    pose, out = frame_transform(motion, frame).before(motion.xp.eye(3), motion.xp.zeros(3)), {}
    for i in reversed(support):
        out[i] = pose
        pose = motion.X[i].before(*pose)
    return out
