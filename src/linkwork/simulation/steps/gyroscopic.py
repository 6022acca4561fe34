"""A semi-implicit step of joints that turn in space: forces change a momentum, then it is conserved.

Velocities of such joints are in axes that turn with the body, and so their rates hold gyroscopic terms, which add
energy to a fast motion if they are evaluated at the beginning of a step. So a step is split in two, with the inertia I
of the joint's subtree, as one rigid body in the neutral configuration:

    kick    L' = I w' = I w + h (I a + w x I w)              the effect of forces on the momentum, in the axes before
    drift   m = w' - h/2 I^-1 (m x I m)                      the mean velocity of the free body
            dR = Cay(h m),  R+ = R dR,  w+ = I^-1 dR^T L'    it turns, and its momentum is constant in space

For a single body the drift keeps the momentum to rounding, and its energy stays below |L|^2 / 2 I_min, whatever the
step. The equation for m gets one Newton step from w' (Kahan's discretisation of Euler's equations): the energy of a
body that turns by z rad in a step wavers by 3e-3 z^4. The centre of mass moves along a straight line. The action of
other links on the joint, and their departure from the neutral configuration, count as a force.

A constraint with something that the joint does not carry, as a contact with the ground, holds for v+ = v + h a in the
axes of the body and would not after a drift: such joints keep the plain step (`turns`).
"""

from __future__ import annotations

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.constraints import Closure, Coupling, Custom, Distance
from linkwork.joints import Free, Planar, Spherical
from linkwork.model import Model
from linkwork.model.neutral_subtrees import carried
from linkwork.spatial.rotations import quaternion_matrix, quaternion_normalised, quaternion_product

RELATIVE = (Closure, Coupling, Custom, Distance)
"""Constraints that are invariant under a common motion of all links that they touch."""

FLAT = 1e-9
"""Least principal moment, relative to the largest, of a body that can turn about all axes."""


def turns(model: Model, i: int) -> bool:
    """Whether joint i has a velocity in rotating axes and no constraint between its subtree and others."""
    if not isinstance(model.links[i].joint, Free | Planar | Spherical):
        return False
    carried = set(model.topology.subtrees[i])
    touched = [(isinstance(c, RELATIVE), c.touches(model)) for c in model.constraints]
    return all(carried.isdisjoint(links) or (relative and carried.issuperset(links)) for relative, links in touched)


def turned(model: Model, i: int, q: Array, v: Array, a: Array, h: Array, xp: Ops) -> tuple[Array, Array]:
    """Position and velocity of joint i after a step of h with the acceleration a."""
    joint, body = model.links[i].joint, carried(model)[i]
    if isinstance(joint, Spherical):
        turn, _, w = _kicked(_inertia(model, i), v, a, h, xp)
        return quaternion_normalised(quaternion_product(q, turn, xp), xp), w
    if isinstance(joint, Planar):
        return _planar(body.com, q, v, a, h, xp)
    return _free(_inertia(model, i), body.com, q, v, a, h, xp)


def turning(model: Model, v: Array, xp: Ops) -> Array:
    """The mean velocity over a step, in the axes before it, is v + h a plus h times this.

    To first order: w x v_c for the centre of mass of what a joint carries, which moves straight on, and
    I^-1 (w x I w) / 2 for w.
    """
    t, parts = model.topology, [xp.zeros(0)]
    for i in t.links:
        vi, joint, c = v[t.v_slices[i], :], model.links[i].joint, carried(model)[i].com
        if isinstance(joint, Free):
            w, c = vi[3:6, :], xp.constant(c)
            mean = _gyration(_inertia(model, i), w, xp) if turns(model, i) else xp.zeros(3)
            parts.append(xp.vstack([xp.cross(w, vi[0:3, :] + xp.cross(w, c)) + xp.cross(c, mean), mean]))
        elif isinstance(joint, Planar):
            w = vi[2, 0]
            parts.append(xp.matrix([[-w * (vi[1, 0] + w * float(c[0]))], [w * (vi[0, 0] - w * float(c[1]))], [0.0]]))
        elif isinstance(joint, Spherical) and turns(model, i):
            parts.append(_gyration(_inertia(model, i), vi, xp))
        else:
            parts.append(xp.zeros(t.v_slices[i].stop - t.v_slices[i].start))
    return xp.vstack(parts)


def _gyration(I: np.ndarray, w: Array, xp: Ops) -> Array:
    """I^-1 (w x I w) / 2."""
    return xp.constant(_tidy(np.linalg.inv(2 * I))) @ xp.cross(w, xp.constant(I) @ w)


