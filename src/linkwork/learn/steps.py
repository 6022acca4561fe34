"""The step of a rollout as a function that is differentiated operation by operation, with what it starts from.

It is the step that `lw.rollout` loops over: so many solver iterations, from the forces of the last step, with the
penalty that time steps have. Its derivatives are those of this computation, so that a gradient through a rollout is the
gradient of what the rollout computes, where rows depend on each other too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from linkwork.backends import Array, Ops
from linkwork.errors import UnsupportedError
from linkwork.functions.function import Function
from linkwork.functions.parameters import Inputs
from linkwork.learn.products import Family
from linkwork.rewrite.rewritten import rewritten
from linkwork.simulation.contact_step import ContactStep
from linkwork.simulation.rollout import Rollout
from linkwork.simulation.step import BY_STEP, Step

START = "start"
"""The input for the multipliers of the last step; the one of that name in forward dynamics has no derivatives."""


def stepped(of: Rollout) -> Family:
    """(q, v, dt, tau, ..., start) -> q_next, v_next, start_next, and a report of the rows' violation."""
    if isinstance(of.step, ContactStep):
        raise UnsupportedError(
            "rollouts with contacts are not differentiated; lw.step(model, contacts) is a function without "
            "derivatives, and contacts that are constraints of the model have them"
        )
    return Family(_function(of.step, of, reports=True), _function(of.step, of, reports=False))


def _function(of: Step, run: Rollout, reports: bool) -> Function[Any]:
    step = replace(of, audited=False, extras=(), within=rewritten(of.model))

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        given = {**x, "worst": xp.zeros(1)}
        if step.guessed:
            given["lam0"] = x[START]
        after = step(xp, given)
        out = {"q_next": after["q"], "v_next": after["v"]}
        if step.guessed:
            out["start_next"] = after["lam0"]
        if reports:
            violation = after["worst"] if step.model.rows else xp.zeros(1)
            fine = xp.where(violation[0, 0] <= step.bound, 1.0, float("nan")) if step.model.rows else 1.0
            out["report"] = xp.vstack([xp.constant([[1.0]]), violation, xp.constant([[1.0]]) * fine])
        return out

    sizes = {n: k for n, k in step.inputs.items() if n not in ("worst", *step.defaults)}
    parameters = Inputs(step.model, step.parameters, BY_STEP)
    start = {START: step.model.rows} if step.guessed else {}
    return Function(
        "rollout_step" if reports else "smooth_rollout_step",
        step.model,
        {**sizes, **start, **{n: x.size for n, x in step.defaults.items()}},
        body,
        method=step.choice,
        dtype=run.dtype,
        threads=run.threads,
        shapes=parameters.shapes,
        defaults=step.defaults,
        identity=(step.integrator, step.penalty, step.iterations, step.modes, step.pd, step.parameters),
    )
