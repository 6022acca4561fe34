"""Methods that repeat a cheap step after an expensive start.

A method that iterates returns an `Iteration` instead of a solution. NumPy runs its step in a Python loop; a traced
step is compiled to a native loop, and everything in it that does not depend on `x` (factorisations, sweeps over
inertias) is computed once, because a program knows what depends on what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwork.backends.ops import Array
from linkwork.checks import NOT_NEGATIVE, POSITIVE, checked_class, instance, optional, whole


@checked_class(mu=POSITIVE, tolerance=NOT_NEGATIVE, max_iterations=whole(1))
@dataclass(frozen=True)
class Prox:
    """How hard a proximal method pushes and when it stops.

    `mu` is the penalty on violated rows (1e5 to 1e7 is good for robots in SI units; larger needs fewer iterations and
    loses more digits). It stops when the largest |J a - k| of any row is at most `tolerance`, or after
    `max_iterations` solves.
    """

    mu: float = 1e6
    tolerance: float = 1e-8
    max_iterations: int = 20


PROX = optional(instance(Prox, "a linkwork.Prox"))


@dataclass(frozen=True)
class Iteration:
    """`step(x)` gives the next x (a column of length `size`) and the residual (1 x 1); the first x is step(0).

    `finish(x)` gives joint accelerations and constraint forces.
    """

    size: int
    step: Callable[[Array], tuple[Array, Array]]
    finish: Callable[[Array], tuple[Array, Array]]


def run(iteration: Iteration, tolerance: float, max_iterations: int) -> tuple[Array, Array, int, float]:
    """The loop in NumPy: accelerations, forces, solves used (the first included), and the last residual."""
    x, residual = iteration.step(np.zeros((iteration.size, 1)))
    used = 1
    while float(residual[0, 0]) > tolerance and used < max_iterations:
        x, residual = iteration.step(x)
        used += 1
    vdot, lam = iteration.finish(x)
    return vdot, lam, used, float(residual[0, 0])
