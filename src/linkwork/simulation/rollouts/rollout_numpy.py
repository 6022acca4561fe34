"""A rollout in NumPy, state by state and step by step: the reference for the native loop."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from linkwork.backends import get
from linkwork.simulation.rollouts.rollout_inputs import TIMED
from linkwork.simulation.steps.step_interface import TimeStep


def executed(step: TimeStep, steps: int, every: int, inputs: Mapping[str, Any], batch: int) -> dict[str, np.ndarray]:
    """Records of states and extras, (B, steps / every, n), last values of what is carried, (B, 1, n).

    And how many steps each state `survived`.
    """
    sizes = {**step.inputs, **step.carried, **{n: prod(shape) for n, shape in step.shapes.items()}}
    out = {n: np.zeros((batch, steps // every, sizes[n])) for n in (*step.state, *step.extras)}
    out |= {n: np.zeros((batch, 1, sizes[n])) for n in step.carried}
    survived = np.zeros(batch, dtype=int)
    for b in range(batch):
        x = {n: a if a.ndim == 1 or (n in TIMED and a.ndim == 2) else a[b] for n, a in inputs.items()}
        columns = {n: a[:, None] for n, a in x.items() if n not in TIMED}
        columns |= _start(step, columns, {n: x[n][0, :, None] for n in TIMED if n in x})
        alive, extras = True, dict[str, Any]()
        for k in range(steps):
            columns |= {n: x[n][k * len(x[n]) // steps, :, None] for n in TIMED if n in x}
            new = _stepped(step, columns) if alive else None
            alive = new is not None
            if new is not None:
                columns |= {n: new[n] for n in (*step.state, *step.carried)}
                survived[b] += 1
            extras = {n: np.zeros((sizes[n], 1)) if new is None else new[n] for n in step.extras}
            if (k + 1) % every == 0:
                for n, value in {**{s: columns[s] for s in step.state}, **extras}.items():
                    out[n][b, k // every] = value[:, 0]
        for n in step.carried:
            out[n][b, 0] = columns[n][:, 0]
    return {**out, "survived": survived}


def _start(step: TimeStep, columns: Mapping[str, np.ndarray], now: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Where what is carried starts, unless given: what one step from zero gives; zero if it fails."""
    zero = {n: np.zeros((size, 1)) for n, size in step.carried.items() if n not in columns}
    new = _stepped(step, {**columns, **now, **zero}) if zero else None
    return zero if new is None else {n: new[n] for n in zero}


def _stepped(step: TimeStep, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """The state after a step and its extras; None if it failed."""
    try:
        with np.errstate(all="ignore"):
            new = step(get("numpy"), columns)
            small = np.sqrt((new["q"] ** 2).sum() + (new["v"] ** 2).sum()) < float(columns["limit"][0, 0])
            others = [new[n] for n in (*step.extras, *step.carried)]
            return new if small and all(np.isfinite(x).all() for x in others) else None
    except np.linalg.LinAlgError:
        return None
