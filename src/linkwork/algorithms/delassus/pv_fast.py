"""Operational-space inertia of a floating base as an operator.

The dense matrix is not formed where limbs are apart.

    Lambda^-1 = L_b + K_b H_b^-1 K_b^T,    Lambda b = y - Y (H_b + K_b^T Y)^-1 K_b^T y,   y = L_b^-1 b,  Y = L_b^-1 K_b

PV-OSIM-fast: sathya2023_pv_lqr, VII-B, eqs. 48 and 54. The constraints are propagated to the base link, where
those of different limbs are not coupled yet: L_b is block diagonal. O(n + m^2 d + m^3 / r^2) for r limbs.

Needs a free base that everything hangs on, and L_b invertible: each limb must have the joints to move all its rows
while the base is at rest. That is checked structurally (`needs_base`); a singular posture gives NaN. With one limb, or
few rows on few of them, the dense matrix takes fewer operations, which can be counted beforehand: then it is `pv`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from linkwork.algorithms.common.articulated import articulated
from linkwork.algorithms.common.dual import Dual, to_base
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.algorithms.delassus.pv import pv
from linkwork.backends.ops import Array, Factor
from linkwork.constraints.rows import constraint_rows
from linkwork.errors import UnsupportedError
from linkwork.model import Motion
from linkwork.structure.elimination import needs_base


def pv_fast(motion: Motion) -> FastOSIM | DenseOSIM:
    """The operational-space inertia Lambda of the constraints' rows, with `solve` and `multiply`."""
    rows, xp = constraint_rows(motion), motion.xp
    held, sizes = [(*r.links, *r.joints) for r in rows], [r.k.shape[0] for r in rows]
    reason = needs_base(motion.model, held, sizes)
    if reason:
        raise UnsupportedError(f"'pv_fast' cannot handle this model: {reason}; 'pv' can")
    art = articulated(motion)
    dual = to_base(art, rows, [[xp.zeros(1)] * len(dofs) for dofs in art.dofs], stop=1)
    if not saves([sum(sizes[c] for c in which) for which in dual.groups()]):
        matrix = pv(motion)
        return DenseOSIM(matrix, xp.factor_spd(matrix, least_pivots(motion)))
    H, limbs = xp.symmetric(art.IA[1].matrix() + motion.armature(1)), []
    held = H
    for which in dual.groups():
        L, K = dual.matrix(which), xp.hstack([dual.KT[1][c] for c in which]).T
        factor = xp.factor_spd(L, least_pivots(motion, which))
        Y = factor.solve(K)
        held = held + xp.symmetric(K.T @ Y)
        limbs.append(Limb(which, K, L, factor, Y))
    return FastOSIM(dual, limbs, xp.factor_spd(H), xp.factor_spd(held))


def saves(limbs: Sequence[int]) -> bool:
    """Whether limbs with so many rows are kept apart in fewer operations than their dense matrix takes.

    Dense: rows through the six freedoms of the base, L <- L + e e^T / d for each, a factor of m rows, and a solution.
    Apart: for each limb a factor, Y = L^-1 K, K^T Y and its solution; a factor of the base. On 17 cases of Go1, Atlas
    and Talos the difference is that of traces, to the last operation where limbs meet only in the base.
    """
    m = sum(limbs)
    dense = 6 * (6 * m + m + m * (m + 1)) + m**3 / 3 + 2 * m**2
    apart = sum(k**3 / 3 + 12 * k**2 + 42 * k + 2 * k**2 + 24 * k for k in limbs) + 60
    return apart < dense


@dataclass(frozen=True)
class DenseOSIM:
    """Lambda by the dense matrix Lambda^-1 and its factor."""

    matrix: Array
    factor: Factor

    def solve(self, b: Array) -> Array:
        """Lambda b: the forces that accelerate the rows by b (m x k)."""
        return self.factor.solve(b)

    def multiply(self, x: Array) -> Array:
        """Lambda^-1 x: how the rows accelerate under forces x (m x k)."""
        return self.matrix @ x


@dataclass(frozen=True)
class Limb:
    """Constraints that meet before the base: K and L on the base link, L factorised, Y = L^-1 K."""

    which: list[int]
    K: Array
    L: Array
    factor: Factor
    Y: Array


@dataclass(frozen=True)
class FastOSIM:
    """Lambda, limb by limb: `base` is H_b factorised, `held` H_b + K_b^T L_b^-1 K_b."""

    dual: Dual
    limbs: list[Limb]
    base: Factor
    held: Factor

    def solve(self, b: Array) -> Array:
        """Lambda b: the forces that accelerate the rows by b (m x k)."""
        y = [limb.factor.solve(part) for limb, part in zip(self.limbs, self._parts(b), strict=True)]
        a = self.held.solve(self._on_base(y, b))
        return self._whole([yl - limb.Y @ a for limb, yl in zip(self.limbs, y, strict=True)], b)

    def multiply(self, x: Array) -> Array:
        """Lambda^-1 x: how the rows accelerate under forces x (m x k)."""
        parts = self._parts(x)
        a = self.base.solve(self._on_base(parts, x))
        return self._whole([limb.L @ xl + limb.K @ a for limb, xl in zip(self.limbs, parts, strict=True)], x)

    def _on_base(self, parts: list[Array], like: Array) -> Array:
        zero = self.dual.art.motion.xp.zeros(6, like.shape[1])
        return sum((limb.K.T @ part for limb, part in zip(self.limbs, parts, strict=True)), zero)

    def _parts(self, x: Array) -> list[Array]:
        """The rows of each limb."""
        cuts = self._cuts()
        return [self.dual.art.motion.xp.vstack([x[cuts[c], :] for c in limb.which]) for limb in self.limbs]

    def _whole(self, parts: list[Array], like: Array) -> Array:
        """The limbs' rows, back in the order of the constraints."""
        cuts, out = self._cuts(), [like] * len(self.dual.l)
        for limb, part in zip(self.limbs, parts, strict=True):
            start = 0
            for c in limb.which:
                size = cuts[c].stop - cuts[c].start
                out[c] = part[start : start + size, :]
                start += size
        return self.dual.art.motion.xp.vstack([like[0:0, :], *out])

    def _cuts(self) -> list[slice]:
        ends = list(accumulate((l.shape[0] for l in self.dual.l), initial=0))
        return [slice(a, b) for a, b in pairwise(ends)]
