"""Sweeps over the bodies of a cluster: accelerations outwards, forces and inertias inwards.

A cluster is a small mechanism on its output body. With IA of its bodies (all behind them included), the composite
rigid body algorithm gives the inertia H of its joints, the forces F on the output body that they cause, and the
inertia Ic of the output body with joints at rest.
"""

from __future__ import annotations

from linkwork.algorithms.common.hessian import Inertia, add
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import Cluster


def accelerations(motion: Motion, cluster: Cluster, a: Array, vdot: Array, drift: bool = False) -> dict[int, Array]:
    """Base to tips: accelerations of output body and bodies, with or without velocity products."""
    t = motion.model.topology
    out, joint = {cluster.output: a}, by_joint(motion, cluster, vdot)
    for i in cluster.bodies:
        out[i] = motion.X[i] @ out[t.parent[i]] + motion.S[i] @ joint[i]
        if drift:
            out[i] = out[i] + motion.c[i]
    return out


def forces(
    motion: Motion, cluster: Cluster, f: dict[int, Array], Q: dict[int, Array] | None = None
) -> tuple[Array, Array]:
    """Tips to base: forces on joints and output body due to forces on bodies (and joints)."""
    t, f = motion.model.topology, dict(f)
    columns = next(iter(f.values())).shape[1]
    felt, out = {}, motion.xp.zeros(6, columns)
    for i in reversed(cluster.bodies):
        felt[i] = motion.S[i].T @ f[i]
        if Q and i in Q:
            felt[i] = felt[i] + Q[i]
        if (p := t.parent[i]) in f:
            f[p] = f[p] + motion.X[i].T @ f[i]
        else:
            out = out + motion.X[i].T @ f[i]
    return motion.xp.vstack([motion.xp.zeros(0, columns), *(felt[i] for i in cluster.bodies)]), out


def composite(motion: Motion, cluster: Cluster, IA: dict[int, Inertia]) -> tuple[Array, Array, Inertia]:
    """Composite rigid bodies: H of the cluster's joints, forces F on the output body, Ic of all at rest."""
    xp, t, bodies = motion.xp, motion.model.topology, cluster.bodies
    Ic, at_output = dict(IA), list[Inertia]()
    H: dict[tuple[int, int], Array] = {}
    F: dict[int, Array] = {}
    for i in reversed(bodies):
        force, j = Ic[i] @ motion.S[i], i
        H[i, i] = xp.symmetric(motion.S[i].T @ force) + motion.armature(i)
        while (p := t.parent[j]) in IA:
            force, j = motion.X[j].T @ force, p
            H[i, p] = force.T @ motion.S[p]
            H[p, i] = H[i, p].T
        F[i] = motion.X[j].T @ force
        if (p := t.parent[i]) in IA:
            Ic[p] = add(Ic[p], motion.X[i].congruence(Ic[i]))
        elif p:
            at_output.append(motion.X[i].congruence(Ic[i]))
    nv = {i: motion.model.links[i].joint.nv for i in bodies}
    full = xp.vstack([xp.hstack([H[i, j] if (i, j) in H else xp.zeros(nv[i], nv[j]) for j in bodies]) for i in bodies])
    rest = at_output[0] if at_output else motion.I[0]
    for more in at_output[1:]:
        rest = add(rest, more)
    return full, xp.hstack([F[i] for i in bodies]), rest


def by_joint(motion: Motion, cluster: Cluster, x: Array) -> dict[int, Array]:
    """A column over the cluster's degrees of freedom, cut into joints."""
    out, start = {}, 0
    for i in cluster.bodies:
        stop = start + motion.model.links[i].joint.nv
        out[i], start = x[start:stop, :], stop
    return out


def armature(motion: Motion, cluster: Cluster) -> Array:
    """The rotor inertias of the cluster's joints, as a diagonal matrix."""
    xp, bodies = motion.xp, [i for i in cluster.bodies if motion.model.links[i].joint.nv]
    sizes = {i: motion.model.links[i].joint.nv for i in bodies}
    return xp.vstack(
        [xp.hstack([motion.armature(i) if i == j else xp.zeros(sizes[i], sizes[j]) for j in bodies]) for i in bodies]
    )
