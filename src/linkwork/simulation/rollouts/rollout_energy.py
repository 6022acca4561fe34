"""States of a rollout that gained energy without work have failed (energy_balance.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linkwork.simulation.steps.constrained_step import JOULE
from linkwork.simulation.steps.energy_balance import (
    BY_ENERGY,
    SHARE,
    WARNED,
    counts_springs,
    energies_of,
    share,
    warn_of_energy,
)
from linkwork.simulation.steps.step_interface import TimeStep

SLOW = 0.1
"""Squares of the angles that links turn by in one step, summed over all steps, below which energy cannot grow."""


def _fastest(v: np.ndarray) -> float:
    """The largest sum of a state's velocities."""
    sums = np.add.reduce(np.abs(v), axis=-1)
    return float(sums.max(initial=0.0)) if sums.ndim else float(sums)


def audit(
    step: TimeStep,
    backend: str,
    inputs: Mapping[str, np.ndarray],
    out: dict[str, np.ndarray],
    survived: np.ndarray,
    steps: int,
    every: int,
) -> None:
    """Mark states that gained energy as failed: their last valid record is repeated, and extras are zero."""
    model, work, dt, batch = step.model, out.pop("work"), float(inputs["dt"][0]), len(survived)
    turned = 2 * dt * max(_fastest(v) for v in (inputs["v"], out["v"][:, -1]))
    if not batch or turned * steps**0.5 < SLOW**0.5:
        return

    parameters = {n: np.broadcast_to(inputs[n], (batch, inputs[n].shape[-1])) for n in step.parameters}
    springs = counts_springs(step.integrator)
    energies = energies_of(model, backend, tuple(n for n in step.parameters if n in BY_ENERGY), springs)

    def gained(
        before: Sequence[np.ndarray], after: Sequence[np.ndarray], work: np.ndarray, lanes: np.ndarray
    ) -> np.ndarray:
        """The energy gained without work between two records, relative to the energy flow."""
        rows = [np.concatenate(x).astype(float) for x in zip(before, after, strict=True)]
        given = [x[np.tile(lanes, 2)].astype(float) for n, x in parameters.items() if n in BY_ENERGY]
        (T0, T), (V0, V) = (x.reshape(2, -1) for x in energies(*rows, *given))
        gain, flow = T - T0 + V - V0 - work[:, 0] / JOULE, T0 + work[:, 1] / JOULE + np.abs(V - V0)
        return share(model, dt, gain, flow)

    state = [n for n in step.state if n in out]
    first = {n: np.broadcast_to(inputs[n], (batch, inputs[n].shape[-1])) for n in state}
    start = [first["q"], first["v"]]
    overall = gained(start, [out["q"][:, -1], out["v"][:, -1]], work[:, -1], np.arange(batch))
    failed = ~(overall <= SHARE)
    warned = (np.abs(overall) > WARNED) & ~failed & (survived == steps)
    if warned.any():
        where = f" in {np.count_nonzero(warned)} of {batch} states" if batch > 1 else ""
        fastest = float(np.abs(out["v"][warned]).max(initial=0.0))
        warn_of_energy(model, dt, float(np.abs(overall)[warned].max()), fastest, where)
    for b in np.flatnonzero(failed):
        records = [np.repeat(x[b : b + 1], out["q"].shape[1], axis=0) for x in start]
        same = np.full(out["q"].shape[1], b)
        n = int(np.argmax(~(gained(records, [out["q"][b], out["v"][b]], work[b], same) <= SHARE)))
        survived[b] = min(survived[b], n * every)
        for name in state:
            out[name][b, n:] = out[name][b, n - 1] if n else first[name][b]
        for name in out.keys() - {*state}:
            out[name][b, n:] = 0.0
