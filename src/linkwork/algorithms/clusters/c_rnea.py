"""Inverse dynamics with local loops: the cluster-based recursive Newton-Euler algorithm.

    tau_ind = G^T (M vdot + c)        the forces of the independent joints alone that cause the motion

chignoli2023_clusters, section VI: the joint forces of each cluster are projected where they arise, O(n). (q, v, vdot)
satisfy the loops' constraints. Rotors are frozen (structure/rotor_lumping.py): the dynamics do not depend on their
angles.
"""

from __future__ import annotations

from linkwork.algorithms.common.embedding import embedding
from linkwork.algorithms.common.recursion import seen
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, clusters
from linkwork.structure.rotor_lumping import freeze_rotors


def c_rnea(motion: Motion, vdot: Array | None, fext: Array | None = None, applied: Array | None = None) -> Array:
    """Joint forces, nv x 1: those of independent joints, and zeros for the dependent ones."""
    xp, tree = motion.xp, clusters(motion.model)
    frozen = freeze_rotors(motion, tree) if fext is None else motion

    # both passes of the recursion: the force of each joint, as if all were independent
    tau = rnea(frozen, vdot, fext, applied)

    # each cluster projects the forces of its dependent joints onto its independent ones
    parts: dict[int, Array] = {}
    for c in tree.clusters:
        own = xp.vstack([xp.zeros(0), *(tau[k : k + 1, :] for k in c.dofs)])
        parts |= {(c.dofs[n]): xp.zeros(1) for n in c.dependent}
        ind = embedding(seen(motion, frozen, c), c).G.T @ own
        parts |= {c.dofs[n]: ind[m : m + 1, :] for m, n in enumerate(c.independent)}
    return xp.vstack([xp.zeros(0), *(parts[k] for k in sorted(parts))])


def spread(motion: Motion, tree: ClusterTree, y: Array) -> Array:
    """A column over independent velocities as one over all, with zeros for the dependent ones."""
    place = {int(v): n for n, v in enumerate(tree.velocities)}
    rows = [y[place[k] : place[k] + 1, :] if k in place else motion.xp.zeros(1) for k in range(motion.model.nv)]
    return motion.xp.vstack([motion.xp.zeros(0), *rows])
