"""Rows propagated from the links that they hold to their loop root, and eliminated there.

Eliminating a node (nodes.py) propagates K to its output body and neighbours, and adds to L, with e = K S by freedom

    K_p <- K_p + K P^T,    L <- L + e d^-1 e^T .

At the root i of their loop the rows R are eliminated themselves; U are the others that they are coupled with:

    (K_U, L_UU) <- (K_U, L_UU) - L_UR L_RR^-1 (K_R, L_RU)          (and H_ii <- H_ii + K_R^T L_RR^-1 K_R)

sathya2025_lcaba_proxbbo, eqs. 42-46 (46e is a decrement). Only blocks of coupled constraints are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from linkwork.algorithms.common.cluster_node import ClusterNode
from linkwork.algorithms.common.columns import split
from linkwork.algorithms.common.link_node import LinkNode
from linkwork.algorithms.common.nodes import accumulate
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.backends.ops import SINGULAR, Array, Factor
from linkwork.constraints.rows import ConstraintRows
from linkwork.model import Motion


@dataclass(frozen=True)
class Root:
    """Rows R eliminated at a link: factor of L_RR, K_R, Y = L_RR^-1 K_R; of others L_RU, L_RR^-1 L_RU."""

    rows: dict[int, ConstraintRows]
    factor: Factor
    K: Array
    Y: Array
    others: dict[int, tuple[Array, Array]]

    def multipliers(self, y: Array, a: Array, lam: Mapping[int, Array]) -> dict[int, Array]:
        """lam_R = y - Y a - L_RR^-1 L_RU lam_U, by constraint, for y = L_RR^-1 l_R and link acceleration a."""
        found = y - self.Y @ a
        for d, (_, Yd) in self.others.items():
            found = found - Yd @ lam[d]
        return dict(zip(self.rows, split(found, list(self.rows.values())), strict=True))


@dataclass(frozen=True)
class Passed:
    """A node with, by row propagated through it, forces on bodies, pushes e^T on freedoms, and power."""

    node: LinkNode | ClusterNode
    forces: dict[int, dict[int, Array]]
    pushes: dict[int, list[Array]]
    power: dict[int, Array]

    @property
    def at_rest(self) -> Passed:
        """The same without velocities and gravity."""
        none = {c: self.node.motion.xp.zeros(x.shape[0]) for c, x in self.power.items()}
        return replace(self, node=self.node.at_rest, power=none)


class PropagatedRows:
    """K^T by link and constraint, and L by pair of constraints, after the eliminations so far.

    `damping` is 1/mu of each constraint (L starts there), or None for rows that must be independent.
    """

    def __init__(
        self, motion: Motion, rows: Mapping[int, ConstraintRows], damping: Mapping[int, Array] | None = None
    ) -> None:
        self.motion, self.rows, self.damped = motion, rows, damping is not None
        self.KT: list[dict[int, Array]] = [{} for _ in motion.model.links]
        self.L: dict[tuple[int, int], Array] = {}
        self.lost: dict[int, Array] = {}
        for c, r in rows.items():
            m = self._size(c)
            self.L[c, c] = motion.xp.zeros(m, m) if damping is None else damping[c] * motion.xp.eye(m)
            for i, K in r.links.items():
                self.KT[i][c] = K.T

    def propagate(self, node: LinkNode | ClusterNode) -> Passed:
        """Eliminate a node's freedoms from all rows that they move."""
        xp, bodies = self.motion.xp, node.cluster.bodies
        forces = {i: self.KT[i] for i in bodies if self.KT[i]}
        joints = {c: {i: r.joints[i].T for i in bodies if i in r.joints} for c, r in self.rows.items()}
        moved = sorted({c for held in forces.values() for c in held} | {c for c, Q in joints.items() if Q})
        pushes: dict[int, list[Array]] = {}
        power: dict[int, Array] = {}
        for c in moved:
            F = {i: held[c] for i, held in forces.items() if c in held}
            pushes[c], felt, power[c] = node.propagate(F, joints[c])
            for n, KT in felt.items():
                accumulate(self.KT[n], c, KT)
        for k, d_inv in reversed(list(enumerate(node.pivots))):
            for n, c in enumerate(moved):
                scaled = d_inv * pushes[c][k]
                for d in moved[n:]:
                    new = scaled.T @ pushes[d][k]
                    self._add(c, d, xp.symmetric(new) if c == d else new)
        return Passed(node, forces, pushes, power)

    def eliminate(self, i: int, which: list[int]) -> Root:
        """Eliminate rows that have met at link i from all others that they are coupled with."""
        xp, held = self.motion.xp, self.KT[i]
        L = xp.vstack([xp.hstack([self._block(c, d) for d in which]) for c in which])
        factor = xp.factor_spd(L, None if self.damped else self._least(which))
        K = xp.hstack([held.pop(c) if c in held else xp.zeros(6, self._size(c)) for c in which]).T
        Y = factor.solve(K)
        others: dict[int, tuple[Array, Array]] = {}
        for d in (d for d in self.rows if d not in which and any(self._coupled(c, d) for c in which)):
            LRd = xp.vstack([self._block(c, d) for c in which])
            others[d] = (LRd, factor.solve(LRd))
            accumulate(held, d, -(LRd.T @ Y).T)
        for n, d in enumerate(others):
            for e in list(others)[n:]:
                cross = -(others[d][0].T @ others[e][1])
                self._add(d, e, xp.symmetric(cross) if d == e else cross)
                if d == e:
                    accumulate(self.lost, d, xp.vstack([-cross[r : r + 1, r : r + 1] for r in range(cross.shape[0])]))
        self.L = {pair: B for pair, B in self.L.items() if not set(pair) & set(which)}
        return Root({c: self.rows[c] for c in which}, factor, K, Y, others)

    def _size(self, c: int) -> int:
        return int(self.rows[c].k.shape[0])

    def _block(self, c: int, d: int) -> Array:
        if not self._coupled(c, d):
            return self.motion.xp.zeros(self._size(c), self._size(d))
        return self.L[c, d] if c <= d else self.L[d, c].T

    def _coupled(self, c: int, d: int) -> bool:
        return (min(c, d), max(c, d)) in self.L

    def _add(self, c: int, d: int, B: Array) -> None:
        key, B = ((c, d), B) if c <= d else ((d, c), B.T)
        self.L[key] = self.L[key] + B if key in self.L else B

    def _least(self, which: list[int]) -> Array:
        """Lower bounds of the pivots of independent rows; earlier eliminations add to the rounding."""
        lost = [self.lost.get(c, 0.0 * self.rows[c].k) for c in which]
        return least_pivots(self.motion, which) + SINGULAR * self.motion.xp.vstack(lost)
