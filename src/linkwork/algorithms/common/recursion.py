"""The articulated body recursion over a cluster tree.

    IA_i = I_i + sum over clusters on body i of Ia          (cluster_node.py: Ia = Ic - U D^-1 U^T at the output body)

Constraints that are in no cluster are either penalised, which couples links (hessian.py), so that nodes are eliminated
in an order of few neighbours; or they are propagated by the PV recursion (algorithms/common/dual.py): eliminating an
independent velocity changes K, l and L as eliminating a joint does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from linkwork.algorithms.common.activation import over_links
from linkwork.algorithms.common.cluster_node import ClusterNode, cluster_node
from linkwork.algorithms.common.embedding import embedding
from linkwork.algorithms.common.hessian import Hessian
from linkwork.algorithms.common.link_node import LinkNode, link_node
from linkwork.algorithms.common.nodes import accumulate
from linkwork.algorithms.common.supports import Known
from linkwork.backends.ops import Array
from linkwork.constraints import Coupling, Custom
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.model import Motion
from linkwork.structure.clusters import Cluster, ClusterTree
from linkwork.structure.elimination import ordered
from linkwork.structure.rotor_lumping import freeze_rotors


@dataclass(frozen=True)
class Recursion:
    """A cluster tree in some state, its nodes in order of elimination, and the penalised rows."""

    motion: Motion
    tree: ClusterTree
    nodes: list[LinkNode | ClusterNode]
    rows: list[ConstraintRows]

    def drive(self, tau: Array, p: list[Array]) -> tuple[list[list[Array]], list[Array]]:
        """Tips to base: the force left on each freedom, and the bias force of each link and all behind it."""
        pA, u = list(p), list[list[Array]]()
        for node in self.nodes:
            joint = self.motion.xp.vstack([tau[0:0, :], *(tau[k : k + 1, :] for k in node.cluster.dofs)])
            left, passed = node.drive(joint, pA)
            u.append(left)
            for n, f in passed.items():
                pA[n] = pA[n] + f
        return u, pA

    @property
    def at_rest(self) -> Recursion:
        """The same without velocities and gravity: its sweeps give what forces add."""
        return replace(self, motion=self.motion.at_rest, nodes=[node.at_rest for node in self.nodes])

    def accelerate(self, u: list[list[Array]], known: Known | None = None) -> tuple[Array, list[Array]]:
        """Base to tips: joint accelerations, and accelerations of all links; those of some may be known."""
        a = [self.motion.a0] * len(self.motion.model.links)
        rows: dict[int, Array] = {}
        for node, uk in zip(reversed(self.nodes), reversed(u), strict=True):
            vdot, moved = accelerated(node, uk, a, known)
            for i in node.cluster.bodies:
                a[i] = moved[i]
            rows |= {k: vdot[n : n + 1, :] for n, k in enumerate(node.cluster.dofs)}
        return self.motion.xp.vstack([self.motion.xp.zeros(0), *(rows[k] for k in sorted(rows))]), a


def accelerated(
    node: LinkNode | ClusterNode, u: list[Array], a: list[Array], known: Known | None
) -> tuple[Array, dict[int, Array]]:
    """Accelerations of a node's joints and bodies: what is known of them, or what follows from u and a."""
    bodies = node.cluster.bodies
    if known is None or bodies[0] not in known:
        return node.accelerate(u, a)
    return node.motion.xp.vstack([known[i][0] for i in bodies]), {i: known[i][1] for i in bodies}


def recursion(
    motion: Motion, tree: ClusterTree, fext: Array | None = None, penalties: Sequence[Array] | None = None
) -> Recursion:
    """Tips to base: inertias and couplings, with `penalties` or without.

    Penalties are those on constraints that are in no cluster. Rotors are frozen, unless external forces are given in
    their axes.
    """
    frozen = freeze_rotors(motion, tree) if fext is None else motion
    rows = [] if penalties is None else [over_links(frozen, r) for r in outer_rows(frozen, tree)]
    H = Hessian(frozen, rows, penalties or ())
    order = ordered(frozen.model.topology, [tuple(r.links) for r in rows], nodes=tree.clusters)
    by_first = {c.bodies[0]: c for c in tree.clusters}
    nodes: list[LinkNode | ClusterNode] = []
    for first in order.order if rows else reversed(by_first):
        node = node_of(motion, frozen, by_first[first], H, order.neighbours[first])
        H.eliminate(node)
        nodes.append(node)
    return Recursion(frozen, tree, nodes, rows)


def node_of(
    motion: Motion, frozen: Motion, c: Cluster, H: Hessian, near: tuple[int, ...] = ()
) -> LinkNode | ClusterNode:
    """A cluster or a single link, with its freedoms eliminated; H itself does not change."""
    if c.constraints:
        return cluster_node(frozen, c, embedding(seen(motion, frozen, c), c), H, near)
    return link_node(frozen, c, H, near)


def seen(motion: Motion, frozen: Motion, c: Cluster) -> Motion:
    """The motion to evaluate a cluster's rows in: only rows over joints depend on angles of rotors."""
    over_joints = (isinstance(motion.model.constraints[n], Coupling | Custom) for n in c.constraints)
    return motion if any(over_joints) else frozen


@dataclass
class Held:
    """Outer constraints at the world: L lam = l; pushes on freedoms by node; forces by constraint."""

    l: list[Array]
    L: dict[tuple[int, int], Array]
    pushes: list[dict[int, list[Array]]] = field(default_factory=list)
    forces: list[dict[int, dict[int, Array]]] = field(default_factory=list)


def outer_rows(motion: Motion, tree: ClusterTree) -> list[ConstraintRows]:
    """The rows of the constraints that are in no cluster."""
    return constraint_rows(motion, tree.outer)


def hold(r: Recursion, rows: list[ConstraintRows], u: list[list[Array]]) -> Held:
    """Tips to base: L, l of some constraints with all freedoms eliminated."""
    motion, xp = r.motion, r.motion.xp
    out = Held([x.k for x in rows], {(c, c): xp.zeros(x.k.shape[0], x.k.shape[0]) for c, x in enumerate(rows)})
    at: dict[int, dict[int, Array]] = {}
    for c, x in enumerate(rows):
        for i, K in x.links.items():
            at.setdefault(i, {})[c] = K.T
    for node, uk in zip(r.nodes, u, strict=True):
        bodies, output = node.cluster.bodies, node.cluster.output
        forces = {i: at.pop(i) for i in bodies if i in at}
        joints = {c: {i: x.joints[i].T for i in bodies if i in x.joints} for c, x in enumerate(rows)}
        pushes: dict[int, list[Array]] = {}
        touched = sorted({c for f in forces.values() for c in f} | {c for c, Q in joints.items() if Q})
        for c in touched:
            F = {i: f[c] for i, f in forces.items() if c in f}
            pushes[c], felt, power = node.propagate(F, joints[c])
            out.l[c] = out.l[c] - power
            accumulate(at.setdefault(output, {}), c, felt[output])
        for k, d_inv in enumerate(node.pivots):
            for c in pushes:
                scaled = d_inv * pushes[c][k]
                out.l[c] = out.l[c] - scaled.T @ uk[k]
                for e in pushes:
                    if e >= c:
                        new = xp.symmetric(scaled.T @ pushes[c][k]) if c == e else scaled.T @ pushes[e][k]
                        out.L[c, e] = out.L[c, e] + new if (c, e) in out.L else new
        out.pushes.append(pushes)
        out.forces.append(forces)
    for c, KT in at.get(0, {}).items():
        out.l[c] = out.l[c] - KT.T @ motion.a0
    return out
