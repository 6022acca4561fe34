"""Factories of dynamics functions: forward, inverse, with constraints, and impulses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from linkwork.algorithms.common.iteration import PROX, Prox
from linkwork.algorithms.constrained.impact import impact
from linkwork.backends import Array, Ops
from linkwork.checks import ARRAY, FLAG, NAMES, POSITIVE, checked, number, optional
from linkwork.closure.actuation import actuated_freedoms, check_actuation
from linkwork.errors import UnsupportedError
from linkwork.functions.actuated import ActuatedFunction, LeastCost
from linkwork.functions.actuation import activations, check_actuators
from linkwork.functions.dense_judge import Judge, Rows, judge_of
from linkwork.functions.function import Function
from linkwork.functions.kinematics import FRAMES, METHOD, chosen_frames
from linkwork.functions.method_choice import Choice
from linkwork.functions.options import OPTIONS
from linkwork.functions.parameters import BY_CONTROL, BY_EFFECT, BY_FORCE, BY_ROWS, PARAMETERS, Inputs
from linkwork.functions.planning import USE
from linkwork.functions.recipes import factory
from linkwork.functions.results import (
    ConstrainedInverseDynamicsResult,
    ForwardDynamicsResult,
    ImpulseResult,
    InverseDynamicsResult,
)
from linkwork.functions.softness import softness_of, softness_vector
from linkwork.functions.solver import Solved, Solver
from linkwork.functions.solver_function import SolverFunction
from linkwork.model import Model, Motion
from linkwork.model.joint_forces import joint_forces
from linkwork.model.model import MODEL
from linkwork.rewrite.rewritten import Rewritten, in_place, rewritten


@checked(
    model=MODEL,
    method=METHOD,
    use=USE,
    independent=FLAG,
    external_forces=FLAG,
    prox=PROX,
    R=optional(ARRAY),
    modes=FLAG,
    warm_start=FLAG,
    frames=FRAMES,
    measure=FLAG,
    parameters=PARAMETERS,
    targets=FLAG,
    actuators=FLAG,
    **OPTIONS,
)
@factory
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
    warm_start: bool = False,
    frames: str = "best",
    measure: bool = False,
    parameters: Sequence[str] = (),
    targets: bool = False,
    actuators: bool = False,
) -> Function[ForwardDynamicsResult]:
    """`fd(q, v, tau) -> (a, lam)`: M a + c = tau + passive + J^T lam, J a = k.

    `q` has quaternions as [x y z w]; `a` are the joint accelerations, `lam` the forces that the constraints exert on
    the robot; the result also has `iterations`, `residual` and `converged`, whatever the method. Passive forces are
    those of the joints' springs and damping. `method=None` leaves the choice to the planner, at the first call
    (`fd.explain()` says why): for `use` "state" or "batch", and with `independent=True`, which promises rows that are
    never redundant and postures that are never singular, also among methods without a proximal term. It is made by
    prediction alone; `measure=True` also measures the fastest few.

    - `external_forces=True` adds an input `fext`: [force; torque] at each moving link's origin, in link axes, one link
      after the other.
    - `prox` sets penalty, tolerance and iterations of the methods that iterate.
    - `R` (a number, or one per row) makes the constraints soft: lam = (k - J a) / R.
    - `modes=True` adds an input `active` with one weight per constraint: 0 switches it off for that state.
    - `warm_start=True` adds an input `lam0` (m,), for each state, from which methods that iterate start: the `lam` of a
      state nearby (of the last time step, say) saves iterations. Zero is a cold start, also for constraints that just
      became active; it changes how soon the iteration ends, not where. Direct methods do not look at it.
    - `parameters` names groups of parameters that become inputs, one value or one per state, with `model.parameters()`
      as defaults: "inertia" (nlinks, 10), "armature", "gravity", "damping", "stiffness", "rest", the same of tendons
      ("tendon_stiffness", ...), "targets" (added to k of all rows), "link_rows" (K of LinkRows), "softness" (R).
      `targets=True` is short for parameters=("targets",).
    - `actuators=True` makes it `fd(q, v, u)`, with the controls `u` of the model's actuators (see `lw.actuation`);
      joint forces `tau` may be added, and "gain" and "bias" (nu, 3) be parameters. Actuators with a state have
      activations `act` (na,), by default zero.
    - `frames="given"` computes in the model's own link frames and with its inertias as they are; kernels otherwise
      compute with a rewritten model, which needs fewer operations for the same results.

    Examples:
        >>> model = quadruped().with_constraints(lw.point("front_left_foot"), lw.point("rear_right_foot"))
        >>> fd = lw.forward_dynamics(model)
        >>> q, v, tau = standing(model), np.zeros(model.nv), np.zeros(model.nv)
        >>> result = fd(q, v, tau)
        >>> result.a.shape, result.lam.shape, bool(result.converged)
        ((18,), (6,), True)
        >>> fd(np.tile(q, (100, 1)), v, tau).a.shape
        (100, 18)
    """
    model.check_forward()
    where, softness = chosen_frames(frames, backend), softness_of(model, R)
    chosen = Choice(
        "forward_dynamics",
        method,
        model,
        use=use,
        independent=independent,
        soft=R is not None,
        modes=modes,
        measure=measure,
        prox=prox,
    )
    _check_precision(chosen, dtype)

    def body(xp: Ops, x: Mapping[str, Array]) -> Solved:
        solver = Solver(chosen.method, rewritten(model, where), softness=softness)
        mu = x["mu"][0, 0] if "mu" in x else None
        return solver(xp, x["q"], x["v"], x["tau"], x.get("fext"), mu, x.get("active"), x, x.get("lam0"))

    named = (*parameters, "targets") if targets else parameters
    more = _optional(model, external_forces, modes)
    if warm_start:
        more["lam0"] = np.zeros(model.rows)
    driven = {"u": model.nu} if actuators else {"tau": model.nv}
    if actuators:
        check_actuators(model)
        more = {"tau": np.zeros(model.nv), **activations(model), **more}
    inputs = Inputs(
        model,
        named,
        (*BY_ROWS, *BY_CONTROL) if actuators else BY_ROWS,
        more,
        softness_vector(softness),
        q=model.nq,
        v=model.nv,
        **driven,
    )
    return SolverFunction(
        "forward_dynamics",
        model,
        inputs.sizes,
        body,
        method=chosen,
        result=ForwardDynamicsResult,
        backend=backend,
        dtype=dtype,
        threads=threads,
        defaults=inputs.defaults,
        shapes=inputs.shapes,
        identity=(external_forces, softness, modes, warm_start, where, actuators, *inputs.identity),
        prox=prox,
        judge=_judge(model, chosen) if R is None else None,
        rows=Rows(model, softness=softness) if model.constraints else None,
        retry=method is None,
    )


@checked(model=MODEL, method=METHOD, external_forces=FLAG, frames=FRAMES, parameters=PARAMETERS, **OPTIONS)
@factory
def inverse_dynamics(
    model: Model,
    *,
    method: str | None = None,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
    external_forces: bool = False,
    frames: str = "best",
    parameters: Sequence[str] = (),
) -> Function[InverseDynamicsResult]:
    """`id(q, v, a) -> (tau,)`: the joint forces M a + c - passive for accelerations `a`.

    With gears, belts or linkages (`c_rnea`) `tau` (nv) has the forces G^T (M a + c) of the independent joints that
    cause a consistent motion, and zeros for the dependent ones: `lw.clusters(model)` says which are which. Passive
    forces are those of springs and damping. `external_forces` and `parameters` are those of `forward_dynamics`, without
    rows; `method` is "rnea", or one for clusters. Quaternions in `q` are [x y z w].

    Examples:
        >>> model = chain(3)
        >>> lw.inverse_dynamics(model)(np.zeros(3), np.zeros(3), np.ones(3)).tau.shape
        (3,)
    """
    chosen, where = Choice("inverse_dynamics", method, model), chosen_frames(frames, backend)

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = in_place(model, where).motion(x["q"], x["v"], xp, x)
        applied = joint_forces(model, x["q"], x["v"], xp, x)
        return {"tau": chosen.method.load()(motion, x["a"], x.get("fext"), applied)}

    inputs = Inputs(model, parameters, BY_FORCE, _optional(model, external_forces), q=model.nq, v=model.nv, a=model.nv)
    return Function(
        "inverse_dynamics",
        model,
        inputs.sizes,
        body,
        method=chosen,
        result=InverseDynamicsResult,
        backend=backend,
        dtype=dtype,
        threads=threads,
        defaults=inputs.defaults,
        shapes=inputs.shapes,
        identity=(external_forces, where, *inputs.identity),
    )


@checked(
    model=MODEL,
    actuated=optional(NAMES),
    weight=POSITIVE,
    underactuated=FLAG,
    external_forces=FLAG,
    parameters=PARAMETERS,
    **OPTIONS,
)
@factory
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
    parameters: Sequence[str] = (),
) -> Function[ConstrainedInverseDynamicsResult]:
    """`cid(q, v, a) -> (tau, lam, residual)`: M a + c = B tau + passive + J^T lam.

    `tau` (nv) has zeros where joints are not actuated; `actuated` names the joints that are (default: as the model
    says). Where actuators or rows are redundant, |tau|^2 + (weight |lam|)^2 is least: 1 N of constraint force costs as
    much as `weight` N m. Too few actuators for all motions are an ActuationError here, unless underactuated=True; then
    a call with accelerations that the actuators cannot cause is one (`residual` is the relative error of the equation).
    `external_forces` and `parameters` are those of `forward_dynamics`.
    Quaternions in `q` are [x y z w].

    Examples:
        >>> model = four_bar()
        >>> q, v = lw.random_state(model, 0)
        >>> a = lw.forward_dynamics(model)(q, v, np.array([1.0, 0, 0])).a
        >>> tau = lw.constrained_inverse_dynamics(model, actuated=["crank_joint"])(q, v, a).tau
        >>> np.allclose(tau, [1, 0, 0])
        True
    """
    from linkwork.algorithms.constrained.inverse import constrained_inverse

    driven = actuated_freedoms(model, actuated)
    if not underactuated:
        check_actuation(model, driven)

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = Rewritten(model).motion(x["q"], x["v"], xp, x)
        applied = joint_forces(model, x["q"], x["v"], xp, x)
        out = constrained_inverse(motion, x["a"], driven, weight, x.get("fext"), applied, not underactuated)
        return dict(zip(("tau", "lam", "residual"), out, strict=True))

    more, valid = _optional(model, external_forces), (*BY_FORCE, "link_rows")
    inputs = Inputs(model, parameters, valid, more, q=model.nq, v=model.nv, a=model.nv)
    made: ActuatedFunction[ConstrainedInverseDynamicsResult] = ActuatedFunction(
        "constrained_inverse_dynamics",
        model,
        inputs.sizes,
        body,
        backend=backend,
        dtype=dtype,
        threads=threads,
        defaults=inputs.defaults,
        shapes={"residual": (), **inputs.shapes},
        identity=(external_forces, driven, weight, underactuated, *inputs.identity),
        result=ConstrainedInverseDynamicsResult,
    )
    made.least = LeastCost(driven, weight, enough=not underactuated)
    return made


@checked(
    model=MODEL,
    restitution=number(0, 1, "between 0 (stays) and 1 (bounces back)"),
    method=METHOD,
    prox=PROX,
    modes=FLAG,
    parameters=PARAMETERS,
    **OPTIONS,
)
@factory
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
    parameters: Sequence[str] = (),
) -> Function[ImpulseResult]:
    """`jump(q, v) -> (v_after, impulse)`: velocity after all constraints become active, and impulses.

    M (v+ - v) = J^T impulse and J v+ = -restitution J v, by any forward dynamics method for hard constraints; the
    result also has `iterations`, `residual` and `converged`. `modes=True` adds an input `active` with one weight per
    constraint: those with 0 do not become active. `parameters` may name "inertia", "armature" and "link_rows", as
    inputs. `prox` is that of `forward_dynamics`.

    Examples:
        >>> model = four_bar()
        >>> q, v = lw.random_state(model, 0)
        >>> np.allclose(lw.impulse(model)(q, v).v_after, v)
        True
    """
    model.check_forward()
    chosen = Choice("forward_dynamics", method, model, modes=modes, prox=prox)
    _check_precision(chosen, dtype)

    def at(motion: Motion) -> Motion:
        return impact(motion, restitution)

    def body(xp: Ops, x: Mapping[str, Array]) -> Solved:
        solver = Solver(chosen.method, in_place(model, chosen_frames("best", backend)), at)
        mu = x["mu"][0, 0] if "mu" in x else None
        found = solver(xp, x["q"], x["v"], xp.zeros(model.nv), None, mu, x.get("active"), x)
        return found.then(lambda jump, lam: (x["v"] + jump, lam))

    inputs = Inputs(model, parameters, BY_EFFECT, _optional(model, modes=modes), q=model.nq, v=model.nv)
    return SolverFunction(
        "impulse",
        model,
        inputs.sizes,
        body,
        method=chosen,
        result=ImpulseResult,
        backend=backend,
        dtype=dtype,
        threads=threads,
        defaults=inputs.defaults,
        shapes=inputs.shapes,
        identity=(restitution, modes, *inputs.identity),
        prox=prox,
        judge=_judge(model, chosen, at),
        rows=Rows(model, at),
        retry=method is None,
    )


def _optional(model: Model, external_forces: bool = False, modes: bool = False) -> dict[str, np.ndarray]:
    """The inputs that may be left out, with their defaults."""
    forces = {"fext": np.zeros(6 * model.nlinks)} if external_forces else {}
    return {**forces, "active": np.ones(len(model.constraints))} if modes else forces


def _judge(model: Model, chosen: Choice, at: Callable[[Motion], Motion] | None = None) -> Judge:
    """The judge of results that are not numbers; the planner never chooses a reference implementation."""
    return Judge(model, at) if chosen.named is None else judge_of(model, chosen.method, at)


def _check_precision(chosen: Choice, dtype: str) -> None:
    """Refuse dense least squares in float32: too few digits to tell redundant rows from conflicting ones."""
    if dtype == "float64" or chosen.named is None:
        return
    if chosen.method.least_squares:
        raise UnsupportedError(
            f"method '{chosen.named}' is the reference, in float64 only; methods that iterate take float32"
        )
