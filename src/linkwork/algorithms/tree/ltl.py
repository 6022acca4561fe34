"""Branch-sparse factorisation of the mass matrix, M = L^T D L, and its solves.

L is unit lower triangular with nonzeros only where a degree of freedom carries another: nothing fills in when the
elimination runs from the tips to the base. Featherstone, "Efficient factorization of the joint-space inertia matrix
for branched kinematic trees", 2005. O(n d^2) to factor, O(n d) per solve, d the depth of the tree.
"""

from __future__ import annotations

from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array, Ops
from linkwork.model import Motion


class LTL:
    """A factorised symmetric positive definite matrix with the pattern of a tree, given by `parent` of each row."""

    def __init__(self, M: Array, parent: tuple[int, ...], xp: Ops) -> None:
        self.xp, n = xp, len(parent)
        self.ancestors: list[list[int]] = []
        for k in range(n):
            self.ancestors.append([parent[k], *self.ancestors[parent[k]]] if parent[k] >= 0 else [])
        H = [{j: M[i, j] for j in (i, *self.ancestors[i])} for i in range(n)]
        # tips to base: divide row k by its pivot, and take its share out of all rows that carry it
        for k in reversed(range(n)):
            pivot = 1.0 / H[k][k]
            for i in self.ancestors[k]:
                l = H[k][i] * pivot
                for j in (i, *self.ancestors[i]):
                    H[i][j] = H[i][j] - l * H[k][j]
                H[k][i] = l
            H[k][k] = pivot
        self.L = [{j: H[i][j] for j in self.ancestors[i]} for i in range(n)]
        self.pivots = [H[i][i] for i in range(n)]

    def solve_LT(self, b: Array) -> Array:
        """L^-T b, from the tips to the base."""
        x = self._rows(b)
        for i in reversed(range(len(x))):
            for j in self.ancestors[i]:
                x[j] = x[j] - self.L[i][j] * x[i]
        return self.xp.vstack(x)

    def solve_D(self, b: Array) -> Array:
        """D^-1 b."""
        return self.xp.vstack([d * x for d, x in zip(self.pivots, self._rows(b), strict=True)])

    def solve_L(self, b: Array) -> Array:
        """L^-1 b, from the base to the tips."""
        x = self._rows(b)
        for i in range(len(x)):
            for j in self.ancestors[i]:
                x[i] = x[i] - self.L[i][j] * x[j]
        return self.xp.vstack(x)

    def solve(self, b: Array) -> Array:
        """M^-1 b = L^-1 D^-1 L^-T b."""
        return self.solve_L(self.solve_D(self.solve_LT(b))) if self.L else b

    def _rows(self, b: Array) -> list[Array]:
        return [b[i : i + 1, :] for i in range(len(self.L))]


def crba_ltl(motion: Motion, tau: Array, fext: Array | None = None) -> Array:
    """Forward dynamics by factorising the mass matrix: M vdot = tau - c."""
    factor = LTL(crba(motion), motion.model.topology.dof_parent, motion.xp)
    return factor.solve(tau - rnea(motion, None, fext))
