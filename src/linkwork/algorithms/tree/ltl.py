"""Branch-sparse factorisation of the mass matrix, M = L^T D L, and its solves.

L is unit lower triangular with nonzeros only where a degree of freedom supports another: no fill-in when the
elimination runs from the tips to the base. Featherstone, "Efficient factorization of the joint-space inertia matrix
for branched kinematic trees", 2005. O(n d^2) to factor, O(n d) per solve, d the depth of the tree. With U = L^T this is
the factorisation M = U D U^T of carpentier2021_proximal_sparse, IV-B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from linkwork.algorithms.common.least_inertia import holding
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array, Ops
from linkwork.backends.written_out import above
from linkwork.lazy import cached_property
from linkwork.model import Motion


class LTL:
    """A factorised positive definite matrix with the pattern of a tree, given by `parent` of each row.

    With `least`, a pivot that is zero but for rounding makes every solution NaN, as in `Ops.factor_spd`; `held` makes
    NaN of pivots of the mass matrix that are (common/least_inertia.py).
    """

    def __init__(
        self,
        M: Array,
        parent: Sequence[int],
        xp: Ops,
        least: Array | None = None,
        held: Callable[[int, Array], Array] = lambda k, d: d,
    ) -> None:
        self.xp, n = xp, len(parent)
        self.ancestors: list[list[int]] = []
        for k in range(n):
            self.ancestors.append([parent[k], *self.ancestors[parent[k]]] if parent[k] >= 0 else [])
        H = [{j: M[i, j] for j in (i, *self.ancestors[i])} for i in range(n)]
        # tips to base: divide row k by its pivot, and subtract its share from all rows that support it
        for k in reversed(range(n)):
            pivot = 1.0 / (held(k, H[k][k]) if least is None else above(H[k][k], M[k, k], least[k, 0], xp))
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
        return self._column(x, b)

    def solve_D(self, b: Array) -> Array:
        """D^-1 b."""
        return self._column([d * x for d, x in zip(self.pivots, self._rows(b), strict=True)], b)

    def solve_L(self, b: Array) -> Array:
        """L^-1 b, from the base to the tips."""
        x = self._rows(b)
        for i in range(len(x)):
            for j in self.ancestors[i]:
                x[i] = x[i] - self.L[i][j] * x[j]
        return self._column(x, b)

    def solve(self, b: Array) -> Array:
        """M^-1 b = L^-1 D^-1 L^-T b."""
        return self.solve_L(self.solve_D(self.solve_LT(b)))

    def multiply_L(self, x: Array) -> Array:
        """L x."""
        x_ = self._rows(x)
        return self._column([sum((self.L[i][j] * x_[j] for j in self.ancestors[i]), x_[i]) for i in range(len(x_))], x)

    def multiply_LT(self, x: Array) -> Array:
        """L^T x."""
        x_, y = self._rows(x), self._rows(x)
        for i in range(len(x_)):
            for j in self.ancestors[i]:
                y[j] = y[j] + self.L[i][j] * x_[i]
        return self._column(y, x)

    def multiply_D(self, x: Array) -> Array:
        """D x."""
        return self._column([x_ / d for d, x_ in zip(self.pivots, self._rows(x), strict=True)], x)

    @cached_property
    def inverse_L(self) -> list[dict[int, Array]]:
        """The rows of L^-1 left of its unit diagonal; it has the pattern of L.

        L^-1 b takes fewer operations by it than by `solve_L` where b has few nonzeros: those of other branches do not
        spread there from row to row.
        """
        out: list[dict[int, Array]] = []
        for i, ancestors in enumerate(self.ancestors):
            row = {j: -self.L[i][j] for j in ancestors}
            for k in ancestors:
                for j, x in out[k].items():
                    row[j] = row[j] - self.L[i][k] * x
            out.append(row)
        return out

    def inverse(self) -> Array:
        """W D^-1 W^T with W = L^-1, symmetric: for as many right-hand sides as there are rows."""
        n, zero = len(self.L), self.xp.zeros(1)[0, 0]
        W = [{**row, i: 1.0} for i, row in enumerate(self.inverse_L)]
        WD = [{k: w * self.pivots[k] for k, w in row.items()} for row in W]
        entries: list[list[Array]] = [[zero] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                entries[i][j] = entries[j][i] = sum((w * W[j][k] for k, w in WD[i].items() if k in W[j]), zero)
        return self.xp.square(self.xp.matrix(entries), WD, W) if n else self.xp.zeros(0, 0)

    def _rows(self, b: Array) -> list[Array]:
        return [b[i : i + 1, :] for i in range(len(self.L))]

    def _column(self, rows: list[Array], like: Array) -> Array:
        return self.xp.vstack([like[0:0, :], *rows])


def elimination_parents(parent: Sequence[int], cliques: Iterable[Iterable[int]]) -> list[int]:
    """The parents of a tree pattern in which all entries within each of `cliques` are filled.

    This is the elimination tree of a sparse Cholesky factorisation that starts with the last row (Liu, "The role of
    elimination trees in sparse factorization", 1990): the parent of a row is the last one before it that it touches.
    """
    touched: list[set[int]] = [{p} if p >= 0 else set() for p in parent]
    for clique in cliques:
        before, *others = sorted(clique) or [0]
        for k in others:
            touched[k].add(before)
            before = k
    out = [-1] * len(touched)
    for k in reversed(range(len(touched))):
        if touched[k]:
            out[k] = max(touched[k])
            touched[out[k]] |= touched[k] - {out[k]}
    return out


def crba_ltl(motion: Motion, tau: Array, fext: Array | None = None) -> Array:
    """Forward dynamics by factorising the mass matrix: M vdot = tau - c."""
    factor = LTL(crba(motion), motion.model.topology.dof_parent, motion.xp, held=holding(motion))
    return factor.solve(tau - rnea(motion, None, fext))
