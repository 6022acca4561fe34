"""The solution of constrained dynamics, and solves with its matrix for any other right-hand sides.

    [M, -J^T; J, R] [x; y] = [b; r]

carpentier2021_proximal_sparse for the sparse factor (constrained/kkt_factor.py), one for the solution and for all
columns of derivatives. O(n d^2 + m d^2 + m^2 d + m^3) to factor, O(n d + m^2) for each column.

Rows may be redundant or singular: with E = (J M^-1 J^T + R)^-1 for a small R and X = E R the multipliers come from

    W = (1 + X + X^2 + X^3 - 4 X^4) E,   s^2 W = 1 - 5 (R / s^2)^4  for singular values s^2 >> R,  W -> 0  for s^2 << R

that is, from a pseudo-inverse without singular values. With `softness`, R is that, and W = E.

In float32 R must be so large that it may change the solution of rows that are not redundant. E R has the eigenvalues
x = R / (s^2 + R): where one is neither small nor (redundant rows) near one, results are NaN, and float64 has to solve
the state. Where rows are of unequal inertia, as those of surfaces are, R is in units of each row there, in which their
multipliers would be shared by other weights than in float64: then redundant rows are NaN, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from linkwork.algorithms.common.columns import split
from linkwork.algorithms.common.weights import weigh
from linkwork.algorithms.constrained.kkt_factor import KKTFactor, RowsFactor
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.delassus.ltl import Columns, joint_columns
from linkwork.backends.ops import Array, Ops, threshold
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.constraints.units import row_units, units
from linkwork.lazy import cached_property
from linkwork.model import Motion

REDUNDANT = 1e-9
"""Squares of singular values, in units of the rows' effective inertia, around which rows count as redundant."""

POWERS = 4
"""Of E R in W: it is 1e-6 off at singular values of 2e-4. With two it was at 1.3e-3, and derivatives of Cassie near its
neutral posture were 2e-4 off. Between 3e-5, where rows count as redundant, and 2e-4 nothing says so."""

UNRESOLVED = 0.02
"""The largest eigenvalue x of E R, or x (1 - x), in float32: W is 5 x^4 off in its direction. Redundant rows have
x (1 - x) of about rounding over R, estimated at 0.003 to 0.01; not measured."""

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


class Multipliers:
    """Multipliers of rows that are weighted by the square `roots` of their weights."""

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
    """Accelerations `a` and multipliers for joint forces `tau`, with M and c of a motion given.

    `columns` is how many right-hand sides will be solved for: for many the inverse W takes fewer operations than its
    factors, and, where these are `sparse`, that of L than L.
    """

    joints: JointFactor
    factor: RowsFactor
    inverse_L: list[dict[int, Array]] | None = None

    def __init__(
        self,
        motion: Motion,
        M: Array,
        c: Array,
        tau: Array,
        softness: Sequence[Array] | None = None,
        active: Array | None = None,
        columns: int = 1,
        sparse: bool = False,
    ) -> None:
        self._prepare(motion, softness, active, columns)
        factor = KKTFactor(
            M, self.columns, damping(motion, self.rows, softness), motion.model.topology.dof_parent, self.xp
        )
        self.factor, self.joints = factor, factor.joints
        self.inverse_L = factor.joints.inverse_L if sparse else None
        self._regular = regular(self.joints.pivots, M, self.xp)
        self._found(self._through(tau - c), joint_targets(motion, self.rows))

    def _prepare(
        self, motion: Motion, softness: Sequence[Array] | None, active: Array | None, columns: int = 1
    ) -> None:
        """Note what is solved, and the rows."""
        self.motion, self.xp, self.softness = motion, motion.xp, softness
        self.many = columns > motion.model.rows
        self.rows, self.roots = weigh(motion, constraint_rows(motion), active)

    def _found(self, z: Array, k: Array) -> None:
        """The solution, and what is beside it, for z = L^-T b."""
        y = self._multipliers(k - self.factor.forces_to_rows(z))
        if self.softness is None and self.rows and self.many:
            # once more for what is left of the rows: that squares the error of W
            held = z + self.factor.rows_to_joints(y, self.factor.Y)
            y = y + self._multipliers(k - self.factor.forces_to_rows(held))
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
        return self.factor.rows_to_joints(self.multipliers, self.columns)

    def solve(self, b: Array, r: Array) -> tuple[Array, Array]:
        """x and y, for columns."""
        z = self._through(b)
        y = self._multipliers(r - self.factor.forces_to_rows(z))
        return self._accelerations(z, y), y

    def _multipliers(self, r: Array) -> Array:
        """W r."""
        if not self.rows:
            return r
        if self.many:
            return self._W @ r
        E = self.factor.constraints.solve
        return E(r) if self.softness is not None else self._trust * undamped(E, self._R, r)

    @cached_property
    def _W(self) -> Array:
        """The pseudo-inverse of J M^-1 J^T, m x m: see above."""
        E, xp = self.factor.constraints.inverse(), self.xp
        if self.softness is not None:
            return E
        X = E * self._R.T
        W = E - POWERS * xp.symmetric(X @ E)
        for _ in range(POWERS - 1):
            W = E + xp.symmetric(X @ W)
        return self._trust * W

    @cached_property
    def _R(self) -> Array:
        return self.xp.vstack(damping(self.motion, self.rows, self.softness))

    @cached_property
    def _trust(self) -> Array | float:
        return trust(self.factor.constraints.inverse, self._R, self.roots, self.motion)

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


def undamped(E: Callable[[Array], Array], R: Array, r: Array) -> Array:
    """W r: the sum of (E R)^k E r over k < POWERS, less so many times the next one.

    Redundant rows, E R = 1, cancel.
    """
    last = total = E(r)
    for _ in range(POWERS - 1):
        last = E(R * last)
        total = total + last
    return total - POWERS * E(R * last)


def regular(pivots: Sequence[Array], M: Array, xp: Ops) -> Array | float:
    """1, or NaN where float32 loses the inertia of a joint: a pivot beside its entry of M.

    `pivots` are inverse.
    """
    flag: Array | float = 1.0
    for i, inverse in enumerate(pivots if xp.single else ()):
        left = LOST * (inverse * M[i, i])
        flag = flag * xp.where(left * left <= 1, 1.0, float("nan"))  # rounding has any sign
    return flag


def trust(inverse: Callable[[], Array], R: Array, roots: Array, motion: Motion) -> Array | float:
    """1, or NaN where float32 does not resolve the rows.

    `inverse` gives E. Rows that are switched off do not count.
    """
    xp = motion.xp
    if not xp.single:
        return 1.0
    E = inverse()
    between = E * roots * roots.T if row_units(motion.model) else E - xp.symmetric((E * R.T) @ E)
    return xp.where(R.T @ (between * between) @ R <= UNRESOLVED**2, 1.0, float("nan"))[0, 0]


def damping(motion: Motion, rows: Sequence[ConstraintRows], softness: Sequence[Array] | None) -> list[Array]:
    """R of each constraint: its softness, or as little as redundant rows need."""
    if softness is not None:
        return list(softness)
    least, own = threshold(motion.xp, REDUNDANT), row_units(motion.model)
    if motion.xp.single and own is not None:
        return [motion.xp.constant(least / unit) for unit in own]
    return [motion.xp.zeros(r.k.shape[0]) + least / unit for r, unit in zip(rows, units(motion.model), strict=True)]
