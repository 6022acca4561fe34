"""Methods by the clock, where predictions come too close: kernels of a plan, timed in turns on the same states."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from linkwork.algorithms.registry import Method
from linkwork.errors import InputError
from linkwork.kernels import IterativeProgram, Kernel, Program
from linkwork.planner.iterations import settings

ROUNDS, STATES = 101, 256


def timings(
    programs: Iterable[tuple[Method, Program | IterativeProgram]],
    given: Mapping[str, np.ndarray],
    uses: Sequence[str] = ("state", "batch"),
) -> dict[str, dict[str, float]]:
    """us per state by use and method: one state after another in a native loop, or many at once."""
    if not given:
        raise InputError(
            "its loops do not close from the neutral position, so there are no states to measure on: "
            "choose by prediction, or name a method"
        )
    ready = {}
    for method, program in programs:
        known = {**given, **settings(method.prox)}
        for use in uses:
            bound = Kernel(program, lanes=1 if use == "state" else None, threads=1).bind(STATES)
            for port, buffer in zip(program.inputs, bound.inputs, strict=True):
                x = known[port.name]
                buffer[...] = x if x.ndim == 1 else np.resize(x, buffer.shape)
            ready[use, method.name] = bound
    took: dict[tuple[str, str], list[float]] = {key: [] for key in ready}
    for _ in range(ROUNDS):
        for key, bound in ready.items():
            begin = time.perf_counter()
            bound()
            took[key].append(time.perf_counter() - begin)
    found: dict[str, dict[str, float]] = {use: {} for use in uses}
    for (use, name), seconds in took.items():
        found[use][name] = 1e6 * undisturbed(seconds) / STATES
    return found


def undisturbed(took: Sequence[float]) -> float:
    """The first decile over rounds: what something takes while nobody else uses its core or slows its clock.

    On a machine with neighbours, medians of the same kernel differed by up to a half from minute to minute, this by a
    tenth.
    """
    return float(np.quantile(took, 0.1))
