"""Centre of mass and centroidal momentum: values, matrices and rates.

    h = [m cdot; k] = A(q) v,    k the angular momentum about the centre of mass c, in world axes
    A_i = [R f;  R n + (p - c) x R f],    [f; n] = I^c_i S_i,    R, p the axes and origin of link i in the world

Column i of A is the momentum of all that joint i carries when it moves alone: the same products I^c S as in the mass
matrix. The Jacobian of c is the upper half of A, divided by the mass. Orin, Goswami and Lee, "Centroidal dynamics of
a humanoid robot", 2013; composites in link frames instead of their matrices over the whole system. O(n).
"""

from __future__ import annotations

from linkwork.algorithms.tree.composites import composite_inertias
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.spatial import angular, linear


def centre_of_mass(motion: Motion) -> Array:
    """c in the world, 3 x 1, of all links and of what is fixed to the world."""
    return composite_inertias(motion)[0].h / total_mass(motion)


def total_mass(motion: Motion) -> Array | float:
    """The mass of all links and of what is fixed to the world."""
    return motion.model.mass if motion.given.inertias is None else composite_inertias(motion)[0].mass


def momentum(motion: Motion) -> Array:
    """Momentum [linear; angular about the world's origin] in world axes, 6 x 1: sum X_l^T I_l V_l."""
    return _gathered(motion, [I @ V for I, V in zip(motion.I, motion.V, strict=True)])


def centroidal_momentum(motion: Motion) -> Array:
    """h, 6 x 1."""
    return _about_centre(motion, momentum(motion))


def centroidal_matrix(motion: Motion) -> Array:
    """A, 6 x nv."""
    xp, Ic, c = motion.xp, composite_inertias(motion), centre_of_mass(motion)
    columns = [xp.zeros(6, 0)]
    for i in motion.model.topology.links:
        (R, p), F = motion.poses[i], Ic[i] @ motion.S[i]
        f = R @ linear(F)
        columns.append(xp.vstack([f, R @ angular(F) + xp.cross(p - c, f)]))
    return xp.hstack(columns)


def centroidal_rate(motion: Motion, vdot: Array | None) -> Array:
    """dh/dt, 6 x 1, for joint accelerations `vdot` (None: zero, which gives (dA/dt) v).

    The recursions' accelerations are those in free fall, less g: the forces for them lack the weight [m g; m c x g].
    """
    xp, g, mass = motion.xp, motion.gravity[0], total_mass(motion)
    a = motion.classical.accelerations(vdot)
    felt = _gathered(motion, [I @ x + I.bias(angular(V)) for I, x, V in zip(motion.I, a, motion.V, strict=True)])
    weight = xp.vstack([mass * g, xp.cross(mass * centre_of_mass(motion), g)])
    return _about_centre(motion, felt + weight)


def _gathered(motion: Motion, f: list[Array]) -> Array:
    """The sum of forces or momenta of all links, about the world's origin."""
    t, total = motion.model.topology, list(f)
    for i in reversed(t.links):
        total[t.parent[i]] = total[t.parent[i]] + motion.X[i].T @ total[i]
    return total[0]


def _about_centre(motion: Motion, f: Array) -> Array:
    """A force or momentum about the world's origin as one about the centre of mass."""
    xp = motion.xp
    return xp.vstack([linear(f), angular(f) - xp.cross(centre_of_mass(motion), linear(f))])
