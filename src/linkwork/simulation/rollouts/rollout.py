"""Rollouts: a whole horizon for thousands of states at once, inside one native loop.

The step is traced once (constrained_step.py): forces, constrained dynamics, integrator, in one straight line of
operations. The kernel runs it over time for each lane of each tile (kernels/calls/rollout.py); Python is not involved
in a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms.common.iteration import PROX, Prox
from linkwork.checks import (
    ARRAY,
    FLAG,
    NAME,
    NAMES,
    POSITIVE,
    TIME,
    check_memory,
    checked,
    choice,
    either,
    instance,
    optional,
    several,
    whole,
)
from linkwork.constraints import Stabilisation
from linkwork.constraints.collisions import CONTACTS, Pair
from linkwork.constraints.contact import GROUND, Contact, Ground, Surface
from linkwork.constraints.meshes import refuse_meshes
from linkwork.constraints.stabilisation import STABILISATION
from linkwork.errors import InputError, listing, not_found
from linkwork.functions.actuation import check_actuators
from linkwork.functions.method_choice import Choice
from linkwork.functions.options import OPTIONS
from linkwork.functions.parameters import PARAMETERS, Inputs
from linkwork.functions.softness import softness_of, softness_vector
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.simulation.records.trajectory import Trajectory
from linkwork.simulation.rollouts.rollout_energy import audit
from linkwork.simulation.rollouts.rollout_inputs import TIMED, counted, defaults_of, states_of, taken
from linkwork.simulation.rollouts.rollout_motion import motion_of
from linkwork.simulation.rollouts.rollout_numpy import executed
from linkwork.simulation.steps.constrained_step import EXTRAS, Step, by_step, stabilised, warn_of_friction
from linkwork.simulation.steps.contact_step import EXTRAS as CONTACT_EXTRAS
from linkwork.simulation.steps.contact_step import METHODS, ContactStep, contact_step
from linkwork.simulation.steps.drifted_loops import LoopDrift, warn_of_drift
from linkwork.simulation.steps.integrators import TRACEABLE
from linkwork.simulation.steps.pushes import PUSH_AXES, pushed
from linkwork.simulation.steps.step_interface import TimeStep

if TYPE_CHECKING:
    from linkwork.kernels.calls.rollout import RolloutKernel, RolloutProgram


@dataclass(frozen=True)
class RolloutResult:
    """States after every `every` steps: `q` (B, N, nq), `v` (B, N, nv), `t` (N,), and extras.

    `survived` says how many steps each state took before it failed; `ok` whether it took them all. A state that failed
    keeps its last valid configuration and velocity, and its extras are zero. One that gained energy without work,
    because steps are too long for its speed, has failed too, from the first record that shows it (energy_balance.py).
    With contacts, `forces` (B, N, contacts, 3) are in world axes; with actuators that have a state, `act` (B, N, na)
    are their activations. One state instead of a batch has no axis B.

    `residual` (B,) is the largest |J a - k| of any step that a state took, relative to the size of the terms that the
    rows are made of; with contacts, the largest violation of a law of contact, relative to velocities. `converged` (B,)
    says whether it is within the bound of the method and the precision: 1e-6 for methods that penalise all rows and for
    contacts (1e-4 in float32), 1e-6 / sqrt(mu) for methods that damp singular rows only (2e-4 / sqrt(mu)). It is False,
    with an OpenLoopWarning, too where loops of an overconstrained mechanism drifted open until redundant rows no longer
    are. Both are None without constraints and contacts. Rounding that a posture near a singular one amplifies is not in
    the residual.

    Examples:
        >>> result = lw.rollout(chain(3), dt=1e-3)(np.zeros((4, 3)), np.zeros(3), steps=10)
        >>> result.q.shape, bool(result.ok.all())
        ((4, 10, 3), True)
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    survived: np.ndarray
    ok: np.ndarray
    a: np.ndarray | None = None
    lam: np.ndarray | None = None
    tau: np.ndarray | None = None
    forces: np.ndarray | None = None
    residual: np.ndarray | None = None
    converged: np.ndarray | None = None
    act: np.ndarray | None = None


