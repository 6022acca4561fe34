"""The factory of solutions of the damped KKT system of a model's constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwork.algorithms.constrained.kkt_factor import diagonal_factor, kkt_factor
from linkwork.backends import Array, Ops
from linkwork.checks import FLAG, checked
from linkwork.constraints.rows import constraint_rows
from linkwork.functions.function import OPTIONS, Function, factory
from linkwork.functions.results import KKTResult
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL


@checked(model=MODEL, diagonal=FLAG, **OPTIONS)
@factory
def kkt_solve(model: Model, *, diagonal: bool = False, **options: Any) -> Function[KKTResult]:
    """`ks(q, f, b, damping=0) -> (x, lam)`: M x = f + J^T lam,  J x + damping lam = b, by a sparse factorisation.

    `x` and `f` have nv entries, `lam` and `b` one for each row. Rows that depend on each other need a damping above 0.
    With `diagonal=True` M is a diagonal matrix, an input `weights` (nv, ones by default) after the damping: with f = 0
    and b = -phi, x is a step of inverse kinematics, the least one in these weights (carpentier2021 IV-D).
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
