"""Factories of functions of the configuration: mass matrix, constraint Jacobian, frame placements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.checks import FLAG, NAME, NAMES, checked, choice, either, optional
from linkwork.functions.function import Function
from linkwork.functions.method_choice import Choice
from linkwork.functions.options import OPTIONS
from linkwork.functions.parameters import BY_MASS, PARAMETERS, Inputs
from linkwork.functions.recipes import factory
from linkwork.functions.results import (
    ConstraintErrorResult,
    ConstraintJacobianResult,
    ForwardKinematicsResult,
    MassEntriesResult,
    MassMatrixResult,
)
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL
from linkwork.model.motion import motion_of
from linkwork.rewrite.rewritten import in_place

R = TypeVar("R")
METHOD, FRAMES = optional(NAME), choice("choice of frames", ("best", "given"))


@overload
def mass_matrix(
    model: Model, *, method: str | None = None, packed: Literal[False] = False, **options: Any
) -> Function[MassMatrixResult]: ...
@overload
def mass_matrix(
    model: Model, *, method: str | None = None, packed: bool, **options: Any
) -> Function[MassMatrixResult] | Function[MassEntriesResult]: ...
@checked(model=MODEL, method=METHOD, packed=FLAG, frames=FRAMES, parameters=PARAMETERS, **OPTIONS)
@factory
def mass_matrix(model: Model, *, method: str | None = None, packed: bool = False, **options: Any) -> Function[Any]:
    """`mm(q) -> (M,)`: the joint-space mass matrix, nv x nv; quaternions in `q` are [x y z w].

    With `packed=True` the result is `(entries,)`, only the structural nonzeros of the lower triangle, at the rows and
    columns that `mass_pattern(model)` gives: in large batches most of the time is spent on writing zeros otherwise.
    `parameters` may name "inertia" and "armature": they become inputs, with the model's own as defaults. There is one
    `method`, "crba".

    Examples:
        >>> model = chain(3)
        >>> M = lw.mass_matrix(model)(np.zeros(3)).M
        >>> bool(np.linalg.eigvalsh(M).min() > 0)
        True
    """
    chosen = Choice("mass_matrix", method, model)
    crba = chosen.method.load()
    if packed:
        pattern = list(zip(*mass_pattern(model), strict=True))

        def entries(m: Motion) -> Mapping[str, Array]:
            M = crba(m)
            return {
                "entries": m.xp.vstack(
                    [m.xp.zeros(0), *(M[int(i) : int(i) + 1, int(j) : int(j) + 1] for i, j in pattern)]
                )
            }

        return of_position("mass_matrix", model, entries, chosen, options, MassEntriesResult, ("packed",))
    options["shapes"] = {"M": (model.nv, model.nv)}
    return of_position("mass_matrix", model, lambda m: {"M": crba(m)}, chosen, options, MassMatrixResult)


@checked(model=MODEL)
def mass_pattern(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the nonzero lower triangle of M: each dof and those that support it.

    Examples:
        >>> rows, columns = lw.mass_pattern(chain(2))
        >>> rows, columns
        (array([0, 1, 1]), array([0, 1, 0]))
        >>> lw.mass_matrix(chain(2), packed=True)(np.zeros(2)).entries.shape
        (3,)
    """
    parent, pairs = model.topology.dof_parent, []
    for i in range(model.nv):
        j = i
        while j >= 0:
            pairs.append((i, j))
            j = parent[j]
    rows, columns = np.array(pairs, dtype=int).reshape(-1, 2).T
    return rows, columns


@checked(model=MODEL, **OPTIONS)
@factory
def constraint_jacobian(model: Model, **options: Any) -> Function[ConstraintJacobianResult]:
    """`cj(q) -> (J,)`: the rows over joint velocities, m x nv; quaternions in `q` are [x y z w].

    Examples:
        >>> model = chain(3).with_constraints(lw.point("linktip"))
        >>> lw.constraint_jacobian(model)(np.zeros(3)).J.shape
        (3, 3)
    """
    from linkwork.constraints import jacobian

    options["shapes"] = {"J": (model.rows, model.nv)}
    return of_position(
        "constraint_jacobian", model, lambda m: {"J": jacobian(m)}, "", options, ConstraintJacobianResult
    )


@checked(model=MODEL, **OPTIONS)
@factory
def constraint_error(model: Model, **options: Any) -> Function[ConstraintErrorResult]:
    """`ce(q, v) -> (phi, rate)`: errors of the constraints, in position and in velocity J v.

    Examples:
        >>> model = four_bar()
        >>> q, v = lw.random_state(model, 0)
        >>> bool(np.abs(lw.constraint_error(model)(q, v).phi).max() < 1e-9)
        True
    """
    from linkwork.constraints import position_error, velocity_error

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = motion_of(model, x["q"], x["v"], xp)
        return {"phi": position_error(motion), "rate": velocity_error(motion)}

    inputs = {"q": model.nq, "v": model.nv}
    return Function("constraint_error", model, inputs, body, identity=(), result=ConstraintErrorResult, **options)


@checked(model=MODEL, frames=optional(either(NAME, NAMES)), **OPTIONS)
@factory
def forward_kinematics(
    model: Model, frames: str | Sequence[str] | None = None, **options: Any
) -> Function[ForwardKinematicsResult]:
    """`fk(q) -> (positions, rotations)`: (F, 3), (F, 3, 3) of frames (default: all links) in the world.

    One name instead of a list gives (3,) and (3, 3). Quaternions in `q` are [x y z w].

    Examples:
        >>> fk = lw.forward_kinematics(chain(3), "linktip")
        >>> fk(np.zeros(3)).positions.shape, fk(np.zeros((100, 3))).rotations.shape
        ((3,), (100, 3, 3))
    """
    from linkwork.algorithms.tree.kinematics import frame_placement

    one = isinstance(frames, str)
    names = [frames] if isinstance(frames, str) else [l.name for l in model.links[1:]] if frames is None else [*frames]
    places = [model.frame(n) for n in names]

    def body(m: Motion) -> Mapping[str, Array]:
        poses = [frame_placement(m, f) for f in places]
        none = m.xp.zeros(0, 3)
        return {
            "positions": m.xp.vstack([none, *(p.T for _, p in poses)]),
            "rotations": m.xp.vstack([none, *(R for R, _ in poses)]),
        }

    lead = () if one else (len(names),)
    options["shapes"] = {"positions": (*lead, 3), "rotations": (*lead, 3, 3)}
    return of_position("forward_kinematics", model, body, "", options, ForwardKinematicsResult, (names, one))


def of_position(
    name: str,
    model: Model,
    of: Callable[[Motion], Mapping[str, Array]],
    method: Choice | str,
    options: dict[str, Any],
    result: type[R],
    identity: tuple[Any, ...] = (),
) -> Function[R]:
    """A function of q; `identity` is what it depends on besides its model and method."""
    # without a method it computes in the user's own frames
    where = chosen_frames(options.pop("frames", "best"), options.get("backend", "kernel")) if method else "given"

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        return of(in_place(model, where).motion(x["q"], xp.zeros(model.nv), xp, x))

    inputs = Inputs(model, options.pop("parameters", ()), BY_MASS, q=model.nq)
    options["shapes"] = {**options.get("shapes", {}), **inputs.shapes}
    return Function(
        name,
        model,
        inputs.sizes,
        body,
        method=method,
        result=result,
        identity=(*identity, where, *inputs.identity),
        defaults=inputs.defaults,
        **options,
    )


def chosen_frames(frames: str, backend: str) -> str:
    """Which frames to compute in: only kernels use others than the model's."""
    return frames if backend == "kernel" else "given"
