"""Factories of Delassus matrices and operational-space inertias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkwork.algorithms import registry
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.backends import Array, Ops
from linkwork.checks import checked
from linkwork.functions.function import OPTIONS, Function
from linkwork.functions.judge import Resolved
from linkwork.functions.kinematics import FRAMES, METHOD, chosen_frames, of_position
from linkwork.functions.planning import pick
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL
from linkwork.rewrite.inside import cheaper


@checked(model=MODEL, method=METHOD, frames=FRAMES, **OPTIONS)
def delassus(model: Model, *, method: str | None = None, **options: Any) -> Function:
    """`dl(q) -> (matrix,)`: J M^-1 J^T, m x m, the inverse of the operational-space inertia.

    `method="pv_fast"` gives an operator instead, `dl(q, b) -> (solved, multiplied)`: Lambda b and Lambda^-1 b without
    the matrix. `method="c_efpa"` gives the matrix of the contacts of a robot whose local loops (gears, belts,
    linkages) are resolved: rows of these are not in it. Quaternions in `q` are [x y z w].
    """
    chosen = pick("delassus", method, model)
    compute = chosen.load()
    if chosen.operator:
        return _operator(model, chosen.name, compute, ("solved", "multiplied"), options)
    which = _of_rows(model, chosen)
    rows = sum(model.constraints[n].rows for n in which)
    if chosen.outer_only:
        options["judge"] = Resolved(model, which)
    options["shapes"] = {"matrix": (rows, rows)}
    return of_position("delassus", model, lambda m: {"matrix": compute(m)}, chosen.name, options)


@checked(model=MODEL, method=METHOD, frames=FRAMES, **OPTIONS)
def operational_space_inertia(model: Model, *, method: str | None = None, **options: Any) -> Function:
    """`osim(q, b) -> (force,)`: Lambda b, the forces that accelerate the constraint rows by b (rows independent).

    Any method of `delassus`; `pv_fast` never forms the dense matrix.
    """
    chosen = pick("delassus", method, model)
    compute = chosen.load()
    if chosen.operator:
        return _operator(model, chosen.name, compute, ("force",), options)
    where = chosen_frames(options.pop("frames", "best"), options.get("backend", "kernel"))

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = Motion(cheaper(model, where), x["q"], xp.zeros(model.nv), xp)
        return {"force": xp.factor_spd(compute(motion), least_pivots(motion, which)).solve(x["b"])}

    which = _of_rows(model, chosen)
    inputs = {"q": model.nq, "b": sum(model.constraints[n].rows for n in which)}
    return Function("operational_space_inertia", model, inputs, body, method=chosen.name, **options)


def _of_rows(model: Model, chosen: registry.Method) -> Sequence[int]:
    """The constraints whose rows a Delassus matrix has: all, or those that are in no cluster."""
    if not chosen.outer_only:
        return range(len(model.constraints))
    from linkwork.structure.clusters import clusters

    return clusters(model).outer


def _operator(model: Model, method: str, compute: Any, names: tuple[str, ...], options: dict[str, Any]) -> Function:
    where = chosen_frames(options.pop("frames", "best"), options.get("backend", "kernel"))

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        operator = compute(Motion(cheaper(model, where), x["q"], xp.zeros(model.nv), xp))
        values = (operator.solve, operator.multiply)
        return {n: f(x["b"]) for n, f in zip(names, values, strict=False)}

    return Function("delassus", model, {"q": model.nq, "b": model.rows}, body, method=method, **options)