STEPS, EVERY = whole(1, what="a number of steps, at least 1"), whole(1, what="a number of steps, at least 1")
BACKEND = choice("backend for rollouts", ("kernel", "numpy"))


class Rollout:
    """`run(q0, v0, tau)`: see `rollout`. Nothing is planned, traced or compiled before it is needed.

    Examples:
        >>> run = lw.rollout(chain(3), dt=1e-3)
        >>> isinstance(run, lw.Rollout), run.operations > 0
        (True, True)
    """

    @checked(
        step=instance((Step, ContactStep), "a step, as lw.rollout makes it"),
        dt=TIME,
        steps=optional(STEPS),
        every=optional(EVERY),
        **{**OPTIONS, "backend": BACKEND},
        limit=POSITIVE,
    )
    def __init__(
        self,
        step: TimeStep,
        dt: float,
        steps: int | None,
        every: int | None,
        backend: str,
        dtype: str,
        threads: int | None,
        limit: float,
    ) -> None:
        self.step, self.model, self.integrator = step, step.model, step.integrator
        self.dt, self.steps, self.every, self.limit = dt, steps, every, limit
        self.backend, self.dtype, self.threads = backend, dtype, threads

    def __repr__(self) -> str:
        by = self.step.settled or "a method to be planned"
        return f"<rollout of '{self.model.name}' by {by} and {self.integrator}, {self.backend}>"

    def __reduce__(self) -> Any:
        made = self.dt, self.steps, self.every, self.backend, self.dtype, self.threads, self.limit
        return Rollout, (replace(self.step), *made)  # type: ignore[type-var]

    @property
    def method(self) -> str:
        """The name of the method of forward dynamics, planned when first needed."""
        return self.step.solver

    @property
    def operations(self) -> int:
        """Exact number of arithmetic operations of one step."""
        return int(self.step.cached_program.operations)

    @cached_property
    def kernel(self) -> RolloutKernel:
        """The native code."""
        from linkwork.kernels.calls.rollout import RolloutKernel

        return RolloutKernel(self.program, dtype=self.dtype, threads=self.threads)

    @cached_property
    def program(self) -> RolloutProgram:
        """The step, and which of its inputs are states and which change with time."""
        from linkwork.kernels.calls.rollout import RolloutProgram

        timed = [n for n in TIMED if n in self.step.inputs]
        return RolloutProgram(self.step.cached_program, self.step.state, timed, tuple(self.step.carried))

    @checked(steps=optional(STEPS), every=optional(EVERY), dt=optional(TIME))
    def __call__(
        self,
        q0: object,
        v0: object,
        tau: object = None,
        *,
        steps: int | None = None,
        every: int | None = None,
        dt: float | None = None,
        active: object = None,
        target: object = None,
        target_v: object = None,
        kp: object = None,
        kd: object = None,
        u: object = None,
        push: object = None,
        act: object = None,
        **parameters: object,
    ) -> RolloutResult:
        """Roll out from q0 (nq,) or (B, nq), with quaternions as [x y z w], and v0 (nv,) or (B, nv).

        `tau`, `u`, `active`, `target`, `target_v` and `push` change with time: (n,) is held all the time, (K, n) is for
        all states, (B, K, n) for each its own; each of the K values is held for steps / K steps. (B, n) is taken for
        values over time: write (B, 1, n) for constants of each state. `kp` and `kd` are numbers, (nv,) or (B, nv).
        Parameters that are inputs are given by name, one value or one for each state; so is the `friction` of contacts.
        `act` (na,) or (B, na) are activations at the start, zero by default.
        """
        given = {"q": q0, "v": v0, "tau": tau, "active": active, "dt": dt}
        given |= {
            "u": u,
            "push": push,
            "target": target,
            "target_v": target_v,
            "kp": kp,
            "kd": kd,
            "act": act,
            **parameters,
        }
        inputs, batch = taken(self.model, self.step.inputs, given, self.dtype, self.step.defaults, self._defaults)
        n, k = counted(steps if steps is not None else self.steps, every if every is not None else self.every, inputs)
        m, count = self.model, 1 if batch is None else batch
        kept = m.nq + m.nv + m.na + sum(prod(self.step.shapes[name]) for name in self.step.extras)
        check_memory(
            f"a record of {n // k} of {n} steps for {count} states",
            count * (n // k) * kept,
            "record less often with every=, or fewer states at a time",
        )
        out = self._rolled(inputs, n, k, count)
        if self.retried is not None:
            self._retry(inputs, n, k, out)
        survived = out.pop("survived")
        last = {n: out.pop(n)[:, 0] for n in self.step.carried}
        audit(self.step, self.backend, inputs, out, survived, n, k)
        if "worst" in last:
            out["residual"] = last["worst"][:, 0]
            out["converged"] = out["residual"] <= self.step.bound
            fine = out["converged"] | (survived < n)
            if not fine.all():
                self.step.warn("rollout", fine[0] if batch is None else fine)
            self._drifted(inputs, out)
        out |= {name: out[name].reshape(count, n // k, *self.step.shapes[name]) for name in self.step.extras}
        t = float(inputs["dt"][0]) * k * np.arange(1, n // k + 1)
        if batch is None:
            return RolloutResult(t, survived=survived[0], ok=survived[0] == n, **{m: x[0] for m, x in out.items()})
        return RolloutResult(t, survived=survived, ok=survived == n, **out)

    @checked(
        result=instance(RolloutResult, "a RolloutResult of this rollout"), state=whole(0, what="a number of a state")
    )
    def trajectory(self, result: RolloutResult, state: int = 0) -> Trajectory:
        """The motion of one state of a result, to plot, to save and to show (`lw.write_html`).

        With contacts `record` has to have "forces"; given to the page, `contacts` are drawn with their forces and
        friction cones, in another colour where they slip. `tau` and `lam` are zero unless they were recorded. Each row
        has the state after a step, and the forces in it.

        Examples:
            >>> run = lw.rollout(chain(3), dt=1e-3)
            >>> run.trajectory(run(np.ones((4, 3)), np.zeros(3), steps=10), 2).q.shape
            (10, 3)
        """
        single = result.q.ndim == 2
        if state >= (1 if single else len(result.q)):
            raise InputError(f"state={state}: the result has {1 if single else len(result.q)}, numbered from 0")
        found = {n: getattr(result, n) for n in ("tau", "lam", "forces")}
        tables = {n: x if x is None or single else x[state] for n, x in found.items()}
        q, v = (x if single else x[state] for x in (result.q, result.v))
        return motion_of(self.model, getattr(self.step, "contacts", ()), result.t, q, v, tables)

    @cached_property
    def _defaults(self) -> dict[str, np.ndarray]:
        """The inputs that may be left out."""
        return defaults_of(self.step.inputs, self.step.defaults, self.dt, self.dtype)

    def _rolled(self, inputs: dict[str, np.ndarray], n: int, k: int, count: int) -> dict[str, np.ndarray]:
        """What is recorded of n steps of `count` states."""
        run = self.kernel if self.backend == "kernel" else partial(executed, self.step)
        return run(n, k, {**inputs, "limit": np.array([self.limit]), **self.step.settings}, count)

    def _retry(self, inputs: dict[str, np.ndarray], n: int, k: int, out: dict[str, np.ndarray]) -> None:
        """Motions that have not converged, once more with more iterations; kept where that is better."""
        assert self.retried is not None
        again = np.flatnonzero(~(out["worst"][:, -1, 0] <= self.step.bound))
        if again.size:
            found = self.retried._rolled(states_of(inputs, again), n, k, len(again))
            better = found["survived"] >= out["survived"][again]
            better &= found["worst"][:, -1, 0] < out["worst"][again, -1, 0]
            for name, x in found.items():
                out[name][again[better]] = x[better]

    def _drifted(self, inputs: dict[str, np.ndarray], out: dict[str, np.ndarray]) -> None:
        """Motions of overconstrained mechanisms whose loops are too far open have not converged."""
        which = np.flatnonzero(out["converged"])
        if not (self.step.conflicts and which.size):
            return
        held = None
        if "active" in inputs:
            on = np.repeat(inputs["active"][..., -1, :] > 0, [c.rows for c in self.model.constraints], axis=-1)
            held = np.broadcast_to(on, (len(out["q"]), self.model.rows))[which]
        open_ones = self._drift(out["q"][which], held)
        out["converged"][which[open_ones]] = False
        if open_ones.any():
            warn_of_drift("rollout", ~out["converged"])

    @cached_property
    def _drift(self) -> LoopDrift:
        return LoopDrift(self.model, self.backend)

    @cached_property
    def retried(self) -> Rollout | None:
        """The rollout of states that have not converged by this one, with more iterations in a step."""
        step = self.step.retried
        if step is None:
            return None
        return Rollout(step, self.dt, None, None, self.backend, self.dtype, self.threads, self.limit)


@checked(
    model=MODEL,
    dt=TIME,
    integrator=choice("integrator for rollouts", TRACEABLE),
    steps=optional(STEPS),
    every=optional(EVERY),
    method=optional(NAME),
    modes=FLAG,
    pd=FLAG,
    prox=PROX,
    iterations=optional(whole(1, 1000, "a number of solver iterations in each step, at least 1")),
    R=optional(ARRAY),
    stabilisation=either(STABILISATION, FLAG),
    record=several(choice("quantity to record", dict.fromkeys([*EXTRAS, *CONTACT_EXTRAS]))),
    contacts=optional(CONTACTS),
    ground=optional(GROUND),
    limit=POSITIVE,
    parameters=PARAMETERS,
    actuators=FLAG,
    pushes=NAMES,
    push_axes=PUSH_AXES,
    **{**OPTIONS, "backend": BACKEND},
)
def rollout(
    model: Model,
    *,
    dt: float = 1e-3,
    integrator: str = "semi_implicit",
    steps: int | None = None,
    every: int | None = None,
    method: str | None = None,
    modes: bool = False,
    pd: bool = False,
    prox: Prox | None = None,
    iterations: int | None = None,
    R: object = None,
    stabilisation: Stabilisation | bool | None = None,
    record: Sequence[str] = (),
    contacts: Sequence[Contact | Pair] | None = None,
    ground: Surface | None = None,
    limit: float = 1e6,
    parameters: Sequence[str] = (),
    actuators: bool = False,
    pushes: Sequence[str] = (),
    push_axes: str = "world",
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
) -> Rollout:
    """`run(q0, v0, tau) -> result`: many steps of many states in one native call; see `Rollout.__call__`.

    - `integrator` is "semi_implicit" (default) or "rk4"; `steps` and `every` can be given here or in the call.
    - `method` is one of forward dynamics; proximal ones do `iterations` solver iterations in every step, with the
      penalty of `prox`. Those that sweep over links do one by default (two in every stage of "rk4"), from the forces of
      the last step; those that solve for all rows at once two, from zero; for an overconstrained mechanism all do
      three, from zero. How far they came is `result.residual`; states that have not converged are rolled out once more,
      with four (in float64, if neither `iterations` nor `prox` are given). Where that is not enough, or rows are in
      conflict, `result.converged` is False and there is a ConvergenceWarning.
    - `modes=True` adds the input `active`: one weight per constraint, which may change with time (contact schedules).
    - `pd=True` adds `kp`, `kd`, `target`, `target_v`: kp (target - q) + kd (target_v - v) + tau in actuated joints.
    - `stabilisation` (True: with a period of 30 steps, at most 0.1 s; or a `Stabilisation`) lets position errors of
      constraints decay.
    - `R` (a number, or one per row) makes constraints soft, as in `lw.forward_dynamics`: J a + R lam = k.
    - `parameters` names groups of parameters that become inputs, one value or one for each state, with
      `model.parameters()` as defaults: "inertia", "armature", "gravity", "damping", "stiffness", "rest", the same of
      tendons, "targets", "link_rows", "softness" (R); with contacts also "joint_friction" (dry). Coefficients of
      contacts are the input `friction` anyway.
    - `actuators=True` adds the input `u`: controls of the model's actuators (see `lw.actuation`), which change with
      time; "gain" and "bias" (nu, 3) may be parameters. Stiff servos are implicit in semi-implicit steps, as springs.
      Activations of actuators with a state start from the input `act`, and are recorded.
    - `pushes` names frames (or links) that external forces act on. It adds the input `push`, which changes with time:
      [force; torque] at the origin of each of these frames, in the axes of the "world" or of the "frame" (`push_axes`).
    - `record` names what is recorded besides q and v: "a", "lam", "tau"; "forces" of contacts.
    - `contacts` may touch the `ground` (default: z = 0), with Coulomb friction, and joints have limits: see `lw.step`.
      `method` is then "newton", "gauss_seidel", "active_set" or "admm"; `modes`, `prox`, `iterations` and "rk4" are for
      rollouts without.
    - A state longer than `limit`, or not a number, has failed: its lane stops, and `result.ok` says so. So has one that
      gained energy without work: take a shorter dt, or "rk4". Results do not depend on the number of `threads`, to the
      bit.

    Examples:
        >>> run = lw.rollout(chain(3), dt=1e-3)
        >>> result = run(np.zeros((64, 3)), np.zeros(3), steps=100, every=50)
        >>> result.q.shape
        (64, 2, 3)
    """
    model.check_forward()
    if actuators:
        check_actuators(model)
    model, softness = stabilised(model, stabilisation, dt), softness_of(model, R)
    if contacts is not None:
        if modes or prox is not None or iterations is not None or integrator != "semi_implicit":
            raise InputError("a rollout with contacts takes neither modes, prox nor iterations: it is semi-implicit")
        if method is not None and method not in METHODS:
            raise not_found("method for contacts", method, METHODS)
        refuse_meshes(contacts)
        wanted = tuple(n for n in CONTACT_EXTRAS if n in record)
        if len(wanted) < len(set(record)):
            raise InputError(f"a rollout with contacts records {listing(CONTACT_EXTRAS)}, not {listing(record)}")
        of = contact_step(
            model,
            contacts,
            ground or Ground(),
            pd=pd,
            extras=wanted,
            dtype=dtype,
            method=method,
            actuators=actuators,
            pushes=pushed(pushes, push_axes, model),
            parameters=parameters,
            softness=softness,
        )
        return Rollout(of, dt, steps, every, backend, dtype, threads, limit)
    warn_of_friction(model, "rollout")
    if ground is not None:
        raise InputError("ground= is for contacts=: name what may touch it")
    for name in record:
        if name not in EXTRAS:
            raise not_found("quantity to record", name, EXTRAS)
    step = Step(
        model,
        Choice("forward_dynamics", method, model, use="batch", soft=softness is not None, modes=modes, prox=prox),
        integrator,
        prox,
        iterations,
        modes,
        pd,
        tuple(n for n in EXTRAS if n in record),
        dtype,
        audited=True,
        parameters=Inputs(model, parameters, by_step(actuators), softness=softness_vector(softness)).named,
        actuators=actuators,
        pushes=pushed(pushes, push_axes, model),
        softness=softness,
    )
    return Rollout(step, dt, steps, every, backend, dtype, threads, limit)
