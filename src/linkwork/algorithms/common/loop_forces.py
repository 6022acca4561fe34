"""Forces of the loops that a cluster embeds, from the forces on its dependent joints.

    K_D^T lam = S^T f - tau  over the dependent joints,     lam = P^T (S^T f - tau)

f is the force that each body and all behind it needs; P = K_D^+ as in the cluster's embedding. By articulated inertias
it follows from the cluster alone (`loop_forces`). Where these contain penalties, f would lose as many digits as these
have: then it is the sum of what bodies need by their own inertias, less the forces of penalised rows (`by_motion`).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.algorithms.common.cluster_node import ClusterNode
from linkwork.algorithms.common.cluster_sweeps import armature, forces
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows
from linkwork.model import Motion

Propagated = tuple[int, ConstraintRows, Array]
"""A constraint by its place, its rows, and their multipliers."""


def by_motion(
    motion: Motion,
    nodes: Sequence[ClusterNode],
    tau: Array,
    p: Sequence[Array],
    vdot: Array,
    outer: Sequence[tuple[ConstraintRows, Array]],
) -> dict[int, Array]:
    """lam of each constraint of some clusters, by constraint, from the equation of motion.

    `p` are the bodies' bias forces; `outer` are the rows, over links, of constraints in no cluster, and their forces.
    """
    if not nodes:
        return {}
    t, a = motion.model.topology, motion.accelerations(vdot)
    f = [I @ acceleration + b for I, acceleration, b in zip(motion.I, a, p, strict=True)]
    for rows, lam in outer:
        for i, K in rows.links.items():
            f[i] = f[i] - K.T @ lam
    for i in reversed(t.links):
        if t.parent[i]:
            f[t.parent[i]] = f[t.parent[i]] + motion.X[i].T @ f[i]
    out: dict[int, Array] = {}
    for node in nodes:
        bodies = [i for i in node.cluster.bodies if motion.model.links[i].joint.nv]
        own = motion.xp.vstack([vdot[k : k + 1, :] for k in node.cluster.dofs])
        felt = motion.xp.vstack([motion.S[i].T @ f[i] for i in bodies]) + armature(motion, node.cluster) @ own
        out |= _shared(motion, node, felt, tau)
    return out


def loop_forces(
    motion: Motion,
    node: ClusterNode,
    tau: Array,
    vdot: Array,
    a: list[Array],
    pA: list[Array],
    held: dict[int, dict[int, Array]],
    propagated: Sequence[Propagated],
) -> dict[int, Array]:
    """lam of each constraint of a cluster.

    `held` are forces of propagated rows on bodies; penalised rows are in pA and in the inertias already.
    """
    xp, c, lam = motion.xp, node.cluster, {k: y for k, _, y in propagated}
    f = node.needed(a, pA)
    for i, by_constraint in held.items():
        for k, KT in by_constraint.items():
            f[i] = f[i] - KT @ lam[k]
    own = xp.vstack([vdot[k : k + 1, :] for k in c.dofs])
    pull = {
        i: -sum((x.joints[i].T @ y for _, x, y in propagated if i in x.joints), xp.zeros(s))
        for i, s in ((i, motion.model.links[i].joint.nv) for i in c.bodies)
    }
    felt, _ = forces(motion, c, f, pull)
    return _shared(motion, node, felt + armature(motion, c) @ own, tau)


def _shared(motion: Motion, node: ClusterNode, felt: Array, tau: Array) -> dict[int, Array]:
    """lam of each constraint of a cluster, from the forces that its joints need."""
    xp, c = motion.xp, node.cluster
    force = felt - xp.vstack([tau[k : k + 1, :] for k in c.dofs])
    left = node.embedding.P.T @ xp.vstack([xp.zeros(0), *(force[d : d + 1, :] for d in c.dependent)])
    out: dict[int, Array] = {}
    for k in c.constraints:
        m = motion.model.constraints[k].rows
        out[k], left = left[0:m, :], left[m:, :]
    return out
