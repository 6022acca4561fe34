"""The Hessian of Gauss' function over link accelerations, by blocks: inertias and couplings.

    min sum 1/2 a_i^T H_ii a_i + mu/2 |sum K_l a_l - k|^2        H_in += mu K_i^T K_n  for each penalised constraint

Only blocks of coupled links are stored; a node that is eliminated (nodes.py) changes those of its neighbours and
of its output body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia, RigidInertia

if TYPE_CHECKING:
    from linkwork.algorithms.common.nodes import Node

Inertia = RigidInertia | ArticulatedInertia


class Hessian:
    """H_ii of each link, rigid as long as nothing else is added, and H_nl (n < l) where two are coupled."""

    def __init__(self, motion: Motion, rows: Sequence[ConstraintRows] = (), weights: Sequence[Array] = ()) -> None:
        self.motion = motion
        self.own: list[Inertia] = list(motion.I)
        self.pairs: dict[tuple[int, int], Array] = {}
        for r, w in zip(rows, weights, strict=True):
            for i, Ki in r.links.items():
                scaled = w * Ki
                for n, Kn in r.links.items():
                    if n >= i:
                        self.add(i, n, scaled.T @ Kn)

    def coupled(self, n: int, l: int) -> bool:
        return (min(n, l), max(n, l)) in self.pairs

    def block(self, n: int, l: int) -> Array:
        """H_nl (6 x 6) of two links, zero if they are not coupled."""
        if not self.coupled(n, l):
            return self.motion.xp.zeros(6, 6)
        return self.pairs[n, l] if n < l else self.pairs[l, n].T

    def add(self, n: int, l: int, B: Array) -> None:
        """Add B to H_nl, and with it B^T to H_ln; on the diagonal B is symmetric."""
        if n == l:
            xp = self.motion.xp
            M, I = xp.symmetric(B[0:3, 0:3]), xp.symmetric(B[3:6, 3:6])
            self.own[n] = add(self.own[n], ArticulatedInertia(M, B[0:3, 3:6], I, xp))
            return
        key, B = ((n, l), B) if n < l else ((l, n), B.T)
        self.pairs[key] = self.pairs[key] + B if key in self.pairs else B

    def eliminate(self, node: Node) -> None:
        """Add the Schur complement of an eliminated node: H_nl <- H_nl - U_n U_l^T / d, and its inertia."""
        bodies, output = set(node.cluster.bodies), node.cluster.output
        self.pairs = {pair: B for pair, B in self.pairs.items() if bodies.isdisjoint(pair)}
        for U, d_inv in reversed(list(zip(node.felt, node.pivots, strict=True))):
            self._eliminate_dof(U, d_inv)
        if output:
            inertia, coupled = node.remains()
            for n, B in coupled.items():
                self.add(n, output, B)
            self.own[output] = add(self.own[output], inertia)

    def _eliminate_dof(self, U: dict[int, Array], d_inv: Array) -> None:
        for n, Un in U.items():
            scaled = -d_inv * Un
            for l, Ul in U.items():
                if l > n:
                    self.add(n, l, scaled @ Ul.T)
            self.own[n] = articulated(self.own[n]).minus(Un, -scaled)


def add(A: Inertia, B: Inertia) -> Inertia:
    """The sum, rigid as long as both are."""
    if isinstance(A, RigidInertia) and isinstance(B, RigidInertia):
        return A + B
    return articulated(A) + articulated(B)


def articulated(A: Inertia) -> ArticulatedInertia:
    """The inertia of an articulated body, of either type."""
    return A.articulated() if isinstance(A, RigidInertia) else A
