"""Methods by the clock, where predictions come too close: kernels of a plan, timed in turns on the same states."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from linkwork.algorithms.registry import Method
from linkwork.errors import InputError
from linkwork.kernels import IterativeProgram, Kernel, Program
from linkwork.planner.iterations import settings

ROUNDS, STATES = 101, 256
Key = TypeVar("Key", bound=Hashable)


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
    for (use, name), seconds in beside(took).items():
        found[use][name] = 1e6 * seconds / STATES
    return found


def beside(took: Mapping[Key, Sequence[float]]) -> dict[Key, float]:
    """The medians over rounds of what each took beside all others of its round, times the median round.

    A clock that changes from round to round, or a neighbour who comes and goes, then changes no order.
    """
    table = np.array(list(took.values()))
    rounds = np.exp(np.log(table).mean(axis=0))
    return dict(zip(took, map(float, np.median(table / rounds, axis=1) * np.median(rounds)), strict=True))
