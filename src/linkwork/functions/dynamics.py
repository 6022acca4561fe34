"""Factories of dynamics functions: forward, inverse, with constraints, and impulses."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwork.algorithms.common.iteration import PROX, Iteration, Prox
from linkwork.algorithms.constrained.impact import impact
from linkwork.backends import Array, Ops
from linkwork.checks import ARRAY, FLAG, NAMES, POSITIVE, checked, number, optional
from linkwork.closure.actuation import actuated_freedoms, check_actuation
from linkwork.errors import InputError
from linkwork.functions.actuated import ActuatedFunction
from linkwork.functions.function import OPTIONS, Function
from linkwork.functions.judge import judge_of
from linkwork.functions.kinematics import FRAMES, METHOD, chosen_frames
from linkwork.functions.planning import USE, pick
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL
from linkwork.rewrite.inside import cheaper, inside


@checked(
    model=MODEL,
    method=METHOD,
    use=USE,
    independent=FLAG,
    external_forces=FLAG,
    prox=PROX,
    R=optional(ARRAY),
    modes=FLAG,
    frames=FRAMES,
    **OPTIONS,
)
def forward_dynamics(
    model: Model,
    *,
    method: str | None = None,
    use: str = "state",
    independent: bool = False,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
    external_forces: bool = False,
    prox: Prox | None = None,
    R: object = None,
    modes: bool = False,
    frames: str = "best",
) -> Function:
    """`fd(q, v, tau) -> (a, lam)`: M a + c = tau + J^T lam, J a = k.

    `q` has quaternions as [x y z w]; `a` are the joint accelerations, `lam` the forces that the constraints exert on
    the robot. `method=None` leaves the choice to the planner (`plan(model).explain()` says why): for `use` "state" or
    "batch", and with `independent=True`, which promises rows that are never redundant and postures that are never
    singular, also among methods without a proximal term.

    - `external_forces=True` adds an input `fext`: [force; torque] at each moving link's origin, in link axes, one link
      after the other.
    - `prox` sets penalty, tolerance and iterations of the methods that iterate; their results also have `iterations`
      and `residual`.
    - `R` (a number, or one per row) makes the constraints soft: lam = (k - J a) / R.
    - `modes=True` adds an input `active` with one weight per constraint: 0 switches it off for that state.
    - `frames="given"` computes in the model's own link frames and with its inertias as they are; kernels otherwise take
      what needs fewer operations for the same results.
    """
    model.check_forward()
    where = chosen_frames(frames, backend)
    chosen = pick(
        "forward_dynamics",
        method,
        model,
        use=use,
        independent=independent,
        soft=R is not None,
        modes=modes,
    )
    if prox is not None and chosen.prox is None:
        raise InputError(f"method '{chosen.name}' does not iterate: leave prox out")
    solve, softness = chosen.load(), _softness(model, R)

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array] | Iteration:
        options: dict[str, Any] = {}
        if chosen.prox is not None:
            options["mu"] = x["mu"][0, 0]
        if softness is not None:
            options["R"] = [xp.constant(r) for r in softness]
        if modes:
            options["active"] = x["active"]
        within = inside(model, where)
        out = within.solved(
            solve(within.motion(x["q"], x["v"], xp), within.force(x["tau"], xp), x.get("fext"), **options), xp
        )
        return out if isinstance(out, Iteration) else {"a": out[0], "lam": out[1]}

    inputs = {"q": model.nq, "v": model.nv, "tau": model.nv}
    defaults = {}
    if external_forces:
        inputs["fext"], defaults["fext"] = 6 * model.nlinks, np.zeros(6 * model.nlinks)
    if modes:
        inputs["active"], defaults["active"] = len(model.constraints), np.ones(len(model.constraints))
    return Function(
        "forward_dynamics",
        model,
        inputs,
        body,
        method=chosen.name,
        backend=backend,
        dtype=dtype,
        threads=threads,
        defaults=defaults,
        prox=prox or chosen.prox_for(dtype),
        identity=(external_forces, softness, modes, where),
        judge=judge_of(model, chosen) if not chosen.soft and model.constraints else None,
        retry=method is None,
    )


@checked(model=MODEL, method=METHOD, external_forces=FLAG, frames=FRAMES, **OPTIONS)
def inverse_dynamics(
    model: Model,
    *,
    method: str | None = None,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
    external_forces: bool = False,
    frames: str = "best",
) -> Function:
    """`id(q, v, a) -> (tau,)`: the joint forces M a + c for accelerations `a`; quaternions in `q` are [x y z w].

    With gears, belts or linkages (`c_rnea`) `tau` (nv) has the forces G^T (M a + c) of the independent joints that
    cause a consistent motion, and zeros for the dependent ones: `lw.clusters(model)` says which are which.
    """
    chosen = pick("inverse_dynamics", method, model)
    solve, where = chosen.load(), chosen_frames(frames, backend)

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"tau": solve(Motion(cheaper(model, where), x["q"], x["v"], xp), x["a"], x.get("fext"))}

    inputs, defaults = {"q": model.nq, "v": model.nv, "a": model.nv}, {}
    if external_forces:
        inputs["fext"], defaults["fext"] = 6 * model.nlinks, np.zeros(6 * model.nlinks)
    return Function(
        "inverse_dynamics",
        model,
        inputs,
        body,
        method=chosen.name,
        backend=backend,
        dtype=dtype,
        threads=threads,
        defaults=defaults,
        identity=(external_forces, where),
    )


@checked(model=MODEL, actuated=optional(NAMES), weight=POSITIVE, underactuated=FLAG, external_forces=FLAG, **OPTIONS)
def constrained_inverse_dynamics(
    model: Model,
    actuated: Sequence[str] | None = None,
    *,
    weight: float = 1e-3,
    underactuated: bool = False,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
    external_forces: bool = False,
) -> Function:
    """`cid(q, v, a) -> (tau, lam, residual)`: M a + c = B tau + J^T lam, for a consistent motion with constraints.

    `tau` (nv) has zeros where joints are not actuated; `actuated` names the joints that are (default: as the model
    says). Where actuators or rows are redundant, |tau|^2 + (weight |lam|)^2 is least: 1 N of constraint force costs as
    much as `weight` N m. Too few actuators for the ways to move are an ActuationError here, unless underactuated=True,
    which leaves it to the call: there accelerations that the actuators cannot cause are one (`residual`, relative, is
    what is missing). Quaternions in `q` are [x y z w].
    """
    from linkwork.algorithms.constrained.inverse import constrained_inverse

    driven = actuated_freedoms(model, actuated)
    if not underactuated:
        check_actuation(model, driven)

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        out = constrained_inverse(Motion(model, x["q"], x["v"], xp), x["a"], driven, weight, x.get("fext"))
        return dict(zip(("tau", "lam", "residual"), out, strict=True))

    inputs, defaults = {"q": model.nq, "v": model.nv, "a": model.nv}, {}
    if external_forces:
        inputs["fext"], defaults["fext"] = 6 * model.nlinks, np.zeros(6 * model.nlinks)
    return ActuatedFunction(
        "constrained_inverse_dynamics",
        model,
        inputs,
        body,
        backend=backend,
        dtype=dtype,
        threads=threads,
        defaults=defaults,
        shapes={"residual": ()},
    )


@checked(
    model=MODEL,
    restitution=number(0, 1, "between 0 (stays) and 1 (bounces back)"),
    method=METHOD,
    prox=PROX,
    modes=FLAG,
    **OPTIONS,
)
def impulse(
    model: Model,
    *,
    restitution: float = 0.0,
    method: str | None = None,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
    prox: Prox | None = None,
    modes: bool = False,
) -> Function:
    """`jump(q, v) -> (v_after, impulse)`: the velocity after all constraints set in at once, and their impulses.

    M (v+ - v) = J^T impulse and J v+ = -restitution J v, by any forward dynamics method for hard constraints.
    `modes=True` adds an input `active` with one weight per constraint: those with 0 do not set in.
    """
    model.check_forward()
    chosen = pick("forward_dynamics", method, model, modes=modes)
    if prox is not None and chosen.prox is None:
        raise InputError(f"method '{chosen.name}' does not iterate: leave prox out")
    solve = chosen.load()

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array] | Iteration:
        options: dict[str, Any] = {} if chosen.prox is None else {"mu": x["mu"][0, 0]}
        if modes:
            options["active"] = x["active"]
        at = Motion(cheaper(model, chosen_frames("best", backend)), x["q"], x["v"], xp)
        out = solve(impact(at, restitution), xp.zeros(model.nv), None, **options)
        if isinstance(out, Iteration):
            found = out.finish

            def finish(*state: Array) -> tuple[Array, Array]:
                jump, lam = found(*state)
                return x["v"] + jump, lam

            return replace(out, finish=finish)
        jump, lam = out if isinstance(out, tuple) else (out, xp.zeros(0))
        return {"v_after": x["v"] + jump, "impulse": lam}

    inputs, defaults = {"q": model.nq, "v": model.nv}, {}
    if modes:
        inputs["active"], defaults["active"] = len(model.constraints), np.ones(len(model.constraints))
    return Function(
        "impulse",
        model,
        inputs,
        body,
        defaults=defaults,
        method=chosen.name,
        backend=backend,
        dtype=dtype,
        threads=threads,
        prox=prox or chosen.prox_for(dtype),
        iterated=("v_after", "impulse"),
        identity=(restitution, modes),
        judge=judge_of(model, chosen, lambda m: impact(m, restitution)),
        retry=method is None,
    )


def _softness(model: Model, R: object) -> list[np.ndarray] | None:
    """R as one column per constraint."""
    if R is None:
        return None
    r = np.asarray(R, dtype=float)
    if r.shape not in ((), (model.rows,)) or not np.all(r > 0):
        raise InputError(f"R is a number above 0, or one for each of the {model.rows} rows")
    r = np.broadcast_to(r, (model.rows,))
    ends = np.cumsum([0, *(c.rows for c in model.constraints)])
    return [r[a:b, None] for a, b in itertools.pairwise(ends)]
