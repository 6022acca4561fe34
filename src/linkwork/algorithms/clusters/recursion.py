"""The articulated body recursion over a cluster tree: inertias, forces and constraints to the base, and back.

    IA_i = I_i + sum over clusters on body i of Ia          (nodes.py: Ia = Ic - U D^-1 U^T at the output body)

Constraints that are in no cluster are carried along by the PV recursion (algorithms/constrained/dual.py): eliminating
an independent velocity changes K, l and L as eliminating a joint does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from linkwork.algorithms.clusters.nodes import Inertia, Loop, Single, add, loop, single
from linkwork.backends.ops import Array
from linkwork.constraints import Coupling, Custom
from linkwork.constraints.clusters import Cluster, ClusterTree, clusters, embedding
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia

Added = Callable[[Motion, ClusterTree], Mapping[int, ArticulatedInertia]]
"""Inertias that constraints lend to links, from the motion that the recursion sees."""


@dataclass(frozen=True)
class Recursion:
    """A cluster tree in some state, with the articulated inertias of its nodes, from the base to the tips."""

    motion: Motion
    tree: ClusterTree
    nodes: list[Single | Loop]
    IA: dict[int, Inertia]

    def drive(self, tau: Array, p: list[Array]) -> tuple[list[list[Array]], list[Array]]:
        """Tips to base: the force left to move each freedom, and the bias force of each link and all behind it."""
        pA, u = list(p), [list[Array]() for _ in self.nodes]
        for n, node in reversed(list(enumerate(self.nodes))):
            c = node.cluster
            joint = self.motion.xp.vstack([tau[0:0, :], *(tau[k : k + 1, :] for k in c.dofs)])
            u[n], at_output = node.drive(joint, {i: pA[i] for i in c.bodies})
            if c.output:
                pA[c.output] = pA[c.output] + at_output
        return u, pA

    def accelerate(self, u: list[list[Array]]) -> tuple[Array, list[Array]]:
        """Base to tips: joint accelerations, and accelerations of all links."""
        a = [self.motion.a0] * len(self.motion.model.links)
        rows: dict[int, Array] = {}
        for node, uk in zip(self.nodes, u, strict=True):
            vdot, moved = node.accelerate(uk, a[node.cluster.output])
            for i in node.cluster.bodies:
                a[i] = moved[i]
            rows |= {k: vdot[n : n + 1, :] for n, k in enumerate(node.cluster.dofs)}
        return self.motion.xp.vstack([self.motion.xp.zeros(0), *(rows[k] for k in sorted(rows))]), a


def recursion(motion: Motion, fext: Array | None = None, added: Added | None = None) -> Recursion:
    """Tips to base: inertias, with those that `added` gives for some links.

    Rotors are not turned, unless external forces are given in their axes.
    """
    tree = clusters(motion.model)
    still = tree.stilled(motion) if fext is None else motion
    IA: dict[int, Inertia] = dict(enumerate(still.I))
    for i, extra in (added(still, tree) if added else {}).items():
        IA[i] = add(IA[i], extra)
    nodes: list[Single | Loop] = []
    for c in reversed(tree.clusters):
        held = {i: IA[i] for i in c.bodies}
        node = loop(still, c, embedding(seen(motion, still, c), c), held) if c.constraints else single(
            still, c, held[c.bodies[0]])
        if c.output:
            IA[c.output] = add(IA[c.output], node.Ia)
        nodes.insert(0, node)
    return Recursion(still, tree, nodes, IA)


def seen(motion: Motion, still: Motion, c: Cluster) -> Motion:
    """What a cluster's rows are evaluated on: only those over joints ask for the true angles of rotors."""
    over_joints = (isinstance(motion.model.constraints[n], Coupling | Custom) for n in c.constraints)
    return motion if any(over_joints) else still


@dataclass
class Held:
    """Outer constraints carried to the world: L lam = l; pushes on freedoms by node; forces on bodies by constraint."""

    l: list[Array]
    L: dict[tuple[int, int], Array]
    pushes: list[dict[int, list[Array]]] = field(default_factory=list)
    forces: list[dict[int, dict[int, Array]]] = field(default_factory=list)


def outer_rows(motion: Motion, tree: ClusterTree) -> list[ConstraintRows]:
    """The rows of the constraints that are in no cluster."""
    wanted = tuple(motion.model.constraints[n] for n in tree.outer)
    return constraint_rows(replace(motion, model=replace(motion.model, constraints=wanted)))


def hold(r: Recursion, rows: list[ConstraintRows], u: list[list[Array]]) -> Held:
    """Tips to base: L, l of some constraints with all freedoms eliminated."""
    motion, xp = r.motion, r.motion.xp
    out = Held([x.k for x in rows], {(c, c): xp.zeros(x.k.shape[0], x.k.shape[0]) for c, x in enumerate(rows)})
    at: dict[int, dict[int, Array]] = {}
    for c, x in enumerate(rows):
        for i, K in x.links.items():
            at.setdefault(i, {})[c] = K.T
    for node, uk in zip(reversed(r.nodes), reversed(u), strict=True):
        bodies, output = node.cluster.bodies, node.cluster.output
        forces = {i: at.pop(i) for i in bodies if i in at}
        joints = {c: {i: x.joints[i].T for i in bodies if i in x.joints} for c, x in enumerate(rows)}
        pushes: dict[int, list[Array]] = {}
        touched = sorted({c for f in forces.values() for c in f} | {c for c, Q in joints.items() if Q})
        for c in touched:
            F = {i: f[c] for i, f in forces.items() if c in f}
            pushes[c], felt, power = node.carry(F, joints[c])
            out.l[c] = out.l[c] - power
            beyond = at.setdefault(output, {})
            beyond[c] = beyond[c] + felt if c in beyond else felt
        for k, d_inv in enumerate(node.pivots):
            for c in pushes:
                scaled = d_inv * pushes[c][k]
                out.l[c] = out.l[c] - scaled.T @ uk[k]
                for e in pushes:
                    if e >= c:
                        new = xp.symmetric(scaled.T @ pushes[c][k]) if c == e else scaled.T @ pushes[e][k]
                        out.L[c, e] = out.L[c, e] + new if (c, e) in out.L else new
        out.pushes.insert(0, pushes)
        out.forces.insert(0, forces)
    for c, KT in at.get(0, {}).items():
        out.l[c] = out.l[c] - KT.T @ motion.a0
    return out
