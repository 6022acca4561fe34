"""Operational-space inertia of a floating base as an operator: the dense matrix is never formed.

    Lambda^-1 = L_b + K_b H_b^-1 K_b^T,      Lambda b = y - Y (H_b + K_b^T Y)^-1 K_b^T y,    y = L_b^-1 b,  Y = L_b^-1 K_b

PV-OSIM-fast: sathya2023_pv_lqr, VII-B, eqs. 48 and 54. The constraints are carried to the base link, where those of
different limbs are still apart: L_b is block diagonal. O(n + m^2 d + m^3 / r^2) for r limbs.

Needs a free base that all constraints hang on, and L_b invertible: each limb must have the joints to move all its rows
when the base stands still. That is checked structurally here; a singular posture gives NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.constrained.dual import Dual, to_base
from linkwork.algorithms.tree.articulated import articulated
from linkwork.backends.ops import Array, Factor, Ops
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.errors import UnsupportedError
from linkwork.model import Motion


@dataclass(frozen=True)
class Limb:
    """The constraints `which` of one limb: their rows of Lambda^-1, K_b and L_b, with L_b factorised and Y = L_b^-1 K_b."""

    rows: list[slice]
    K: Array
    L: Array
    factor: Factor
    Y: Array


@dataclass(frozen=True)
class FastOSIM:
    """The operational-space inertia Lambda, limb by limb."""

    limbs: list[Limb]
    base: Factor
    base_held: Factor
    order: list[tuple[int, int]]
    xp: Ops

    def solve(self, b: Array) -> Array:
        """Lambda b: the forces that accelerate the rows by b."""
        y = [limb.factor.solve(_pick(b, limb, self.xp)) for limb in self.limbs]
        a = self.base_held.solve(_total([limb.K.T @ yl for limb, yl in zip(self.limbs, y, strict=True)], b, self.xp))
        return self._merged([yl - limb.Y @ a for limb, yl in zip(self.limbs, y, strict=True)], b)

    def multiply(self, x: Array) -> Array:
        """Lambda^-1 x: how the rows accelerate under forces x."""
        parts = [_pick(x, limb, self.xp) for limb in self.limbs]
        a = self.base.solve(_total([limb.K.T @ xl for limb, xl in zip(self.limbs, parts, strict=True)], x, self.xp))
        return self._merged([limb.L @ xl + limb.K @ a for limb, xl in zip(self.limbs, parts, strict=True)], x)

    def _merged(self, parts: list[Array], like: Array) -> Array:
        """The limbs' parts, back in the order of the constraints."""
        cut: dict[int, Array] = {}
        for limb, part in zip(self.limbs, parts, strict=True):
            start = 0
            for rows in limb.rows:
                cut[rows.start] = part[start : start + rows.stop - rows.start, :]
                start += rows.stop - rows.start
        return self.xp.vstack([like[0:0, :], *(cut[s] for s in sorted(cut))])
