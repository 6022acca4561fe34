"""The solution of constrained dynamics, and solves with its matrix for any other right-hand sides.

    [M, -J^T; J, R] [x; y] = [b; r]

carpentier2021_proximal_sparse for the sparse factor (constrained/kkt_factor.py), one for the solution and for all
columns of derivatives. O(n d^2 + m d^2 + m^2 d + m^3) to factor, O(n d + m^2) for each column.

Rows may be redundant or singular: multipliers come from W, the (pseudo-)inverse of J M^-1 J^T (rows_inverse.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from linkwork.algorithms.common.activation import weigh
from linkwork.algorithms.common.columns import split
from linkwork.algorithms.common.least_inertia import DENSE, holding
from linkwork.algorithms.constrained.kkt_factor import KKTFactor, RowsFactor
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.delassus.ltl import Columns, joint_columns
from linkwork.algorithms.derivatives.rows_inverse import RowsInverse
from linkwork.backends.ops import Array, Ops
from linkwork.constraints.row_inertia import row_mobilities
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.lazy import cached_property
from linkwork.model import Motion

LOST = 3e-3
"""The least pivot of M in float32, relative to its entry: about 2e-5 of it is rounding, or more; chosen on iCub.
Joints whose axes are in line, with links of hardly any mass between them, have such."""


class JointFactor(Protocol):
    """M = L^T D L, as solves; `pivots` are the entries of D^-1."""

    pivots: list[Array]

    def solve_LT(self, b: Array) -> Array:
        """L^-T b."""

    def solve_D(self, b: Array) -> Array:
        """D^-1 b."""

    def solve_L(self, b: Array) -> Array:
        """L^-1 b."""


class Equations(NamedTuple):
    """M a + c = tau + J^T lam, J a + R lam = k: those of a motion.

    R is the softness of its rows, and weights that are `active` switch constraints off.
    """

    motion: Motion
    M: Array
    c: Array
    tau: Array
    softness: Sequence[Array] | None = None
    active: Array | None = None


class Multipliers:
    """Accelerations, and multipliers of rows that are weighted by the square `roots` of their weights."""

    a: Array
    multipliers: Array
    roots: Array
    rows: list[ConstraintRows]

    @property
    def lam(self) -> Array:
        """The constraint forces."""
        return self.multipliers * self.roots

    @property
    def by_constraint(self) -> list[Array]:
        """The multipliers of each constraint."""
        return split(self.multipliers, self.rows)


class Implicit(Multipliers):
    """Accelerations `a` and multipliers.

    `columns` is how many right-hand sides will be solved for: for many the inverse W takes fewer operations than its
    factors, and, where these are `sparse`, that of L than L. `vanishing` is that of rows_inverse.py.
    """

    joints: JointFactor
    factor: RowsFactor
    W: RowsInverse
    inverse_L: list[dict[int, Array]] | None = None

    def __init__(
        self, given: Equations, columns: int = 1, sparse: bool = False, vanishing: Sequence[int] | None = None
    ) -> None:
        motion, M, c, tau, softness, active = given
        self._prepare(motion, active, columns)
        none = [self.xp.zeros(r.k.shape[0]) for r in self.rows]
        factor = KKTFactor(M, self.columns, none, motion.model.topology.dof_parent, self.xp, held=keeping(motion))
        self.factor, self.joints = factor, factor.joints
        self.W = rows_inverse(factor.delassus, self.roots, factor.row_parents, motion, softness, active, vanishing)
        self.inverse_L = factor.joints.inverse_L if sparse else None
        self._regular = regular(self.joints.pivots, M, self.xp)
        self._found(self._through(tau - c), joint_targets(motion, self.rows))

    def _prepare(self, motion: Motion, active: Array | None, columns: int = 1) -> None:
        """Note what is solved, and the rows."""
        self.motion, self.xp = motion, motion.xp
        self.many = columns > motion.model.rows
        self.rows, self.roots = weigh(motion, constraint_rows(motion), active)

    def _found(self, z: Array, k: Array) -> None:
        """The solution, and what is beside it, for z = L^-T b."""
        y = self._multipliers(z, k)
        if not self.W.is_plain and self.rows and self.many:
            # once more for what is left of the rows: that squares the error of W
            y = y + self._multipliers(z + self.factor.rows_to_joints(y, self.factor.Y), k)
        x = self._accelerations(z, y)
        self.a, self.multipliers = self.xp.held(x[:, 0:1]), self.xp.held(y[:, 0:1])
        self.adjoint = x[:, 1:], y[:, 1:]

    @cached_property
    def columns(self) -> list[Columns]:
        """J^T of each constraint."""
        return [joint_columns(self.motion, r) for r in self.rows]

    @property
    def joint_forces(self) -> Array:
        """J^T y."""
        return self.row_forces(self.multipliers)

    def solve(self, b: Array, r: Array) -> tuple[Array, Array]:
        """x and y, for columns."""
        z = self._through(b)
        y = self._multipliers(z, r)
        return self._accelerations(z, y), y

    def row_forces(self, y: Array) -> Array:
        """J^T y, for other multipliers."""
        return self.factor.rows_to_joints(y, self.columns)

    def _multipliers(self, z: Array, k: Array) -> Array:
        """W (k - J M^-1 b) for z = L^-T b."""
        r = k - self.factor.forces_to_rows(z)
        if not self.rows:
            return r
        if self.many:
            return self.W.W @ r
        return self.W.solve(r)

    def _through(self, b: Array) -> Array:
        """z = L^-T b; columns with few entries that are not zero by the rows of L^-1."""
        if self.inverse_L is None:
            return self.joints.solve_LT(b)
        z = [b[i : i + 1, :] for i in range(self.factor.n)]
        for i, row in enumerate(self.inverse_L):
            for j, n in row.items():
                z[j] = z[j] + n * b[i : i + 1, :]
        return self.xp.vstack([b[0:0, :], *z])

    def _accelerations(self, z: Array, y: Array) -> Array:
        """x = L^-1 D^-1 (z + L^-T J^T y)."""
        f = self.factor
        w = self._regular * self.joints.solve_D(z + f.rows_to_joints(y, f.Y))
        if self.inverse_L is None:
            return self.joints.solve_L(w)
        x = [w[i : i + 1, :] for i in range(f.n)]
        for i, row in enumerate(self.inverse_L):
            for j, n in row.items():
                x[i] = x[i] + n * w[j : j + 1, :]
        return self.xp.vstack([z[0:0, :], *x])


def keeping(motion: Motion) -> Callable[[int, Array], Array]:
    """The inertia of a degree of freedom, or NaN where float64 loses it; `regular` is for float32."""
    return holding(motion, DENSE) if not motion.xp.single else lambda k, d: d


def regular(pivots: Sequence[Array], M: Array, xp: Ops) -> Array | float:
    """1, or NaN where float32 loses the inertia of a joint: a pivot beside its entry of M.

    `pivots` are inverse.
    """
    flag: Array | float = 1.0
    for i, inverse in enumerate(pivots if xp.single else ()):
        left = LOST * (inverse * M[i, i])
        flag = flag * xp.where(left * left <= 1, 1.0, float("nan"))  # rounding has any sign
    return flag


def rows_inverse(
    D: Array,
    roots: Array,
    parent: Sequence[int],
    motion: Motion,
    softness: Sequence[Array] | None,
    active: Array | None,
    vanishing: Sequence[int] | None,
) -> RowsInverse:
    """W of the rows of a motion."""
    xp, usual = motion.xp, motion.xp.constant(row_mobilities(motion.model))
    soft = None if softness is None else xp.vstack([xp.zeros(0), *softness])
    return RowsInverse(D, roots, usual, parent, xp, soft, vanishing, switched=active is not None)
