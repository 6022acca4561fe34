"""The inverse of the rows' matrix D = J M^-1 J^T, for right-hand sides of derivatives.

Rows that are independent in usual postures have W = D^-1, and soft ones W = (D + R)^-1. Others are redundant, as those
of some closed loops: with E = (D + R)^-1 for a small R, 1e-9 of a row's usual mobility, and X = E R

    W = (1 + X + X^2 - 9 X^3 + 6 X^4) E,   s^2 W = 1 - 10 (R / s^2)^3  for singular values s^2 >> R

which is a pseudo-inverse without singular values: 1 is a double root, so that W is 10 s^4 / R^3 for s^2 << R. (Of a
single root 10 s^2 / R^2 were left, 1e5 by the rounding of D alone, whose own rounding, squared, decided about the
others.) Rounding of E, 1e-16 over 1e-9, is squared by one more step for what is left, W (2 - D W), which leaves out
what W does. Rows that vanish where loops are closed, as those across the plane of a linkage, are left out while they
do.

Neither is right everywhere. Independent rows depend on each other in singular postures: E_ii D_ii = 1 / (1 - c^2),
where c is the cosine between a row and all others, in the norm of M^-1, is what that takes of the digits; and so does a
row that is shorter than usual, because a limb is stretched. And X has the eigenvalues x = R / (s^2 + R): where one is
neither small nor (redundant rows) near one, W is neither the inverse nor without that direction. There results are NaN,
and singular values have to decide (functions/differentiation/dense_derivatives.py) or, in float32, float64. The entries
of E tell; for a few columns of independent rows, which need none of E, one more product does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sin

from linkwork.algorithms.tree.ltl import LTL
from linkwork.backends.ops import Array, Ops, threshold, tiny
from linkwork.lazy import cached_property

REDUNDANT = 1e-9
"""Squares of singular values, in units of the rows' usual mobilities, around which rows count as redundant."""

POWERS = 1.0, 1.0, 1.0, -9.0, 6.0
"""Factors of the powers of X = E R in W / E: one less, and with 1 as a double root."""

UNRESOLVED = 0.02
"""The largest sum of x (1 - x) over the eigenvalues x of E R: W is 10 x^3 off, 8e-5, squared by one more step. That is
a singular value of 2.2e-4 in float64. In float32 redundant rows have x (1 - x) of about rounding over R, estimated at
0.003 to 0.01."""

UNCOUNTED = 2e-3
"""How far the sum of x^2 may be from a whole number in float64. Redundant rows, x = 1 - s^2 / R, have singular values
below 1e-6 then: there forward dynamics counts rows as redundant, too (`Prox.redundant`)."""

DEPENDENT, SINGLE = 1e8, 1e3
"""The largest root of the sum of squares of E_ii of independent rows, in units of mobilities, in float64 and float32:
some 50 eps of that is lost."""

VANISHED = 1e-12
"""The share of its usual mobility below which a row has vanished: singular values of 1e-6, as in `UNCOUNTED`."""


