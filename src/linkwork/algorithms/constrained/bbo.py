"""Closed loops by carried multipliers that go at the root of their loop: Brandl, Johanni and Otter; Bae and Haug.

The rows of a loop travel from both its ends towards the base as in `pv`. At the loop's root i they have met, and
L lam = l - K a_i is solved for them on the spot (R: the rows that go, U: others that they are coupled with):

    H_ii <- H_ii + K_R^T L_RR^-1 K_R,     p_i <- p_i - K_R^T L_RR^-1 l_R,
    (K_U, l_U, L_UU) <- (K_U, l_U, L_UU) - L_UR L_RR^-1 (K_R, l_R, L_RU) .

sathya2025_lcaba_proxbbo, algorithm 4 (eq. 46e is a decrement) with 1/mu = 0: rows must be independent (else NaN).
Contacts with the world go at the world, or at a free base where several limbs meet, as in eq. 49 of sathya2023_pv_lqr.
O(n + m) for loops that are not coupled; any number of links and joints per row. What rows travel through is a joint
with its link, or a cluster (algorithms/common/nodes.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linkwork.algorithms.clusters.c_aba import in_order, loop_forces
from linkwork.algorithms.common.cluster_node import ClusterNode
from linkwork.algorithms.common.hessian import Hessian, articulated
from linkwork.algorithms.common.link_node import LinkNode
from linkwork.algorithms.common.nodes import accumulate
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.algorithms.common.recursion import node_of
from linkwork.algorithms.common.weights import left_over, met, over_links
from linkwork.algorithms.constrained.constrained_aba import split
from linkwork.backends.ops import SINGULAR, Array, Factor
from linkwork.constraints.rows import ConstraintRows, constraint_rows, holders
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, links_alone
from linkwork.structure.elimination import loop_roots
from linkwork.structure.pivots import Mixture


def bbo(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    rows = constraint_rows(motion)
    loops = CarriedLoops(motion, links_alone(motion.model), rows, damping=None)
    vdot, lam, a = loops.solve(tau, motion.bias(fext), [r.k for r in rows])
    return vdot + met(motion, *left_over(motion, [over_links(motion, r) for r in rows], a))[0, 0], lam


@dataclass(frozen=True)
class Root:
    """Rows R that went at one link: factor of L_RR, K_R, Y = L_RR^-1 K_R, and for others L_RU and L_RR^-1 L_RU."""

    which: list[int]
    factor: Factor
    K: Array
    Y: Array
    others: dict[int, tuple[Array, Array]]


@dataclass(frozen=True)
class Passed:
    """A node that rows went through: its forces on bodies, pushes on its freedoms, and power, by row."""

    node: LinkNode | ClusterNode
    forces: dict[int, dict[int, Array]]
    pushes: dict[int, list[Array]]
    power: dict[int, Array]


class CarriedLoops:
    """Everything that does not depend on forces: inertias, carried rows, and factors at the loops' roots.

    `motion` is that of the true joint angles, `still` the one of the recursion, in which rotors are not turned. `mix`
    says which rows (by place in `rows`) go where; those that it penalises are in H instead (mixed.py).
    """

    def __init__(
        self,
        motion: Motion,
        tree: ClusterTree,
        rows: list[ConstraintRows],
        damping: Sequence[Array] | None = None,
        still: Motion | None = None,
        mix: Mixture | None = None,
    ) -> None:
        self.motion, self.tree, self.rows = still or motion, tree, rows
        xp, links = motion.xp, range(len(motion.model.links))
        if mix is None:
            ends = loop_roots(
                motion.model, [holders(motion.model, r) for r in rows], [r.k.shape[0] for r in rows], tree.clusters
            )
            mix = Mixture(frozenset(), dict(enumerate(ends)), tuple((c, ()) for c in reversed(tree.clusters)))
        self.penalised = {c: over_links(self.motion, rows[c]) for c in sorted(mix.penalised)}
        self.damped = damping is not None
        self.weight = {} if damping is None else {c: 1 / damping[c] for c in self.penalised}
        self.H = Hessian(self.motion, list(self.penalised.values()), list(self.weight.values()))
        self.KT: list[dict[int, Array]] = [{} for _ in links]
        self.L: dict[tuple[int, int], Array] = {}
        self.lost: dict[int, Array] = {}
        self.passed: list[Passed] = []
        self.roots: dict[int, Root] = {}
        for c in mix.ends:
            m = rows[c].k.shape[0]
            self.L[c, c] = xp.zeros(m, m) if damping is None else damping[c] * xp.eye(m)
            for i, K in rows[c].links.items():
                self.KT[i][c] = K.T

        # tips to base: rows go at their roots, nodes are eliminated, the rest moves on
        for cluster, near in mix.order:
            for i in reversed(cluster.bodies):
                self._resolve_at(i, mix.ends)
            node = node_of(motion, self.motion, cluster, self.H, near)
            self.H.eliminate(node)
            self._pass(node)
        self._resolve_at(0, mix.ends)

    def _resolve_at(self, i: int, ends: Mapping[int, int]) -> None:
        if here := [c for c, end in ends.items() if end == i]:
            self.roots[i] = self._resolve(i, here)

    def _block(self, c: int, d: int) -> Array:
        return self.L[c, d] if c <= d else self.L[d, c].T

    def _coupled(self, c: int, d: int) -> bool:
        return (min(c, d), max(c, d)) in self.L

    def _add(self, c: int, d: int, B: Array) -> None:
        key, B = ((c, d), B) if c <= d else ((d, c), B.T)
        self.L[key] = self.L[key] + B if key in self.L else B

    def _least(self, which: list[int]) -> Array | None:
        """What pivots of undamped rows are at least; what was taken out of them before leaves rounding, too."""
        if self.damped:
            return None
        lost = [self.lost.get(c, 0.0 * self.rows[c].k) for c in which]
        return least_pivots(self.motion, [self.tree.outer[c] for c in which]) + SINGULAR * self.motion.xp.vstack(lost)

    def _resolve(self, i: int, which: list[int]) -> Root:
        """Solve for rows that have met at link i, and take them out of everything they touch."""
        xp, held = self.motion.xp, self.KT[i]
        size = {c: self.rows[c].k.shape[0] for c in which}
        L = xp.vstack(
            [
                xp.hstack([self._block(c, d) if self._coupled(c, d) else xp.zeros(size[c], size[d]) for d in which])
                for c in which
            ]
        )
        factor = xp.factor_spd(L, self._least(which))
        K = xp.hstack([held.pop(c) if c in held else xp.zeros(6, size[c]) for c in which]).T
        Y = factor.solve(K)
        rest = [d for d in range(len(self.rows)) if d not in which and any(self._coupled(c, d) for c in which)]
        others: dict[int, tuple[Array, Array]] = {}
        for d in rest:
            n = self.rows[d].k.shape[0]
            LRd = xp.vstack([self._block(c, d) if self._coupled(c, d) else xp.zeros(size[c], n) for c in which])
            others[d] = (LRd, factor.solve(LRd))
            held[d] = held[d] - (LRd.T @ Y).T if d in held else -(LRd.T @ Y).T
        for n, d in enumerate(rest):
            for e in rest[n:]:
                cross = -(others[d][0].T @ others[e][1])
                self._add(d, e, xp.symmetric(cross) if d == e else cross)
                if d == e:
                    lost = xp.vstack([-cross[r : r + 1, r : r + 1] for r in range(cross.shape[0])])
                    self.lost[d] = self.lost[d] + lost if d in self.lost else lost
        for c in which:
            for d in range(len(self.rows)):
                self.L.pop((min(c, d), max(c, d)), None)
        if i:
            self.H.own[i] = articulated(self.H.own[i]).minus(-K.T, Y.T)
        return Root(which, factor, K, Y, others)

    def _pass(self, node: LinkNode | ClusterNode) -> None:
        """Eliminate a node's freedoms: e^T of each row that they move."""
        xp, bodies = self.motion.xp, node.cluster.bodies
        forces = {i: self.KT[i] for i in bodies if self.KT[i]}
        joints = {c: {i: r.joints[i].T for i in bodies if i in r.joints} for c, r in self._carried()}
        moved = sorted({c for held in forces.values() for c in held} | {c for c, Q in joints.items() if Q})
        pushes: dict[int, list[Array]] = {}
        power: dict[int, Array] = {}
        for c in moved:
            F = {i: held[c] for i, held in forces.items() if c in held}
            pushes[c], felt, power[c] = node.carry(F, joints[c])
            for n, KT in felt.items():
                accumulate(self.KT[n], c, KT)
        for k, d_inv in reversed(list(enumerate(node.pivots))):
            for n, c in enumerate(moved):
                scaled = d_inv * pushes[c][k]
                for d in moved[n:]:
                    new = scaled.T @ pushes[d][k]
                    self._add(c, d, xp.symmetric(new) if c == d else new)
        self.passed.append(Passed(node, forces, pushes, power))

    def _carried(self) -> list[tuple[int, ConstraintRows]]:
        return [(c, r) for c, r in enumerate(self.rows) if c not in self.penalised]

    def solve(self, tau: Array, p: list[Array], l: list[Array]) -> tuple[Array, Array, list[Array]]:
        """Joint accelerations, multipliers and link accelerations for joint forces, bias forces, right-hand sides."""
        motion, xp = self.motion, self.motion.xp
        p, l = list(p), list(l)
        for c, r in self.penalised.items():
            l[c] = l[c] + (r.k - self.rows[c].k)  # written over links, rows over joints have another k
            for i, K in r.links.items():
                p[i] = p[i] - K.T @ (self.weight[c] * l[c])
        u: list[list[Array]] = []
        y: dict[int, Array] = {}

        def right_side(i: int) -> None:
            if root := self.roots.get(i):
                y[i] = root.factor.solve(xp.vstack([l[c] for c in root.which]))
                p[i] = p[i] - root.K.T @ y[i]
                for d, (LRd, _) in root.others.items():
                    l[d] = l[d] - LRd.T @ y[i]

        # tips to base: forces and right-hand sides
        for x in self.passed:
            for i in reversed(x.node.cluster.bodies):
                right_side(i)
            joint = xp.vstack([tau[0:0, :], *(tau[k : k + 1, :] for k in x.node.cluster.dofs)])
            left, beyond = x.node.drive(joint, p)
            u.append(left)
            for n, f in beyond.items():
                p[n] = p[n] + f
            for c, e in x.pushes.items():
                for k, d_inv in reversed(list(enumerate(x.node.pivots))):
                    l[c] = l[c] - e[k].T @ (d_inv * left[k])
                l[c] = l[c] - x.power[c]
        right_side(0)

        # base to tips: accelerations, and the multipliers that they decide
        a, vdot, lam = [motion.a0] * len(p), dict[int, Array](), list(l)

        def multipliers(i: int) -> None:
            if root := self.roots.get(i):
                found = y[i] - root.Y @ a[i]
                for d, (_, Yd) in root.others.items():
                    found = found - Yd @ lam[d]
                for c, part in zip(root.which, split(found, [self.rows[c] for c in root.which]), strict=True):
                    lam[c] = part

        multipliers(0)
        for x, uk in zip(reversed(self.passed), reversed(u), strict=True):
            pushed = [sum((e[k] @ lam[c] for c, e in x.pushes.items()), uk[k]) for k in range(len(uk))]
            found, moved = x.node.accelerate(pushed, a)
            vdot |= {k: found[n : n + 1, :] for n, k in enumerate(x.node.cluster.dofs)}
            for i in x.node.cluster.bodies:
                a[i] = moved[i]
                multipliers(i)
        for c, r in self.penalised.items():
            lam[c] = self.weight[c] * (l[c] - sum((K @ a[i] for i, K in r.links.items()), xp.zeros(l[c].shape[0])))
        everything = xp.vstack([xp.zeros(0), *(vdot[k] for k in sorted(vdot))])
        forces = dict(zip(self.tree.outer, lam, strict=True))
        carried = [(c, r, lam[c]) for c, r in self._carried()]
        for x in self.passed:
            if isinstance(x.node, ClusterNode):
                forces |= loop_forces(motion, x.node, tau, everything, a, p, x.forces, carried)
        return everything, in_order(motion, forces), a
