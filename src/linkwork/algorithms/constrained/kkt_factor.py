"""Sparse factorisation of the damped KKT matrix of constrained dynamics, and all that can be done with it.

    K = [[-R, J], [J^T, M]] = U D U^T,      U = [[U_c, U_j], [0, L^T]],   D = diag(-D_c, D_m)
    M = L^T D_m L,    U_j = J L^-1 D_m^-1,    U_c D_c U_c^T = R + J M^-1 J^T

carpentier2021_proximal_sparse, algorithm 1 and IV-C to IV-F (its mu is our R). Elimination runs from the tips to the
base and then through the constraints, from the last to the first. J and U_j have entries only for joints that carry a
constraint's links; constraints that no joint couples stay apart. O(n d^2 + m d^2 + m^2 d + m^3).

Rows may hold several links and joints (internal loops). Where a pivot of the constraints is zero but for rounding
(redundant rows with R = 0) every solution is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.algorithms.constrained.penalties import least_pivots
from linkwork.algorithms.delassus.ltl import Columns, gram, joint_columns, scaled, through
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL, elimination_parents
from linkwork.backends.ops import Array, Ops
from linkwork.constraints.rows import ConstraintRows
from linkwork.lazy import cached_property
from linkwork.model import Motion


class KKTCholesky:
    """K = U D U^T for any symmetric positive definite M with the pattern of the tree `parent`, and any rows.

    `rows` has, for each constraint, J^T by degrees of freedom: `{dof: 1 x m_c}`; those it does not name are zero.
    `R` has one column per constraint, the damping of each of its rows; without damping, `least` says what pivots of
    rows are at least. Vectors x have the constraints' part first.
    """

    def __init__(self, M: Array, rows: Sequence[Columns], R: Sequence[Array], parent: Sequence[int], xp: Ops,
                 least: Array | None = None) -> None:
        self.xp, self.least, self.n, self.sizes = xp, least, len(parent), [r.shape[0] for r in R]
        self.m = sum(self.sizes)
        # pass over the joints, and over the constraints that each of them carries
        self.joints = LTL(M, parent, xp)
        self.Y = [through(self.joints, JT) for JT in rows]
        self.Uj = scaled(self.joints, self.Y)
        self._coupling = gram(self.Y, self.Uj, self.sizes, xp).plus_diagonal(R)

    @cached_property
    def delassus(self) -> Array:
        """The damped inverse operational-space inertia R + J M^-1 J^T, m x m."""
        return self._coupling.matrix()

    @cached_property
    def constraints(self) -> LTL:
        """The factor of the damped Delassus matrix, U_c D_c U_c^T: the last pass, over the constraints alone."""
        parents = elimination_parents([-1] * self.m, self._coupling.coupled_rows())
        return LTL(self.delassus, parents, self.xp, self.least)

    @cached_property
    def osim(self) -> Array:
        """The damped operational-space inertia (R + J M^-1 J^T)^-1, m x m."""
        return self.xp.symmetric(self.constraints.solve(self.xp.eye(self.m)))

    def multiply_U(self, x: Array) -> Array:
        """U x."""
        top, bottom = self._split(x)
        return self.xp.vstack([self.constraints.multiply_LT(top) + self.forces_to_rows(bottom),
                               self.joints.multiply_LT(bottom)])

    def multiply_UT(self, x: Array) -> Array:
        """U^T x."""
        top, bottom = self._split(x)
        return self.xp.vstack([self.constraints.multiply_L(top),
                               self.rows_to_joints(top, self.Uj) + self.joints.multiply_L(bottom)])

    def multiply_D(self, x: Array) -> Array:
        """D x."""
        top, bottom = self._split(x)
        return self.xp.vstack([-self.constraints.multiply_D(top), self.joints.multiply_D(bottom)])

    def solve_U(self, b: Array) -> Array:
        """U^-1 b, from the tips to the base and then through the constraints."""
        top, bottom = self._split(b)
        x = self.joints.solve_LT(bottom)
        return self.xp.vstack([self.constraints.solve_LT(top - self.forces_to_rows(x)), x])

    def solve_D(self, b: Array) -> Array:
        """D^-1 b."""
        top, bottom = self._split(b)
        return self.xp.vstack([-self.constraints.solve_D(top), self.joints.solve_D(bottom)])

    def solve_UT(self, b: Array) -> Array:
        """U^-T b, the other way round."""
        top, bottom = self._split(b)
        x = self.constraints.solve_L(top)
        return self.xp.vstack([x, self.joints.solve_L(bottom - self.rows_to_joints(x, self.Uj))])

    def multiply(self, x: Array) -> Array:
        """K x = U D U^T x."""
        return self.multiply_U(self.multiply_D(self.multiply_UT(x)))

    def solve(self, b: Array) -> Array:
        """K^-1 b = U^-T D^-1 U^-1 b."""
        return self.solve_UT(self.solve_D(self.solve_U(b)))

    def forces_to_rows(self, x: Array) -> Array:
        """U_j x: what x = L^-T f, f joint forces, does to the rows when nothing holds them, J M^-1 f."""
        width = x.shape[1]
        parts = [self.xp.zeros(0, width)]
        for size, U in zip(self.sizes, self.Uj, strict=True):
            parts.append(sum((u.T @ x[j : j + 1, :] for j, u in U.items()), self.xp.zeros(size, width)))
        return self.xp.vstack(parts)

    def rows_to_joints(self, x: Array, columns: Sequence[Columns]) -> Array:
        """Y x, or U_j^T x, for multipliers x."""
        out = [self.xp.zeros(1, x.shape[1])] * self.n
        start = 0
        for size, C in zip(self.sizes, columns, strict=True):
            for j, c in C.items():
                out[j] = out[j] + c @ x[start : start + size, :]
            start += size
        return self.xp.vstack([self.xp.zeros(0, x.shape[1]), *out])

    def _split(self, x: Array) -> tuple[Array, Array]:
        return x[0 : self.m, :], x[self.m :, :]


def kkt_factor(motion: Motion, rows: list[ConstraintRows], R: list[Array] | None = None) -> KKTCholesky:
    """The factorisation for a mechanism's mass matrix and constraint rows, damped by R (a column per constraint)."""
    JT = [joint_columns(motion, r) for r in rows]
    damping = [motion.xp.zeros(r.k.shape[0]) for r in rows] if R is None else R
    least = least_pivots(motion) if R is None else None
    return KKTCholesky(crba(motion), JT, damping, motion.model.topology.dof_parent, motion.xp, least)
