"""Factories of Delassus matrices and operational-space inertias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkwork.algorithms.common.penalties import least_pivots
from linkwork.backends import Array, Ops
from linkwork.checks import FLAG, checked
from linkwork.functions.choice import Choice
from linkwork.functions.function import OPTIONS, Function, factory
from linkwork.functions.judge import Resolved
from linkwork.functions.kinematics import FRAMES, METHOD, chosen_frames, of_position
from linkwork.functions.results import DelassusOperatorResult, DelassusResult, OperationalSpaceInertiaResult
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.model.motion import motion_of
from linkwork.rewrite.rewritten import rewritten_model


@checked(model=MODEL, method=METHOD, frames=FRAMES, measure=FLAG, **OPTIONS)
@factory
def delassus(model: Model, *, method: str | None = None, measure: bool = False, **options: Any) -> Function[Any]:
    """`dl(q) -> (matrix,)`: J M^-1 J^T, m x m, the inverse of the operational-space inertia.

    `method="pv_fast"` gives an operator instead, `dl(q, b) -> (solved, multiplied)`: Lambda b and Lambda^-1 b without
    the matrix. `method="c_efpa"` gives the matrix of the contacts of a robot whose local loops (gears, belts, linkages)
    are resolved: it returns only the rows outside clusters. Quaternions in `q` are [x y z w]. Without a method the
    planner chooses one at the first call, by prediction, or by measured times with `measure=True`.
    """
    chosen = Choice("delassus", method, model, measure=measure)
    if method is not None and chosen.method.operator:
        return _operator("delassus", model, chosen, DelassusOperatorResult, options)
    which = _of_rows(model, chosen)
    rows = sum(model.constraints[n].rows for n in which)
    if len(which) < len(model.constraints):
        options["judge"] = Resolved(model, which)
    options["shapes"] = {"matrix": (rows, rows)}
    return of_position(
        "delassus", model, lambda m: {"matrix": chosen.method.load()(m)}, chosen, options, DelassusResult
    )


@checked(model=MODEL, method=METHOD, frames=FRAMES, **OPTIONS)
@factory
def operational_space_inertia(
    model: Model, *, method: str | None = None, **options: Any
) -> Function[OperationalSpaceInertiaResult]:
    """`osim(q, b) -> (force,)`: Lambda b, the forces that accelerate the constraint rows by b.

    Rows must be independent. Any method of `delassus`; `pv_fast` never forms the dense matrix.
    """
    chosen = Choice("delassus", method, model)
    if method is not None and chosen.method.operator:
        return _operator("operational_space_inertia", model, chosen, OperationalSpaceInertiaResult, options)
    where = chosen_frames(options.pop("frames", "best"), options.get("backend", "kernel"))
    which = _of_rows(model, chosen)

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = motion_of(rewritten_model(model, where), x["q"], xp.zeros(model.nv), xp)
        return {"force": xp.factor_spd(chosen.method.load()(motion), least_pivots(motion, which)).solve(x["b"])}

    return Function(
        "operational_space_inertia",
        model,
        {"q": model.nq, "b": sum(model.constraints[n].rows for n in which)},
        body,
        method=chosen,
        result=OperationalSpaceInertiaResult,
        identity=(where,),
        **options,
    )


def _of_rows(model: Model, chosen: Choice) -> Sequence[int]:
    """The constraints whose rows a Delassus matrix has: all, or those that are in no cluster.

    The planner chooses among methods with all of them.
    """
    if chosen.named is None or not chosen.method.outer_only:
        return range(len(model.constraints))
    from linkwork.structure.clusters import clusters

    return clusters(model).outer


def _operator(name: str, model: Model, chosen: Choice, result: Any, options: dict[str, Any]) -> Function[Any]:
    where = chosen_frames(options.pop("frames", "best"), options.get("backend", "kernel"))

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        operator = chosen.method.load()(motion_of(rewritten_model(model, where), x["q"], xp.zeros(model.nv), xp))
        values = (operator.solve, operator.multiply)
        return {n: f(x["b"]) for n, f in zip(result._fields, values, strict=False)}

    inputs = {"q": model.nq, "b": model.rows}
    return Function(name, model, inputs, body, method=chosen, result=result, identity=(where,), **options)
