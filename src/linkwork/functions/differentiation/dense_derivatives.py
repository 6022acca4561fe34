"""Derivatives by dense linear algebra and singular values, where machine code does not resolve them.

    [M, -J^T; J, R] [x; y] = [b; r],    M = L L^T,    W = J L^-T = U S V^T,    z = L^-1 b
    c = S^-1 U^T (r - W z),    x = L^-T (z + V c),    y = U S^-1 c       (without directions of S that are redundant)

Implicit differentiation (algorithms/derivatives/) needs such solutions only: the state's own, one for each column or
for the weights of a gradient, two more for second order. So the function is traced once more with solutions that are
asked for (`Asking`) instead of computed: M, J and right-hand sides are outputs of that program, and solutions its
inputs. NumPy interprets it, and answers what no open question is needed for. Rows are in units of their usual length,
and directions count as redundant at the singular values where forward dynamics counts them so (`Prox.redundant`). Where
a joint loses its inertia to rounding, all of it is in NumPy's longer type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwork.algorithms.common.activation import weigh
from linkwork.algorithms.common.iteration import Prox
from linkwork.algorithms.common.least_inertia import NEAR, is_lost
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.delassus.ltl import joint_columns
from linkwork.algorithms.derivatives.kkt_solution import Equations, Multipliers
from linkwork.algorithms.derivatives.limb_solution import whole_columns
from linkwork.backends.ops import Array
from linkwork.backends.triangular import cholesky, solve_lower, solve_upper
from linkwork.constraints.row_inertia import row_mobilities
from linkwork.constraints.rows import constraint_rows
from linkwork.kernels.programs.matrices import Matrix, Tracer
from linkwork.kernels.programs.trace import trace
from linkwork.lazy import cached_property

if TYPE_CHECKING:
    from linkwork.functions.differentiation.differentiated import Differentiated

Solve = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Solutions for columns of numbers."""


class Asking(Tracer):
    """A tracer whose program asks for the solutions of linear equations.

    `questions` are its further outputs: M, J and R, then b and r of each solution.
    """

    def __init__(self) -> None:
        super().__init__()
        self.questions: dict[str, Array] = {}
        self.columns: list[int] = []

    def answer(self, b: Matrix, r: Matrix) -> tuple[Matrix, Matrix]:
        """x and y, for columns."""
        k = len(self.columns)
        self.columns.append(b.shape[1])
        self.questions |= {f"question_b{k}": b, f"question_r{k}": r}
        found = (self.symbol(f"answer_{n}{k}", len(side.refs)) for n, side in (("x", b), ("y", r)))
        x, y = (Matrix(self.values, side.shape, s.refs) for side, s in zip((b, r), found, strict=True))
        return x, y


class Asked(Multipliers):
    """Accelerations `a` and multipliers, as kkt_solution.py has them, from answers of `Asking`."""

    def __init__(self, given: Equations, weights: tuple[Array, Array] | None = None) -> None:
        motion, M, c, tau, softness, active = given
        xp = motion.xp
        assert isinstance(xp, Asking)
        self.xp, (self.rows, self.roots) = xp, weigh(motion, constraint_rows(motion), active)
        columns = [joint_columns(motion, r) for r in self.rows]
        self.JT = whole_columns(columns, motion.model.nv, motion.model.rows, xp)
        R = xp.zeros(motion.model.rows) if softness is None else xp.vstack(list(softness))
        xp.questions = {"M": M, "JT": self.JT, "R": R}
        x, y = self.solve(tau - c, joint_targets(motion, self.rows))
        self.a, self.multipliers = xp.held(x), xp.held(y)
        if weights is not None:
            self.adjoint = self.solve(weights[0], -(weights[1] * self.roots))

    def solve(self, b: Array, r: Array) -> tuple[Array, Array]:
        """x and y, for columns."""
        return self.xp.answer(b, r)

    def row_forces(self, y: Array) -> Array:
        """J^T y."""
        return self.JT @ y


