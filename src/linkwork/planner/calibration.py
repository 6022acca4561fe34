"""The costs of this machine (cost.py), fitted to some twenty measured kernels.

    ns of a kernel = edges + h,   h = sqrt(work^2 + waiting^2) = (work / h) work + (waiting / h) waiting

With the shares of the previous fit each fit is linear: least squares of relative errors, with costs of at least zero.
Clock rates vary, so times are compared relative to a yardstick that is timed in turns with them.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial

import numpy as np

from linkwork.algorithms.registry import FD, methods
from linkwork.constraints import point, surface
from linkwork.kernels import IterativeProgram, Program
from linkwork.model import Model
from linkwork.planner.cost import FEATURES, WAITING, WORK, Machine, all_features
from linkwork.planner.iterations import count, samples, settings
from linkwork.planner.plan import USES
from linkwork.planner.stopwatch import timings
from linkwork.robots import mechanisms as mech

YARDSTICK = "yardstick"
"""The name of the reference kernel, aba of a chain of twelve links."""

FITS = 30
"""Linear fits, each with the shares of work and waiting of the previous one."""

Trace = Callable[[Model, str], Program | IterativeProgram]
"""The forward dynamics of a model by a method, as a program."""


def _standing() -> Model:
    return mech.quadruped().with_constraints(point("front_left_foot"), point("rear_right_foot"))


def _on_two_feet() -> Model:
    return mech.humanoid(False).with_constraints(surface("left_foot"), surface("right_foot"))


SAMPLES: tuple[tuple[Callable[[], Model], tuple[str, ...]], ...] = (
    (partial(mech.chain, 6), ("aba", "crba_ltl")),
    (partial(mech.chain, 25), ("aba", "crba_ltl")),
    (mech.quadruped, ("aba", "crba_ltl")),
    (_standing, ("pv", "constrained_aba", "pv_early", "prox_ltl", "bbo")),
    (_on_two_feet, ("pv", "constrained_aba", "prox_bbo", "ltl")),
    (partial(mech.chain_of_loops, 3), ("lcaba", "prox_bbo", "ltl")),
    (mech.four_bar, ("lcaba", "prox_ltl", "bbo")),
)
"""Mechanisms and methods whose kernels differ in size, in chains of operations and in iterations."""


def calibrate(trace: Trace, tick: Callable[[int], None] = lambda done: None) -> tuple[Machine, float]:
    """The costs of this machine, and the root mean square error of predictions with them."""
    clock = mech.chain(12)
    beside = trace(clock, "aba"), samples(clock)
    rows: dict[str, list[list[float]]] = {use: [] for use in USES}
    took: dict[str, list[float]] = {use: [] for use in USES}
    clocks: dict[str, list[float]] = {use: [] for use in USES}
    for done, (make, names) in enumerate(SAMPLES, 1):
        model = make()
        given, traced = samples(model), {name: trace(model, name) for name in names}
        prox = {name: methods(FD)[name].prox for name in names}
        inputs = {name: (program, {**given, **settings(prox[name])}) for name, program in traced.items()}
        figures = timings({**inputs, YARDSTICK: beside})
        for name, program in traced.items():
            by_use = count(program, p, given)[0] if (p := prox[name]) else dict.fromkeys(USES, 1.0)  # type: ignore[arg-type]
            for use in USES:
                has = all_features(program, by_use[use])
                rows[use].append([has[f] for f in FEATURES])
                took[use].append(1e3 * figures[use][name])
                clocks[use].append(figures[use][YARDSTICK])
        tick(done)
    costs, off = {}, 0.0
    for use in USES:
        ns = np.array(took[use]) * np.median(clocks[use]) / np.array(clocks[use])
        fitted, errors = fit(np.array(rows[use]), ns)
        costs[use] = dict(zip(FEATURES, map(float, fitted), strict=True))
        off = max(off, float(np.sqrt(np.mean(errors**2))))
    yardstick = {use: float(np.median(us)) for use, us in clocks.items()}
    return Machine(costs["state"], costs["batch"], yardstick, platform.processor() or platform.machine()), off


def fit(rows: np.ndarray, ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The costs with the least relative errors for kernels with these features and times; the errors."""
    groups = [np.isin(FEATURES, names) for names in (WORK, WAITING)]
    shares = np.where(np.any(groups, axis=0), np.sqrt(0.5), 1.0) * np.ones_like(rows)
    for _ in range(FITS):
        costs = _without_negatives(rows * shares / ns[:, None], np.ones(len(ns)))
        parts = [rows[:, g] @ costs[g] for g in groups]
        busy = np.maximum(np.hypot(*parts), 1e-9)
        for g, part in zip(groups, parts, strict=True):
            shares[:, g] = (part / busy)[:, None]
    edges = ~np.any(groups, axis=0)
    return costs, (busy + rows[:, edges] @ costs[edges]) / ns - 1


def _without_negatives(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Least squares with costs of at least zero: the most negative one is left out until none is."""
    keep = list(range(A.shape[1]))
    while True:
        x, *_ = np.linalg.lstsq(A[:, keep], b, rcond=None)
        if (x >= 0).all():
            full = np.zeros(A.shape[1])
            full[keep] = x
            return full
        del keep[int(np.argmin(x * np.linalg.norm(A[:, keep], axis=0)))]