class RowsInverse:
    """W of rows whose matrix `D` has the pattern of `parent`.

    `usual` are their usual mobilities, a column of numbers, and `roots` the square roots of their weights; `switched`
    says that these may be zero. `softness` is R of soft rows, a column. Others are independent in usual postures, but
    for those that are `vanishing` there; with None they may be redundant.
    """

    def __init__(
        self,
        D: Array,
        roots: Array,
        usual: Array,
        parent: Sequence[int],
        xp: Ops,
        softness: Array | None = None,
        vanishing: Sequence[int] | None = None,
        switched: bool = False,
    ) -> None:
        self.xp, self.m = xp, len(parent)
        self.soft, self.independent = softness is not None, softness is None and vanishing is not None
        self.held: Array = 1.0
        if softness is not None:
            self.R = softness
        elif vanishing is None:
            self.R = threshold(xp, REDUNDANT) * usual
        else:
            self.R = xp.where(roots > 0, 0.0, 1.0) if switched else xp.zeros(self.m)  # those switched off are zero
            own = xp.vstack([xp.zeros(0), *(D[i : i + 1, i : i + 1] for i in range(self.m))])
            felt = own + usual * roots * roots
            if vanishing:
                least = threshold(xp, VANISHED) * felt
                there = [xp.where(own[i, 0] > least[i, 0], 1.0, 0.0) if i in vanishing else 1.0 for i in range(self.m)]
                self.held = xp.vstack([xp.constant([[1.0]]) * x for x in there])
                D, self.R = D * self.held * self.held.T, xp.where(self.held > 0, self.R, 1.0)
            self.felt = felt * self.held + self.R
        self.D = D
        self.factor = LTL(D + xp.eye(self.m) * self.R, parent, xp)

    @property
    def is_plain(self) -> bool:
        """Whether W = E."""
        return self.soft or self.independent

    @cached_property
    def E(self) -> Array:
        """The inverse of D + R, m x m, or NaN where it does not give W."""
        E = self.factor.inverse()
        if self.soft or not self.m:
            return E
        sure = self._trust(E) * E
        return sure if type(self.held) is float else sure * self.held * self.held.T

    @cached_property
    def W(self) -> Array:
        """The matrix W, or NaN."""
        E, xp = self.E, self.xp
        if self.is_plain:
            return E
        X = E * self.R.T
        *others, first, last = POWERS
        W = first * E + last * xp.symmetric(X @ E)
        for factor in reversed(others):
            W = factor * E + xp.symmetric(X @ W)
        # one triangle for both would lose two digits: errors of both cancel in joint space
        return W @ (2 * xp.eye(self.m) - self.D @ W)

    def __matmul__(self, r: Array) -> Array:
        """W r, by products with E."""
        return self.E @ r if self.is_plain else self._refined(self.E.__matmul__, r)

    def solve(self, r: Array) -> Array:
        """W r for a few columns, by the factor."""
        if self.soft or not self.m:
            return self.factor.solve(r)
        if self.independent:
            y = self.factor.solve(self.held * r)
            return self.held * y * self._is_regular(y)
        return self._trust(self.factor.inverse()) * self._refined(self.factor.solve, r)

    def _refined(self, E: Callable[[Array], Array], r: Array) -> Array:
        """W r, and once more for what is left of r."""
        y = self._summed(E, r)
        return y + self._summed(E, r - self.D @ y)

    def _summed(self, E: Callable[[Array], Array], r: Array) -> Array:
        """The sum of X^k E r times the factors: redundant rows, X = 1, cancel."""
        last = E(r)
        total = POWERS[0] * last
        for factor in POWERS[1:]:
            last = E(self.R * last)
            total = total + factor * last
        return total

    def _is_regular(self, y: Array) -> Array:
        """1, or NaN: rows that depend on each other make E D_ii y much larger than y, for almost any y = E r."""
        xp, weight = self.xp, self.felt.T
        sizes, probe = xp.sqrt(weight @ (y * y) + tiny(xp)), 0 * y[:, 0:1]
        for c in range(y.shape[1]):  # by other weights each: near a singular posture they are the same but for signs
            probe = probe + y[:, c : c + 1] * (0.5**c / sizes[0, c])
        felt = self.factor.solve(weight.T * probe)
        most = SINGLE if xp.single else DEPENDENT
        bound = most * most * (weight @ (probe * probe) + tiny(xp))
        return xp.where(weight @ (felt * felt) <= bound, 1.0, float("nan"))[0, 0]

    def _trust(self, E: Array) -> Array:
        """1, or NaN where E does not give W."""
        xp, nan = self.xp, float("nan")
        if self.independent:
            # squares: of rows that depend on each other, rounding decides about the sign of E
            lost = [E[i : i + 1, i : i + 1] * self.felt[i : i + 1, :] for i in range(self.m)]
            most = SINGLE if xp.single else DEPENDENT
            return xp.where(sum((x * x for x in lost), xp.zeros(1)) <= most * most, 1.0, nan)[0, 0]
        X, unsure, beside, count = E * self.R.T, xp.zeros(1), xp.zeros(1), xp.zeros(1)
        for i in range(self.m):
            x = X[i : i + 1, i : i + 1]
            unsure, count = unsure + x * (1 - x), count + x * x
            beside = beside + X[i : i + 1, 0:i] @ X[0:i, i : i + 1] * 2
        flag = xp.where(unsure - beside <= UNRESOLVED, 1.0, nan)
        if not xp.single:
            off, most = xp.sin(pi * (count + beside)), sin(pi * UNCOUNTED)
            flag = flag * xp.where(off * off <= most * most, 1.0, nan)
        return flag[0, 0]
