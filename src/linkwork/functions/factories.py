"""The factories: from a model to a function of its dynamics."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import PROX, Iteration, Prox
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.algorithms.constrained.impact import impact
from linkwork.backends import Array, Ops
from linkwork.checks import ARRAY, FLAG, NAME, NAMES, POSITIVE, checked, choice, either, number, optional
from linkwork.closure.actuation import actuated_freedoms, check_actuation
from linkwork.errors import InputError
from linkwork.functions.actuated import ActuatedFunction
from linkwork.functions.function import OPTIONS, Function
from linkwork.functions.judge import Judge
from linkwork.io.load import SOURCE, load
from linkwork.model import Model, Motion
from linkwork.model.digest import digest
from linkwork.model.model import MODEL
from linkwork.planner.cost import machine
from linkwork.planner.plan import USES, Plan, choose, kept, restored, timed, unsuitable
from linkwork.planner.trees import Cuts, search
from linkwork.rewrite.inside import cheaper, inside

TASKS, USE = ("forward_dynamics", "delassus"), choice("use", USES)
METHOD, FRAMES = optional(NAME), choice("choice of frames", ("best", "given"))


@checked(
    model=MODEL,
    task=choice("task to plan", TASKS),
    use=USE,
    independent=FLAG,
    soft=FLAG,
    modes=FLAG,
    measure=either(FLAG, choice("measure", ("ties",))),
)
def plan(
    model: Model,
    task: str = "forward_dynamics",
    *,
    use: str = "state",
    independent: bool = False,
    soft: bool = False,
    modes: bool = False,
    measure: bool | str = False,
) -> Plan:
    """The methods for a task ("forward_dynamics", "delassus") by predicted time: `print(plan(model).explain())`.

    `use` is "state" (one at a time) or "batch". `independent=True` promises constraint rows that are never redundant
    and postures that are never singular, so that methods without a proximal term count too. `soft` and `modes` are
    for functions with softness `R` and with the input `active`.

    `measure=True` compiles the methods that are predicted to come near the best, times them on random states, and takes
    the quickest; that is remembered in the cache, for this plan and for all functions made without `method=`. These
    measure "ties" themselves: only what predictions cannot tell apart, and only once.
    """
    from linkwork.kernels import recall

    able = registry.able(task, model, soft=soft, modes=modes)

    def reason(m: registry.Method) -> str:
        refusal = m.refusal(model, soft, modes)
        return unsuitable(m, model, independent, modes) if refusal is None else refusal

    def program(name: str, limit: int | None) -> Any:
        if task == "delassus":
            return delassus(model, method=name).traced(limit)
        return forward_dynamics(model, method=name, R=1.0 if soft else None, modes=modes).traced(limit)

    content = digest("plan", model, task, use, independent, soft, modes, asdict(machine()))
    methods = [(m, reason(m)) for m in registry.methods(task).values()]
    if all(why for _, why in methods):
        methods = [(m, "" if m is able[0] else why) for m, why in methods]
    made = restored(recall.noted(content, lambda: kept(choose(model, task, use, methods, program))), task, use)
    on_clock = None if content is None else f"{content} measured"
    found = None if measure is True else recall.known(on_clock)
    contest = made.near if measure is True else made.tied if measure and found is None else []
    if contest:
        from linkwork.planner.iterations import samples
        from linkwork.planner.stopwatch import timings

        given, known = samples(model), registry.methods(task)
        if given or measure is True:
            programs = [(known[c.method], program(c.method, None)) for c in contest]
            recall.keep(on_clock, found := timings(programs, given, USES if measure is True else (use,)))
    return made if found is None else timed(made, found)


@checked(source=SOURCE, use=USE, independent=FLAG)
def best_cuts(source: str | os.PathLike[str], *, use: str = "state", independent: bool = False, **options: Any) -> Cuts:
    """Where to cut the loops of a file's joint graph (SDF): ``lw.load(file, cut=lw.best_cuts(file).joints)``.

    The spanning tree is searched for by exchanging cut joints, with forward dynamics planned for each (a second or two
    for each tree). `use` and `independent` are those of :func:`plan`, `options` those of :func:`load`, without `cut`.
    """

    def predict(model: Model) -> float:
        return float(getattr(plan(model, use=use, independent=independent).best, use))

    return search(lambda cut: load(source, cut=cut, **options), predict)


def pick(
    task: str,
    method: str | None,
    model: Model,
    *,
    use: str = "state",
    independent: bool = False,
    soft: bool = False,
    modes: bool = False,
    compiled: bool = False,
) -> registry.Method:
    """The method of this name, if it can handle the model; without a name the one that the planner chooses.

    Ties are timed only for what is going to be `compiled` as it is.
    """
    if method is not None:
        return registry.named(task, method, model, soft=soft, modes=modes)
    able = registry.able(task, model, soft=soft, modes=modes)
    suitable = [m for m in able if not unsuitable(m, model, independent, modes)] or able[:1]
    if len(suitable) == 1 or task not in ("forward_dynamics", "delassus"):
        return suitable[0]
    chosen = plan(
        model, task, use=use, independent=independent, soft=soft, modes=modes, measure="ties" if compiled else False
    ).method
    return registry.methods(task)[chosen]


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
    where = _frames(frames, backend)
    chosen = pick(
        "forward_dynamics",
        method,
        model,
        use=use,
        independent=independent,
        soft=R is not None,
        modes=modes,
        compiled=backend == "kernel",
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
        judge=Judge(model) if not chosen.soft and model.constraints else None,
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
    solve, where = chosen.load(), _frames(frames, backend)

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
        at = Motion(cheaper(model, _frames("best", backend)), x["q"], x["v"], xp)
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
        judge=Judge(model, lambda m: impact(m, restitution)),
        retry=method is None,
    )


@checked(model=MODEL, method=METHOD, frames=FRAMES, **OPTIONS)
def delassus(model: Model, *, method: str | None = None, **options: Any) -> Function:
    """`dl(q) -> (matrix,)`: J M^-1 J^T, m x m, the inverse of the operational-space inertia.

    `method="pv_fast"` gives an operator instead, `dl(q, b) -> (solved, multiplied)`: Lambda b and Lambda^-1 b without
    the matrix. `method="c_efpa"` gives the matrix of the contacts of a robot whose local loops (gears, belts,
    linkages) are resolved: rows of these are not in it. Quaternions in `q` are [x y z w].
    """
    chosen = pick("delassus", method, model, compiled=options.get("backend", "kernel") == "kernel")
    compute = chosen.load()
    if chosen.operator:
        return _operator(model, chosen.name, compute, ("solved", "multiplied"), options)
    rows = sum(model.constraints[n].rows for n in _of_rows(model, chosen))
    options["shapes"] = {"matrix": (rows, rows)}
    return _of_position("delassus", model, lambda m: {"matrix": compute(m)}, chosen.name, options)


@checked(model=MODEL, method=METHOD, frames=FRAMES, **OPTIONS)
def operational_space_inertia(model: Model, *, method: str | None = None, **options: Any) -> Function:
    """`osim(q, b) -> (force,)`: Lambda b, the forces that accelerate the constraint rows by b (rows independent).

    Any method of `delassus`; `pv_fast` never forms the dense matrix.
    """
    chosen = pick("delassus", method, model)
    compute = chosen.load()
    if chosen.operator:
        return _operator(model, chosen.name, compute, ("force",), options)
    where = _frames(options.pop("frames", "best"), options.get("backend", "kernel"))

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = Motion(cheaper(model, where), x["q"], xp.zeros(model.nv), xp)
        return {"force": xp.factor_spd(compute(motion), least_pivots(motion, which)).solve(x["b"])}

    which = _of_rows(model, chosen)
    inputs = {"q": model.nq, "b": sum(model.constraints[n].rows for n in which)}
    return Function("operational_space_inertia", model, inputs, body, method=chosen.name, **options)


def _of_rows(model: Model, chosen: registry.Method) -> Sequence[int]:
    """The constraints whose rows a Delassus matrix has: all, or those that are in no cluster."""
    if not chosen.embeds:
        return range(len(model.constraints))
    from linkwork.structure.clusters import clusters

    return clusters(model).outer


def _operator(model: Model, method: str, compute: Any, names: tuple[str, ...], options: dict[str, Any]) -> Function:
    where = _frames(options.pop("frames", "best"), options.get("backend", "kernel"))

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        operator = compute(Motion(cheaper(model, where), x["q"], xp.zeros(model.nv), xp))
        values = (operator.solve, operator.multiply)
        return {n: f(x["b"]) for n, f in zip(names, values, strict=False)}

    return Function("delassus", model, {"q": model.nq, "b": model.rows}, body, method=method, **options)


@checked(model=MODEL, method=METHOD, packed=FLAG, frames=FRAMES, **OPTIONS)
def mass_matrix(model: Model, *, method: str | None = None, packed: bool = False, **options: Any) -> Function:
    """`mm(q) -> (M,)`: the joint-space mass matrix, nv x nv; quaternions in `q` are [x y z w].

    With `packed=True` the result is `(entries,)`, only what a tree can make nonzero of the lower triangle, at the rows
    and columns that `mass_pattern(model)` gives: for large batches most of the time goes into writing zeros otherwise.
    """
    chosen = pick("mass_matrix", method, model)
    crba = chosen.load()
    if packed:
        pattern = list(zip(*mass_pattern(model), strict=True))

        def entries(m: Motion) -> Mapping[str, Array]:
            M = crba(m)
            return {
                "entries": m.xp.vstack(
                    [m.xp.zeros(0), *(M[int(i) : int(i) + 1, int(j) : int(j) + 1] for i, j in pattern)]
                )
            }

        return _of_position("mass_matrix", model, entries, chosen.name, options)
    options["shapes"] = {"M": (model.nv, model.nv)}
    return _of_position("mass_matrix", model, lambda m: {"M": crba(m)}, chosen.name, options)


@checked(model=MODEL)
def mass_pattern(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the lower triangle of M that a tree can make nonzero: each dof and those that carry it."""
    parent, pairs = model.topology.dof_parent, []
    for i in range(model.nv):
        j = i
        while j >= 0:
            pairs.append((i, j))
            j = parent[j]
    rows, columns = np.array(pairs, dtype=int).reshape(-1, 2).T
    return rows, columns