class DenseDerivatives:
    """Derivatives of solutions in single states, by singular values."""

    def __init__(self, function: Differentiated) -> None:
        self.function, self.xp = function, Asking()
        self.program = trace(
            function.name,
            lambda xp, symbol: {**function._written(xp, symbol), **self.xp.questions},
            shapes=function._shapes,
            on=self.xp,
        )
        self.length = np.sqrt(row_mobilities(function.model))
        self.names = [port.name for port in self.program.outputs if port.name not in self.xp.questions]

    def __call__(self, state: Sequence[np.ndarray]) -> dict[str, np.ndarray] | None:
        """The outputs for these inputs; None if the mass matrix is singular."""
        dtype = "float64"
        answers = self._unanswered(len(state))
        found = self._evaluated(state, answers, dtype)
        try:
            if is_lost(found["M"], NEAR):  # derivatives have the error of accelerations twice
                dtype = "longdouble"
                found = self._evaluated(state, answers, dtype)
                if is_lost(found["M"]):
                    return None
            solve = Resolved(found["M"], found["JT"].reshape(len(found["M"]), -1), found["R"], self.length)
        except np.linalg.LinAlgError:
            return None
        return self._answered(state, answers, found, solve, dtype)

    def _unanswered(self, inputs: int) -> dict[str, np.ndarray]:
        """Answers before they are known, of a function with so many inputs."""
        return {port.name: np.zeros(port.shape) for port in self.program.inputs[inputs:]}

    def _answered(
        self,
        state: Sequence[np.ndarray],
        answers: dict[str, np.ndarray],
        found: dict[str, np.ndarray],
        solve: Solve,
        dtype: str,
    ) -> dict[str, np.ndarray]:
        """The outputs, with solutions in place of `answers`; `found` are those without."""
        for questions in self.rounds:
            for k in questions:
                b, r = (found[f"question_{n}{k}"].reshape(-1, self.xp.columns[k]) for n in "br")
                answers[f"answer_x{k}"], answers[f"answer_y{k}"] = (x.ravel() for x in solve(b, r))
            found = self._evaluated(state, answers, dtype)
        return {n: found[n].astype(float) for n in self.names}

    @cached_property
    def rounds(self) -> list[list[int]]:
        """The questions, each in the round after those whose answers it is made of."""
        ports, after, level = self.program.inputs, dict[int, int](), list[int]()
        asked = {port.name: values for port, values in zip(self.program.outputs, self.program.results, strict=True)}
        for k in range(len(self.xp.columns)):
            # a question comes before all that is made of its answer
            level.clear()
            for node in self.program.nodes:
                if node[0] == "input":
                    name = ports[node[1]].name
                    level.append(after.get(int(name[8:]), 0) + 1 if name.startswith("answer_") else 0)
                else:
                    level.append(max((level[a] for a in node[1:]), default=0) if node[0] != "const" else 0)
            after[k] = max((level[v] for n in "br" for v in asked[f"question_{n}{k}"]), default=0)
        return [[k for k, own in after.items() if own == r] for r in range(max(after.values(), default=-1) + 1)]

    def _evaluated(
        self, state: Sequence[np.ndarray], answers: Mapping[str, np.ndarray], dtype: str
    ) -> dict[str, np.ndarray]:
        given = zip([*state, *answers.values()], self.program.inputs, strict=True)
        arrays = [x.reshape(port.shape) for x, port in given]
        outputs = self.program.interpret(*arrays, dtype=dtype)
        return {port.name: x for port, x in zip(self.program.outputs, outputs, strict=True)}


class Resolved:
    """Solves with the matrix of numbers above; rows of W have these usual lengths."""

    def __init__(self, M: np.ndarray, JT: np.ndarray, R: np.ndarray, length: np.ndarray) -> None:
        self.L, self.R, self.length = cholesky(M), R[:, None].astype(float), length[:, None]
        self.WT = solve_lower(self.L, JT).astype(float)
        u, s, vt = np.linalg.svd(self.WT.T / self.length, full_matrices=False)
        kept = s > Prox.redundant
        self.u, self.s, self.v = u[:, kept], s[kept, None], vt[kept].T

    def __call__(self, b: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = solve_lower(self.L, b)
        left = (r - self.WT.T @ z).astype(float)
        if self.R.any():  # soft
            y = np.linalg.solve(self.WT.T @ self.WT + np.diag(self.R[:, 0]), left)
            return solve_upper(self.L.T, z + self.WT @ y), y
        along = self.u.T @ (left / self.length) / self.s
        return solve_upper(self.L.T, z + self.v @ along), self.u @ (along / self.s) / self.length
