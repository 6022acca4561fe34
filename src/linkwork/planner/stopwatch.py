"""Methods by the clock, where predictions come too close: kernels of a plan, timed in turns on the same states."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from linkwork.algorithms.registry import Method
from linkwork.errors import InputError
from linkwork.kernels import IterativeProgram, Kernel, Program
from linkwork.planner.iterations import settings

ROUNDS, STATES = 15, 256


def timings(
    programs: Iterable[tuple[Method, Program | IterativeProgram]],
    given: Mapping[str, np.ndarray],
    uses: Sequence[str] = ("state", "batch"),
) -> dict[str, dict[str, float]]:
    """us per state by use and method: one state after another in a native loop, or many at once; medians of rounds."""
    if not given:
        raise InputError("its loops do not close from the neutral position, so there are no states to measure on: "
                         "choose by prediction, or name a method")
    ready = {}
    for method, program in programs:
        known = {**given, **settings(method.prox)}
        inputs = [known[port.name] for port in program.inputs]
        rows = [x if len(x) == 1 or x.ndim == 1 else np.resize(x, (STATES, *x.shape[1:])) for x in inputs]
        for use in uses:
            ready[use, method.name] = Kernel(program, lanes=1 if use == "state" else None, threads=1), rows
    took: dict[tuple[str, str], list[float]] = {key: [] for key in ready}
    for _ in range(ROUNDS + 1):
        for key, (kernel, rows) in ready.items():
            begin = time.perf_counter()
            kernel(*rows)
            took[key].append(time.perf_counter() - begin)
    found: dict[str, dict[str, float]] = {use: {} for use in uses}
    for (use, name), seconds in took.items():
        found[use][name] = 1e6 * statistics.median(seconds[1:]) / STATES  # the first call compiles
    return found
