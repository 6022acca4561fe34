"""Measured times, on request: kernels of a plan, timed in turns on the same states."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from linkwork.kernels import IterativeProgram, Kernel, Program
from linkwork.planner.plan import USES

ROUNDS, STATES = 101, 256


def timings(
    programs: Mapping[str, tuple[Program | IterativeProgram, Mapping[str, np.ndarray]]],
) -> dict[str, dict[str, float]]:
    """us per state by use and name: states one by one in a native loop, or many at once."""
    ready = {}
    for name, (program, given) in programs.items():
        for use in USES:
            bound = Kernel(program, lanes=1 if use == "state" else None, threads=1).bind(STATES)
            for port, buffer in zip(program.inputs, bound.inputs, strict=True):
                x = given[port.name]
                buffer[...] = x if x.ndim == 1 else np.resize(x, buffer.shape)
            ready[use, name] = bound
    took: dict[tuple[str, str], list[float]] = {key: [] for key in ready}
    for _ in range(ROUNDS):
        for key, bound in ready.items():
            begin = time.perf_counter()
            bound()
            took[key].append(time.perf_counter() - begin)
    found: dict[str, dict[str, float]] = {use: {} for use in USES}
    for (use, name), seconds in took.items():
        found[use][name] = 1e6 * undisturbed(seconds) / STATES
    return found


def undisturbed(took: Sequence[float]) -> float:
    """The first decile over rounds: the time while no other process uses the core or slows its clock.

    On a machine with neighbours, medians of the same kernel differed by up to a half from minute to minute, this by a
    tenth.
    """
    return float(np.quantile(took, 0.1))
