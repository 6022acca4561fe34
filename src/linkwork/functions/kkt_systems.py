"""Damped KKT systems for users: the factorisation of numbers, and compiled solutions for a model.

The algorithm is algorithms/constrained/kkt_factor.py; the reference `kkt` of forward dynamics is constrained/kkt.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwork.algorithms.constrained.kkt_factor import KKTFactor, diagonal_factor, kkt_factor
from linkwork.algorithms.delassus.ltl import Columns
from linkwork.backends import Array, Ops, get
from linkwork.checks import FLAG, MATRIX, Kind, Refused, checked, checked_class, optional, several, whole
from linkwork.constraints.rows import constraint_rows
from linkwork.functions.function import Function
from linkwork.functions.options import OPTIONS
from linkwork.functions.recipes import factory
from linkwork.functions.results import KKTResult
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL


def _columns(value: object) -> object:
    if not isinstance(value, dict):
        raise Refused
    return {whole().checked("a dof", j, {}): MATRIX.checked("its column", x, {}) for j, x in value.items()}


COLUMNS = Kind("a dictionary {dof: 1 x m}", _columns)


@checked_class(
    M=MATRIX,
    rows=several(COLUMNS),
    R=several(MATRIX),
    parent=several(whole(-1)),
    least=optional(MATRIX),
)
class KKTCholesky(KKTFactor):
    """K = U D U^T of numbers: any positive definite M with the pattern of the tree `parent`, and any rows.

    `M` is n x n; its entry (i, j) is zero unless i supports j in the tree or j supports i (with `parent` -1 throughout,
    M is diagonal). `rows` has, for each constraint, J^T by degrees of freedom: `{dof: 1 x m_c}`; those it does not name
    are zero. `R` has one column m_c x 1 per constraint, the damping of each of its rows; without damping, `least` are
    the least pivots of rows. Vectors have the constraints' part first. `lw.kkt_solve` is compiled and batched.

    Examples:
        >>> M, J = np.diag([2.0, 4.0]), np.array([[1.0, 1.0]])
        >>> factor = lw.KKTCholesky(M, [{0: J[:, :1], 1: J[:, 1:]}], [np.array([[0.1]])], parent=(-1, -1))
        >>> b = np.array([[1.0], [0.0], [0.0]])
        >>> x = factor.solve(b)
        >>> np.allclose(factor.multiply(x), b), factor.osim.shape, factor.row_parents
        (True, (1, 1), [-1])
        >>> np.allclose(factor.solve_UT(factor.solve_D(factor.solve_U(b))), x)
        True
        >>> np.allclose(factor.multiply_U(factor.multiply_D(factor.multiply_UT(x))), b)
        True
    """

    def __init__(
        self,
        M: Array,
        rows: Sequence[Columns],
        R: Sequence[Array],
        parent: Sequence[int],
        least: Array | None = None,
    ) -> None:
        super().__init__(M, rows, R, parent, get("numpy"), least)


@checked(model=MODEL, diagonal=FLAG, **OPTIONS)
@factory
def kkt_solve(model: Model, *, diagonal: bool = False, **options: Any) -> Function[KKTResult]:
    """`ks(q, f, b, damping=0) -> (x, lam)`.

    M x = f + J^T lam,  J x + damping lam = b, by a sparse factorisation.

    `x` and `f` have nv entries, `lam` and `b` one for each row. Rows that depend on each other need a damping above 0.
    With `diagonal=True` M is a diagonal matrix, an input `weights` (nv, ones by default) after the damping: with f = 0
    and b = -phi, x is a step of inverse kinematics, the least one in these weights (carpentier2021 IV-D).

    Examples:
        >>> model = chain(7).with_constraints(lw.point("linktip"))
        >>> x = lw.kkt_solve(model, diagonal=True)(model.random_q(0), np.zeros(7), np.array([0.1, 0, 0])).x
        >>> x.shape
        (7,)
    """
    inputs = {"q": model.nq, "f": model.nv, "b": model.rows, "damping": 1}
    defaults = {"damping": np.zeros(1)}
    if diagonal:
        inputs["weights"], defaults["weights"] = model.nv, np.ones(model.nv)

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = Motion(model, x["q"], xp.zeros(model.nv), xp)
        rows = constraint_rows(motion)
        R = [x["damping"][0, 0] * xp.constant(np.ones((r.k.shape[0], 1))) for r in rows]
        least = xp.zeros(model.rows)  # pivots that are rounding of their rows' own entries count as zero
        if diagonal:
            factor = diagonal_factor(motion, x["weights"], rows, R, least)
        else:
            factor = kkt_factor(motion, rows, R, least)
        solved = factor.solve(xp.vstack([x["b"], x["f"]]))
        return {"x": solved[model.rows :, :], "lam": -solved[0 : model.rows, :]}

    return Function(
        "kkt_solve", model, inputs, body, result=KKTResult, identity=(diagonal,), defaults=defaults, **options
    )