def _inertia(model: Model, i: int) -> np.ndarray:
    """I of joint i: about its centre if it is spherical, about the centre of mass if it is free."""
    body, armature = carried(model)[i], np.diag(model.links[i].armature[-3:])
    return _invertible((body.about_origin if isinstance(model.links[i].joint, Spherical) else body.I) + armature)


def _free(I: np.ndarray, com: np.ndarray, q: Array, v: Array, a: Array, h: Array, xp: Ops) -> tuple[Array, Array]:
    """The centre of mass moves straight on, and the body turns about it."""
    c, w, turn = xp.constant(com), v[3:6, :], q[3:7, :]
    by, dR, after = _kicked(I, w, a[3:6, :], h, xp)
    straight = v[0:3, :] - xp.cross(c, w)
    straight = straight + h * (a[0:3, :] - xp.cross(c, a[3:6, :]) + xp.cross(w, straight))
    p = q[0:3, :] + quaternion_matrix(turn, xp) @ (h * straight + c - dR @ c)
    there = quaternion_normalised(quaternion_product(turn, by, xp), xp)
    return xp.vstack([p, there]), xp.vstack([dR.T @ straight + xp.cross(c, after), after])


def _kicked(I: np.ndarray, w: Array, a: Array, h: Array, xp: Ops) -> tuple[Array, Array, Array]:
    """Kick and drift of an angular velocity: by which quaternion the body turns, its matrix, and w+."""
    J, inverse = xp.constant(I), xp.constant(_tidy(np.linalg.inv(I)))
    spin = J @ w
    L = spin + h * (J @ a + xp.cross(w, spin))
    by, dR = _drift(I, inverse @ L, L, h, xp)
    return by, dR, inverse @ (dR.T @ L)


def _drift(I: np.ndarray, w: Array, L: Array, h: Array, xp: Ops) -> tuple[Array, Array]:
    """The rotation of a free body with the momentum L = I w, as a quaternion and as its matrix."""
    x = h * h * (w.T @ w)[0, 0] / 4
    half = h / 2 * (1 + x / 3 * (1 + x * (2 / 5)))  # tan(|h w| / 2) / |w|: exact for a steady spin
    slope = xp.constant(I) + half * (xp.cross(w, xp.constant(I)) - xp.cross(L, xp.eye(3)))
    mean = w - _solved(slope, half * xp.cross(w, L), xp)
    by = quaternion_normalised(xp.vstack([half * mean, xp.eye(1)]), xp)
    return by, quaternion_matrix(by, xp)


def _planar(com: np.ndarray, q: Array, v: Array, a: Array, h: Array, xp: Ops) -> tuple[Array, Array]:
    """In a plane: the spin stays, and the centre of mass moves straight on."""
    cx, cy = float(com[0]), float(com[1])
    w, wdot, c, s = v[2, 0], a[2, 0], q[2, 0], q[3, 0]
    vx, vy = v[0, 0] - w * cy, v[1, 0] + w * cx
    x = vx + h * (a[0, 0] - wdot * cy - w * vy)
    y = vy + h * (a[1, 0] + wdot * cx + w * vx)
    after = w + h * wdot
    dc, ds = xp.cos(h * after), xp.sin(h * after)
    dx, dy = h * x + cx - (dc * cx - ds * cy), h * y + cy - (ds * cx + dc * cy)
    there = xp.matrix([[q[0, 0] + c * dx - s * dy], [q[1, 0] + s * dx + c * dy], [c * dc - s * ds], [s * dc + c * ds]])
    speed = [[dc * x + ds * y + after * cy], [dc * y - ds * x - after * cx], [after]]
    return Planar().normalised(there, xp), xp.matrix(speed)


def _solved(A: Array, b: Array, xp: Ops) -> Array:
    """A^-1 b of a 3 x 3 matrix, by cross products."""
    x, y, z = (A[:, k : k + 1] for k in range(3))
    yz = xp.cross(y, z)
    rows = xp.hstack([yz, xp.cross(z, x), xp.cross(x, y)])
    return rows.T @ b / (x.T @ yz)[0, 0]


def _invertible(I: np.ndarray) -> np.ndarray:
    """The inertia to split a step with: any is valid; a ball's where this one is singular."""
    moments = np.linalg.eigvalsh(I)
    return _tidy(I) if moments[0] > FLAT * moments[-1] else np.eye(3)


def _tidy(I: np.ndarray) -> np.ndarray:
    """Entries within rounding of zero made exact, so that they fold away when traced."""
    return np.where(np.abs(I) < 1e-12 * np.abs(I).max(), 0.0, I)
