"""Kinematics: placements, velocities, Jacobians, centre of mass, momentum, energy.

Velocities of frames are spatial, [linear; angular] of the frame's origin in the frame's own axes; accelerations are
classical, without gravity.
"""

from __future__ import annotations

from linkwork.backends.ops import Array
from linkwork.constraints.closure import centripetal
from linkwork.constraints.rows import rows_jacobian
from linkwork.model import Frame, Motion
from linkwork.spatial import Transform
from linkwork.spatial.moves import constant_moves


def frame_transform(motion: Motion, frame: Frame) -> Transform:
    """From the coordinates of the frame's link to those of the frame."""
    return Transform.of(constant_moves(frame.placement.R, frame.placement.p, motion.xp), motion.xp)


def frame_placement(motion: Motion, frame: Frame) -> tuple[Array, Array]:
    """Axes R (3 x 3) and origin p (3 x 1) of a frame in the world."""
    return frame_transform(motion, frame).after(*motion.poses[frame.link])


def frame_velocity(motion: Motion, frame: Frame) -> Array:
    """V = [linear; angular], 6 x 1, in the frame's axes."""
    return frame_transform(motion, frame) @ motion.V[frame.link]


def frame_acceleration(motion: Motion, frame: Frame, vdot: Array) -> Array:
    """[acceleration of the origin; angular acceleration], 6 x 1, in the frame's axes, without gravity."""
    xp, X = motion.xp, frame_transform(motion, frame)
    felt = motion.classical.accelerations(vdot)[frame.link]
    true = felt + xp.vstack([motion.gravity[frame.link], xp.zeros(3)])
    return X @ true + xp.vstack([centripetal(motion, frame.link, X), xp.zeros(3)])


def frame_jacobian(motion: Motion, frame: Frame) -> Array:
    """J, 6 x nv, with V = J v."""
    K = (frame_transform(motion, frame).T @ motion.xp.eye(6)).T
    if frame.link == 0:
        return motion.xp.zeros(6, motion.model.nv)
    return rows_jacobian(motion, {frame.link: K}, {})


def centre_of_mass(motion: Motion) -> Array:
    """The centre of mass in the world, 3 x 1: sum (m_l p_l + R_l h_l) / m."""
    total = motion.xp.constant(motion.model.links[0].inertia.first_moment)
    for l in motion.model.topology.links:
        (R, p), body = motion.poses[l], motion.model.links[l].inertia
        total = total + (body.mass * p + R @ motion.xp.constant(body.first_moment))
    return total / motion.model.mass


def momentum(motion: Motion) -> Array:
    """Momentum [linear; angular about the world's origin] in world axes, 6 x 1: sum X_l^T I_l V_l."""
    t, h = motion.model.topology, [I @ V for I, V in zip(motion.I, motion.V, strict=True)]
    for i in reversed(t.links):
        h[t.parent[i]] = h[t.parent[i]] + motion.X[i].T @ h[i]
    return h[0]


def kinetic_energy(motion: Motion) -> Array:
    """1/2 sum V_l^T I_l V_l, rotors (armature) included, 1 x 1."""
    total = motion.xp.zeros(1)
    for l in motion.model.topology.links:
        v = motion.joint_v(l)
        total = total + motion.V[l].T @ (motion.I[l] @ motion.V[l]) + v.T @ (motion.armature(l) @ v)
    return total / 2


def potential_energy(motion: Motion) -> Array:
    """-m g^T c of all that gravity pulls, zero at the world's origin, 1 x 1."""
    g = motion.xp.constant(motion.model.gravity)
    energy = -motion.model.mass * (g.T @ centre_of_mass(motion))
    for l in motion.model.topology.links:
        (R, p), held = motion.poses[l], motion.model.links[l].weightless
        if held.mass:
            energy = energy + g.T @ (held.mass * p + R @ motion.xp.constant(held.first_moment))
    return energy
