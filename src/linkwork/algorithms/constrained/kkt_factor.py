"""Sparse factorisation of the damped KKT matrix of constrained dynamics, its solves and products.

    K = [[-R, J], [J^T, M]] = U D U^T,      U = [[U_c, U_j], [0, L^T]],   D = diag(-D_c, D_m)
    M = L^T D_m L,    U_j = J L^-1 D_m^-1,    U_c D_c U_c^T = R + J M^-1 J^T

carpentier2021_proximal_sparse, algorithm 1 and IV-C to IV-F (its mu is our R). Elimination runs from the tips to the
base and then through the constraints, from the last to the first. J and U_j have entries only for joints that support
a constraint's links; constraints that no joint couples are not filled in. O(n d^2 + m d^2 + m^2 d + m^3).

Rows may hold several links and joints (internal loops). Where a pivot of the constraints is zero but for rounding
(redundant rows with R = 0) every solution is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwork.algorithms.common.least_inertia import holding
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.algorithms.delassus.ltl import Columns, gram, joint_columns, scaled, through
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL, elimination_parents
from linkwork.backends.ops import Array, Ops
from linkwork.checks import MATRIX, checked
from linkwork.constraints.rows import ConstraintRows
from linkwork.errors import InputError
from linkwork.lazy import cached_property
from linkwork.model import Motion


class RowsFactor:
    """U_j and U_c: the rows of constraints once joints are eliminated.

    `Y` has L^-T J^T of each constraint, `{dof: 1 x m_c}`, for `n` degrees of freedom with these `pivots`, 1 / D_m; `R`
    one column per constraint, the damping of each of its rows. All are matrices of the backend `xp`.
    """

    def __init__(
        self,
        Y: list[Columns],
        pivots: Sequence[Array],
        R: Sequence[Array],
        xp: Ops,
        least: Array | None = None,
    ) -> None:
        self.xp, self.least, self.n, self.sizes = xp, least, len(pivots), [r.shape[0] for r in R]
        self.m = sum(self.sizes)
        self.Y, self.Uj = Y, scaled(pivots, Y)
        self._coupling = gram(self.Y, self.Uj, self.sizes, xp).plus_diagonal(R)

    @cached_property
    def delassus(self) -> Array:
        """The damped inverse operational-space inertia R + J M^-1 J^T, m x m."""
        return self._coupling.matrix()

    @cached_property
    def constraints(self) -> LTL:
        """The factor of the damped Delassus matrix, U_c D_c U_c^T: the last pass, over the constraints alone."""
        return LTL(self.delassus, self.row_parents, self.xp, self.least)

    @cached_property
    def row_parents(self) -> list[int]:
        """The pattern of the Delassus matrix: the parent of each row."""
        return elimination_parents([-1] * self.m, self._coupling.coupled_rows())

    @cached_property
    def osim(self) -> Array:
        """The damped operational-space inertia (R + J M^-1 J^T)^-1, m x m."""
        return self.xp.symmetric(self.constraints.solve(self.xp.eye(self.m)))

    def forces_to_rows(self, x: Array) -> Array:
        """U_j x: for x = L^-T f, f joint forces, the rows' accelerations without constraints, J M^-1 f."""
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


