"""Convergence and accuracy of proximal methods: the data of sathya2025, figures 10 and 11."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.constrained.kkt import joint_space, kkt
from linkwork.backends import Array, get
from linkwork.constraints.row_inertia import units
from linkwork.model import Model, Motion

State = tuple[np.ndarray, np.ndarray, np.ndarray]


def residuals(model: Model, method: str, state: State, mu: float, iterations: int = 11) -> list[float]:
    """The largest |J a - k| after 1, 2, ... solver iterations."""
    motion = _motion(model, state)
    J, k = joint_space(motion)
    return [float(np.abs(J @ a - k).max()) for a in _accelerations(motion, method, state, mu, iterations)]


def accuracy(model: Model, method: str, state: State, penalties: Sequence[float], iterations: int = 30) -> list[float]:
    """The largest relative error of accelerations against `kkt`, once converged, for each penalty."""
    motion = _motion(model, state)
    exact, _ = kkt(motion, state[2][:, None])
    out = []
    for mu in penalties:
        a = _accelerations(motion, method, state, mu, iterations)[-1]
        out.append(float(np.abs(a - exact).max() / np.abs(exact).max()))
    return out


def plain_step(iteration: Iteration, lam: Array) -> Step:
    """The whole step from these multipliers: the first one, and what changes in it."""
    change = iteration.change(lam - iteration.start)
    return Step(*(x + y for x, y in zip(iteration.first, change, strict=True)))


def _motion(model: Model, state: State) -> Motion:
    return Motion(model, state[0][:, None], state[1][:, None], get("numpy"))


def _accelerations(motion: Motion, method: str, state: State, mu: float, iterations: int) -> list[np.ndarray]:
    """After 1, 2, ... plain steps, as published, with a penalty in SI units (the mean of several)."""
    solve = registry.methods("forward_dynamics")[method].load()
    unit = float(np.exp(np.mean(np.log(units(motion.model)))))
    iteration = solve(motion, state[2][:, None], mu=mu / unit)
    lam, out = iteration.start, []
    for _ in range(iterations):
        done = plain_step(iteration, lam)
        lam = done.lam
        out.append(iteration.finish(lam, done.found)[0])
    return out
