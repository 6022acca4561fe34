"""Factories of Delassus matrices and operational-space inertias."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from linkwork.algorithms.common.penalties import least_pivots
from linkwork.backends import Array, Ops
from linkwork.backends.ops import SINGULAR, threshold
from linkwork.checks import FLAG, checked, choice
from linkwork.errors import InputError
from linkwork.functions.dense_judge import Resolved
from linkwork.functions.function import Function, R
from linkwork.functions.kinematics import FRAMES, METHOD, chosen_frames
from linkwork.functions.method_choice import Choice
from linkwork.functions.options import OPTIONS
from linkwork.functions.parameters import BY_EFFECT, PARAMETERS, Inputs
from linkwork.functions.recipes import factory
from linkwork.functions.results import (
    DelassusOperatorResult,
    DelassusResult,
    OperationalSpaceFactorResult,
    OperationalSpaceInertiaResult,
    OperationalSpaceMatrixResult,
)
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL
from linkwork.rewrite.rewritten import in_place


@overload
def delassus(model: Model, *, method: Literal["pv_fast"], **options: Any) -> Function[DelassusOperatorResult]: ...
@overload
def delassus(model: Model, *, method: str | None = None, **options: Any) -> Function[DelassusResult]: ...
@checked(
    model=MODEL,
    method=METHOD,
    damping=FLAG,
    modes=FLAG,
    frames=FRAMES,
    measure=FLAG,
    parameters=PARAMETERS,
    **OPTIONS,
)
@factory
def delassus(
    model: Model,
    *,
    method: str | None = None,
    damping: bool = False,
    modes: bool = False,
    measure: bool = False,
    **options: Any,
) -> Function[Any]:
    """`dl(q) -> (matrix,)`: J M^-1 J^T, m x m, the inverse of the operational-space inertia.

    `method="pv_fast"` gives an operator instead, `dl(q, b) -> (solved, multiplied)`: Lambda b and Lambda^-1 b without
    the matrix. `method="c_efpa"` gives the matrix of the contacts of a robot whose local loops (gears, belts, linkages)
    are resolved: it returns only the rows outside clusters. Quaternions in `q` are [x y z w]. Without a method the
    planner chooses one at the first call, by prediction, or by measured times with `measure=True`.

    - `damping=True` adds an input `damping` (one number, 0 by default): J M^-1 J^T + damping 1.
    - `modes=True` adds an input `active` with one weight per constraint (of those whose rows the matrix has): rows and
      columns are multiplied by the roots of the weights, and with weight 0 they vanish.
    - `parameters` may name "inertia" and "armature": they become inputs, with the model's own as defaults.

    Examples:
        >>> model = four_bar()
        >>> lw.delassus(model)(model.neutral()).matrix.shape
        (5, 5)
    """
    chosen = Choice("delassus", method, model, measure=measure)
    if method is not None and chosen.method.operator:
        if damping or modes:
            raise InputError(
                f"method '{method}' forms no matrix: leave damping and modes out, or choose another method"
            )
        return _operator("delassus", model, chosen, DelassusOperatorResult, options)
    which = _of_rows(model, chosen)
    if len(which) < len(model.constraints) and not (damping or modes):
        options["judge"] = Resolved(model, which)

    def matrix(motion: Motion, A: Array, x: Mapping[str, Array]) -> Array:
        return A

    return _of_matrix("delassus", model, chosen, which, damping, modes, matrix, DelassusResult, options)


@overload
def operational_space_inertia(
    model: Model, *, method: str | None = None, output: Literal["force"] = "force", **options: Any
) -> Function[OperationalSpaceInertiaResult]: ...
@overload
def operational_space_inertia(
    model: Model, *, method: str | None = None, output: Literal["matrix"], **options: Any
) -> Function[OperationalSpaceMatrixResult]: ...
@overload
def operational_space_inertia(
    model: Model, *, method: str | None = None, output: Literal["factor"], **options: Any
) -> Function[OperationalSpaceFactorResult]: ...
@overload
def operational_space_inertia(model: Model, *, output: str, **options: Any) -> Function[Any]: ...
@checked(
    model=MODEL,
    method=METHOD,
    output=choice("output", ("force", "matrix", "factor")),
    damping=FLAG,
    modes=FLAG,
    frames=FRAMES,
    parameters=PARAMETERS,
    **OPTIONS,
)
@factory
def operational_space_inertia(
    model: Model,
    *,
    method: str | None = None,
    output: str = "force",
    damping: bool = False,
    modes: bool = False,
    **options: Any,
) -> Function[Any]:
    """`osim(q, b) -> (force,)`: Lambda b, the forces that accelerate the constraint rows by b.

    Rows must be independent, or damped. Any method of `delassus`; `pv_fast` never forms the dense matrix. `damping` and
    `modes` are those of `delassus`; constraints with weight 0 exert no force.

    - `output="matrix"`: `osim(q) -> (matrix,)`, Lambda itself, m x m.
    - `output="factor"`: `osim(q) -> (factor,)`, the lower triangle of C by rows, m (m + 1) / 2, with C C^T = Lambda^-1:
      `factored_solve(model)` solves with it for any number of right-hand sides.

    Examples:
        >>> model = chain(7).with_constraints(lw.point("linktip"))
        >>> force = lw.operational_space_inertia(model)(model.random_q(0), np.array([1.0, 0, 0]))[0]
        >>> force.shape
        (3,)
    """
    chosen = Choice("delassus", method, model)
    if method is not None and chosen.method.operator:
        if output != "force" or damping or modes:
            raise InputError(f"method '{method}' gives forces without damping and modes only; choose another method")
        return _operator("operational_space_inertia", model, chosen, OperationalSpaceInertiaResult, options)
    which = _of_rows(model, chosen)
    least = None if damping else which

    def force(motion: Motion, A: Array, x: Mapping[str, Array]) -> Array:
        on, A = _switched(model, which, motion.xp, A, x)
        return on * motion.xp.factor_spd(A, _least(motion, least)).solve(on * x["b"])

    def matrix(motion: Motion, A: Array, x: Mapping[str, Array]) -> Array:
        (on, A), xp = _switched(model, which, motion.xp, A, x), motion.xp
        inverse = xp.factor_spd(A, _least(motion, least)).solve(xp.eye(A.shape[0]))
        return xp.symmetric(_both_sides(xp, on, inverse) if modes else inverse)

    def factor(motion: Motion, A: Array, x: Mapping[str, Array]) -> Array:
        xp, A = motion.xp, _switched(model, which, motion.xp, A, x)[1]
        C, rows = xp.cholesky(A), list[Array]()
        for i in range(C.shape[0]):
            sound = C[i, i] * C[i, i] > threshold(xp, SINGULAR) * A[i, i]
            rows.append(C[i : i + 1, 0 : i + 1].T + xp.where(sound, 0.0, float("nan")))
        return xp.vstack([xp.zeros(0), *rows])

    made = {
        "force": (force, OperationalSpaceInertiaResult),
        "matrix": (matrix, OperationalSpaceMatrixResult),
        "factor": (factor, OperationalSpaceFactorResult),
    }
    return _of_matrix("operational_space_inertia", model, chosen, which, damping, modes, *made[output], options)


@checked(model=MODEL, **OPTIONS)
@factory
def factored_solve(model: Model, **options: Any) -> Function[OperationalSpaceInertiaResult]:
    """`fs(factor, b) -> (force,)`: Lambda b from a factor of `operational_space_inertia`.

    `factor` has the lower triangle of C by rows, C C^T force = b.

    Examples:
        >>> model = chain(7).with_constraints(lw.point("linktip"))
        >>> q, b = model.random_q(0), np.array([1.0, 0, 0])
        >>> factor = lw.operational_space_inertia(model, output="factor")(q).factor
        >>> force = lw.factored_solve(model)(factor, b).force
        >>> np.allclose(lw.delassus(model)(q).matrix @ force, b)
        True
    """
    m = model.rows

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        rows = [x["factor"][i * (i + 1) // 2 : (i + 1) * (i + 2) // 2, :].T for i in range(m)]
        C = xp.vstack([xp.zeros(0, m), *(xp.hstack([r, xp.zeros(1, m - 1 - i)]) for i, r in enumerate(rows))])
        return {"force": xp.solve_upper(C.T, xp.solve_lower(C, x["b"]))}

    inputs = {"factor": m * (m + 1) // 2, "b": m}
    return Function("factored_solve", model, inputs, body, result=OperationalSpaceInertiaResult, identity=(), **options)


class _OfInverse(Function[R]):
    """A function of M^-1."""

    factors_mass = True


def _of_matrix(
    name: str,
    model: Model,
    chosen: Choice,
    which: Sequence[int],
    damping: bool,
    modes: bool,
    of: Callable[[Motion, Array, Mapping[str, Array]], Array],
    result: type[Any],
    options: dict[str, Any],
) -> Function[Any]:
    """A function of the Delassus matrix of some constraints, damped and weighted by inputs if asked for."""
    where, (output,) = chosen_frames(options.pop("frames", "best"), options.get("backend", "kernel")), result._fields
    sizes = [model.constraints[n].rows for n in which]
    m, inputs, defaults = sum(sizes), {"q": model.nq}, dict[str, np.ndarray]()
    if output == "force":
        inputs["b"] = m
    if damping:
        defaults["damping"] = np.zeros(1)
    if modes:
        defaults["active"] = np.ones(len(which))

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = in_place(model, where).motion(x["q"], xp.zeros(model.nv), xp, x)
        A = chosen.method.load()(motion)
        if modes:
            roots = [xp.sqrt(x["active"][c, 0]) * xp.constant(np.ones((k, 1))) for c, k in enumerate(sizes)]
            root = xp.vstack([xp.zeros(0), *roots])
            A = xp.symmetric(_both_sides(xp, root, A))
        return {output: of(motion, A + x["damping"][0, 0] * xp.eye(m) if damping else A, x)}

    known = Inputs(model, options.pop("parameters", ()), BY_EFFECT, defaults, None, **inputs)
    shapes = {**known.shapes, **({output: (m, m)} if output == "matrix" else {})}
    identity = (where, output, damping, modes, *known.identity)
    return _OfInverse(
        name,
        model,
        known.sizes,
        body,
        method=chosen,
        result=result,
        identity=identity,
        shapes=shapes,
        defaults=known.defaults,
        **options,
    )


def _switched(model: Model, which: Sequence[int], xp: Ops, A: Array, x: Mapping[str, Array]) -> tuple[Array, Array]:
    """1 for rows that are active and 0 for others; the matrix with 1 added to the diagonal of these."""
    sizes = [model.constraints[n].rows for n in which]
    ones = [xp.constant(np.ones((k, 1))) for k in sizes]
    if "active" not in x:
        return xp.vstack([xp.zeros(0), *ones]), A
    on = xp.vstack([xp.zeros(0), *(xp.where(x["active"][c, 0] > 0, one, 0 * one) for c, one in enumerate(ones))])
    unit = xp.eye(sum(sizes))
    return on, A + xp.hstack([unit[:, i : i + 1] * (1 - on[i, 0]) for i in range(sum(sizes))])


def _both_sides(xp: Ops, r: Array, A: Array) -> Array:
    """diag(r) A diag(r)."""
    return xp.hstack([xp.zeros(A.shape[0], 0), *((A[:, j : j + 1] * r) * r[j, 0] for j in range(A.shape[1]))])


def _least(motion: Motion, which: Sequence[int] | None) -> Array | None:
    return None if which is None else least_pivots(motion, which)


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
        operator = chosen.method.load()(in_place(model, where).motion(x["q"], xp.zeros(model.nv), xp, x))
        values = (operator.solve, operator.multiply)
        return {n: f(x["b"]) for n, f in zip(result._fields, values, strict=False)}

    inputs = Inputs(model, options.pop("parameters", ()), BY_EFFECT, q=model.nq, b=model.rows)
    return _OfInverse(
        name,
        model,
        inputs.sizes,
        body,
        method=chosen,
        result=result,
        identity=(where, *inputs.identity),
        defaults=inputs.defaults,
        shapes=inputs.shapes,
        **options,
    )