class KKTFactor(RowsFactor):
    """K = U D U^T by matrices of a backend.

    `lw.KKTCholesky` is that of numbers, and says what the arguments are; `held` is that of `LTL`, for M.
    """

    def __init__(
        self,
        M: Array,
        rows: Sequence[Columns],
        R: Sequence[Array],
        parent: Sequence[int],
        xp: Ops,
        least: Array | None = None,
        held: Callable[[int, Array], Array] = lambda k, d: d,
    ) -> None:
        sizes = [r.shape[0] for r in R]
        _check(M, rows, sizes, parent)
        if least is not None and least.shape[0] != sum(sizes):
            raise InputError(f"least has {least.shape[0]} entries; it needs one for each of the {sum(sizes)} rows")
        # pass over the joints, and over the constraints that each of them supports
        self.joints = LTL(M, parent, xp, held=held)
        super().__init__([through(self.joints, JT) for JT in rows], self.joints.pivots, R, xp, least)

    @checked(x=MATRIX)
    def multiply_U(self, x: Array) -> Array:
        """U x."""
        return self._multiply_U(x)

    @checked(x=MATRIX)
    def multiply_UT(self, x: Array) -> Array:
        """U^T x."""
        return self._multiply_UT(x)

    @checked(x=MATRIX)
    def multiply_D(self, x: Array) -> Array:
        """D x."""
        return self._multiply_D(x)

    @checked(b=MATRIX)
    def solve_U(self, b: Array) -> Array:
        """U^-1 b, from the tips to the base and then through the constraints."""
        return self._solve_U(b)

    @checked(b=MATRIX)
    def solve_D(self, b: Array) -> Array:
        """D^-1 b."""
        return self._solve_D(b)

    @checked(b=MATRIX)
    def solve_UT(self, b: Array) -> Array:
        """U^-T b, the other way round."""
        return self._solve_UT(b)

    @checked(x=MATRIX)
    def multiply(self, x: Array) -> Array:
        """K x = U D U^T x."""
        return self._multiply_U(self._multiply_D(self._multiply_UT(x)))

    @checked(b=MATRIX)
    def solve(self, b: Array) -> Array:
        """K^-1 b = U^-T D^-1 U^-1 b."""
        return self._solve_UT(self._solve_D(self._solve_U(b)))

    # the same without branches: NaN where pivots are zero
    def _multiply_U(self, x: Array) -> Array:
        top, bottom = self._split(x)
        return self.xp.vstack(
            [self.constraints.multiply_LT(top) + self.forces_to_rows(bottom), self.joints.multiply_LT(bottom)]
        )

    def _multiply_UT(self, x: Array) -> Array:
        top, bottom = self._split(x)
        return self.xp.vstack(
            [self.constraints.multiply_L(top), self.rows_to_joints(top, self.Uj) + self.joints.multiply_L(bottom)]
        )

    def _multiply_D(self, x: Array) -> Array:
        top, bottom = self._split(x)
        return self.xp.vstack([-self.constraints.multiply_D(top), self.joints.multiply_D(bottom)])

    def _solve_U(self, b: Array) -> Array:
        top, bottom = self._split(b)
        x = self.joints.solve_LT(bottom)
        return self.xp.vstack([self.constraints.solve_LT(top - self.forces_to_rows(x)), x])

    def _solve_D(self, b: Array) -> Array:
        top, bottom = self._split(b)
        return self.xp.vstack([-self.constraints.solve_D(top), self.joints.solve_D(bottom)])

    def _solve_UT(self, b: Array) -> Array:
        top, bottom = self._split(b)
        x = self.constraints.solve_L(top)
        return self.xp.vstack([x, self.joints.solve_L(bottom - self.rows_to_joints(x, self.Uj))])

    def _split(self, x: Array) -> tuple[Array, Array]:
        if x.shape[0] != self.m + self.n:
            raise InputError(f"a vector here has {self.m} + {self.n} entries, constraints first, not {x.shape[0]}")
        return x[0 : self.m, :], x[self.m :, :]


def _check(M: Array, rows: Sequence[Columns], sizes: Sequence[int], parent: Sequence[int]) -> None:
    """Refuse parts that do not fit each other."""
    n = len(parent)
    if M.shape != (n, n) or any(p >= k for k, p in enumerate(parent)):
        raise InputError(
            f"M is {M.shape[0]} x {M.shape[1]}; it needs a row for each of the {n} entries of parent, "
            "which are -1 or numbers of rows before their own"
        )
    fits = len(rows) == len(sizes) and all(
        0 <= j < n and JT.shape == (1, m) for m, c in zip(sizes, rows, strict=True) for j, JT in c.items()
    )
    if not fits:
        raise InputError("rows and R have an entry for each constraint: {dof: 1 x m} and m x 1")


def diagonal_factor(
    motion: Motion, weights: Array, rows: list[ConstraintRows], R: list[Array], least: Array | None = None
) -> KKTFactor:
    """The same with a diagonal in place of the mass matrix: inverse kinematics (carpentier2021, IV-D)."""
    n, unit = motion.model.nv, motion.xp.eye(motion.model.nv)
    W = motion.xp.hstack([unit[:, j : j + 1] * weights[j, 0] for j in range(n)])
    return KKTFactor(W, [joint_columns(motion, r) for r in rows], R, [-1] * n, motion.xp, least)


def kkt_factor(
    motion: Motion, rows: list[ConstraintRows], R: list[Array] | None = None, least: Array | None = None
) -> KKTFactor:
    """The factorisation for a model's mass matrix and rows, damped by R (a column per constraint)."""
    JT = [joint_columns(motion, r) for r in rows]
    damping = [motion.xp.zeros(r.k.shape[0]) for r in rows] if R is None else R
    least = least_pivots(motion) if R is None else least
    return KKTFactor(crba(motion), JT, damping, motion.model.topology.dof_parent, motion.xp, least, holding(motion))
