"""Joint forces that hold the mechanism against gravity.

    g(q) = c(q, 0),    g_i = -S_i^T [m g; h x g],    m, h mass and first moment of all that link i carries

in link coordinates: composites instead of the forces of `rnea`, because a first moment costs a third of a force to
move between frames. O(n).
"""

from __future__ import annotations

from linkwork.algorithms.tree.composites import composite_inertias
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.spatial import RigidInertia


def gravity_forces(motion: Motion) -> Array:
    """g, nv x 1, with M vdot + C v + g = tau."""
    xp, Ic, forces = motion.xp, pulled(motion), [motion.xp.zeros(0)]
    for i in motion.model.topology.links:
        g = motion.gravity[i]
        forces.append(-(motion.S[i].T @ xp.vstack([Ic[i].mass * g, xp.cross(Ic[i].h, g)])))
    return xp.vstack(forces)


def pulled(motion: Motion) -> list[RigidInertia]:
    """The composite inertias of what gravity pulls."""
    bodies = []
    for i, I in enumerate(motion.I):
        held = motion.weightless(i)
        bodies.append(I if held is None else RigidInertia(I.mass - held.mass, I.h - held.h, I.I, motion.xp))
    return composite_inertias(motion, bodies)
