"""Time steps for frameworks that differentiate: those of `lw.discrete_step` and of `lw.rollout`.

A rollout loops over so many solver iterations, from the forces of the last step, with the penalty that time steps have.
The derivatives of its step are those of this computation, so that a gradient through a rollout is the gradient of what
the rollout computes, where rows depend on each other too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from linkwork.backends import Array, Ops
from linkwork.checks import instance
from linkwork.errors import InputError, UnsupportedError, not_found
from linkwork.functions.function import Function
from linkwork.learn.products import Family
from linkwork.rewrite.rewritten import rewritten
from linkwork.simulation.optimal_control.discrete_step import DiscreteStep
from linkwork.simulation.rollouts.rollout import Rollout
from linkwork.simulation.rollouts.rollout_inputs import DEFAULTS, TIMED
from linkwork.simulation.steps.constrained_step import Step


class Arguments(NamedTuple):
    """The start, what else steps hand on, what is held, what changes with time, steps and batch."""

    q: Any
    v: Any
    carried: dict[str, Any]
    held: dict[str, Any]
    moving: dict[str, Any]
    steps: int
    lead: tuple[int, ...]


FUNCTION = instance((Function, DiscreteStep), "a function, as lw.forward_dynamics(model) is, or a lw.discrete_step")
ROLLOUT = instance(Rollout, "a rollout, as lw.rollout(model) is")


class Motion(NamedTuple):
    """States after a step or over time: `q`, `v`, and whether the solver of each step has `converged`."""

    q: Any
    v: Any
    converged: Any


class SplitStep:
    """A discrete step: dynamics, then the integrator, each with its own derivatives.

    `function` makes a function of a framework of one of Linkwork's.
    """

    def __init__(self, of: DiscreteStep, function: Callable[..., Any], framework: str) -> None:
        if of.na:
            raise UnsupportedError(
                f"{of.na} actuators have a state, which discrete steps for {framework} have not: take the rollout of "
                "lw.rollout(model, actuators=True), which has"
            )
        self.of, self._framework = of, framework
        self._dynamics, self._next = function(of.dynamics), function(of.integrator)
        self._armature = function(of.armature) if of.varying else None

    def __repr__(self) -> str:
        return f"{self.of!r} for {self._framework}"

    def __call__(self, q: Any, v: Any, u: Any, **parameters: Any) -> Motion:
        given = dict(parameters)
        for n in given:
            if n not in self.of.parameters:
                raise not_found("parameter of this step", n, self.of.parameters)
        if self._armature is not None:
            given["armature"] = self._armature(q, v, u, **self.of.stiffening(parameters)).armature
        solved = self._dynamics(q, v, u, **given)
        there, fast = self._next(q, v, solved.a)
        return Motion(there, fast, solved.converged)


START = "start"
"""The input for the multipliers of the last step; the one of that name in forward dynamics has no derivatives."""


def stepped(of: Rollout) -> Family:
    """(q, v, dt, tau, ..., start) -> q_next, v_next, start_next, and a report of the rows' violation."""
    if not isinstance(of.step, Step):
        raise UnsupportedError(
            "rollouts with contacts are not differentiated; lw.step(model, contacts) is a function without "
            "derivatives, and contacts that are constraints of the model have them"
        )
    return Family(_function(of.step, of, reports=True), _function(of.step, of, reports=False))


def arguments(
    of: Rollout, family: Family, given: Mapping[str, Any], taken: Callable[[Any, str], Any], xp: Any
) -> Arguments:
    """What a rollout is called with, as arrays of the module `xp`; `taken(x, name)` makes one."""
    timed = [n for n in TIMED if n in of.step.inputs]
    first = [n for n in ("act",) if n in of.step.state]
    known = {n: DEFAULTS[n] for n in (*timed, *first) if n in DEFAULTS} | {"dt": of.dt}
    arrays = {n: taken(x, n) for n, x in (known | {n: x for n, x in given.items() if x is not None}).items()}
    ports = {port.name: port.shape for port in family.inputs}
    for n in arrays:
        if n not in ports:
            raise not_found("input of this rollout", n, [n for n in ports if n != START])
        if not arrays[n].ndim:  # a number stands for as many as there are
            arrays[n] = xp.broadcast_to(arrays[n], ports[n])
    moving = {n: arrays.pop(n) for n in timed if n in arrays and arrays[n].ndim > 1}
    steps = {x.shape[0] for x in moving.values()} or {of.steps}
    if len(steps) > 1 or None in steps:
        raise InputError("rollout: time is the first axis of what changes, of one length; or give lw.rollout steps=")
    leads = [x.shape[: x.ndim - len(ports[n])] for n, x in arrays.items()]
    lead = tuple(xp.broadcast_shapes(*leads, *(x.shape[1:-1] for x in moving.values())))
    q, v = (xp.broadcast_to(x, (*lead, x.shape[-1])) for x in (arrays.pop("q"), arrays.pop("v")))
    carried = {n: xp.broadcast_to(x, (*lead, x.shape[-1])) for n, x in ((n, arrays.pop(n)) for n in first)}
    return Arguments(q, v, carried, arrays, moving, steps.pop() or 0, lead)


def handed_on(result: Any) -> dict[str, Any]:
    """What a step hands to the next besides q and v: forces to start from, and activations."""
    return {n: getattr(result, f"{n}_next") for n in (START, "act") if hasattr(result, f"{n}_next")}


def _function(of: Step, run: Rollout, reports: bool) -> Function[Any]:
    step = replace(of, audited=False, extras=(), within=rewritten(of.model))
    warm = "lam0" in step.carried

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        given = {**x, "worst": xp.zeros(1)}
        if warm:
            given["lam0"] = x[START]
        after = step(xp, given)
        out = {"q_next": after["q"], "v_next": after["v"]}
        if warm:
            out["start_next"] = after["lam0"]
        if "act" in after:
            out["act_next"] = after["act"]
        if reports:
            violation = after["worst"] if step.model.rows else xp.zeros(1)
            fine = xp.where(violation[0, 0] <= step.bound, 1.0, float("nan")) if step.model.rows else 1.0
            out["report"] = xp.vstack([xp.constant([[1.0]]), violation, xp.constant([[1.0]]) * fine])
        return out

    sizes = {n: k for n, k in step.inputs.items() if n not in ("worst", *step.defaults)}
    start = {START: step.model.rows} if warm else {}
    inputs = step.parameters, step.actuators, step.softness
    return Function(
        "rollout_step" if reports else "smooth_rollout_step",
        step.model,
        {**sizes, **start, **{n: x.size for n, x in step.defaults.items()}},
        body,
        method=step.choice,
        dtype=run.dtype,
        threads=run.threads,
        shapes=step.parameter_shapes,
        defaults=step.defaults,
        identity=(step.integrator, step.penalty, step.iterations, step.modes, step.pd, *inputs),
    )