@checked(model=MODEL, **OPTIONS)
def constraint_jacobian(model: Model, **options: Any) -> Function:
    """`cj(q) -> (J,)`: the constraint rows over joint velocities, m x nv; quaternions in `q` are [x y z w]."""
    from linkwork.constraints import jacobian

    options["shapes"] = {"J": (model.rows, model.nv)}
    return _of_position("constraint_jacobian", model, lambda m: {"J": jacobian(m)}, "", options)


@checked(model=MODEL, **OPTIONS)
def constraint_error(model: Model, **options: Any) -> Function:
    """`ce(q, v) -> (phi, rate)`: how far the constraints are from holding, in position and in velocity J v."""
    from linkwork.constraints import position_error, velocity_error

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = Motion(model, x["q"], x["v"], xp)
        return {"phi": position_error(motion), "rate": velocity_error(motion)}

    return Function("constraint_error", model, {"q": model.nq, "v": model.nv}, body, **options)


@checked(model=MODEL, frames=optional(NAMES), **OPTIONS)
def forward_kinematics(model: Model, frames: Sequence[str] | None = None, **options: Any) -> Function:
    """`fk(q) -> (positions, rotations)`: (F, 3) and (F, 3, 3) of frames (default: all links) in the world."""
    from linkwork.algorithms.tree.kinematics import frame_placement

    names = [l.name for l in model.links[1:]] if frames is None else list(frames)
    places = [model.frame(n) for n in names]

    def body(m: Motion) -> Mapping[str, Array]:
        poses = [frame_placement(m, f) for f in places]
        none = m.xp.zeros(0, 3)
        return {
            "positions": m.xp.vstack([none, *(p.T for _, p in poses)]),
            "rotations": m.xp.vstack([none, *(R for R, _ in poses)]),
        }

    options["shapes"] = {"positions": (len(names), 3), "rotations": (len(names), 3, 3)}
    return _of_position("forward_kinematics", model, body, "", options)


def _of_position(name: str, model: Model, of: Any, method: str, options: dict[str, Any]) -> Function:
    # without a method it is about the user's own frames
    where = _frames(options.pop("frames", "best"), options.get("backend", "kernel")) if method else "given"

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        result: Mapping[str, Array] = of(Motion(cheaper(model, where), x["q"], xp.zeros(model.nv), xp))
        return result

    return Function(name, model, {"q": model.nq}, body, method=method, **options)


def _frames(frames: str, backend: str) -> str:
    """Which frames to compute in: only kernels, which nobody reads, leave those of the model."""
    return frames if backend == "kernel" else "given"


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
