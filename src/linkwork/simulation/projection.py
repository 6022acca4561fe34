"""Projection onto the constraints, after a step or at an impact: least in the mass metric.

    min 1/2 |d|_M^2   with   J d = target          d = M^-1 J^T (J M^-1 J^T)^+ target

This is forward dynamics without forces, gravity and velocity products, with k = target: every solver can do it, and the
multipliers are impulses. With target = -J v it projects a velocity (an inelastic impact), with target = -phi a
configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms.constrained.impact import with_targets
from linkwork.backends import Array, Ops, get
from linkwork.errors import SingularError
from linkwork.functions.choice import pick
from linkwork.functions.solver import Solver
from linkwork.model import Model
from linkwork.rewrite.rewritten import Rewritten
from linkwork.simulation.integrators import by_joint

if TYPE_CHECKING:
    from linkwork.kernels.kernel import Kernel

SOLVES = 3
"""Solver iterations of proximal methods: each gains about the digits of mu times the least row's mobility."""


Correction = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""(q, target, active) -> (q moved by d, d, multipliers)."""


def correction(model: Model, method: str | None = None, backend: str = "kernel") -> Correction:
    """The correction of a model's constraints as a function of q, targets and weights of the rows."""
    chosen = pick("forward_dynamics", method, model, modes=True)
    mu, flat = (None, 0.0) if chosen.prox is None else (chosen.prox.mu, chosen.prox.flat)

    def body(xp: Ops, q: Array, target: Array, active: Array) -> tuple[Array, Array, Array]:
        ends = np.cumsum([0, *(c.rows for c in model.constraints)])
        targets = [target[int(i) : int(j), :] for i, j in pairwise(ends)]
        solver = Solver(chosen, Rewritten(model), lambda at: with_targets(at, targets))
        still = xp.zeros(model.nv)
        d, multipliers = solver(xp, q, still, still, None, mu, active).straight(SOLVES, flat)
        return by_joint(model, "integrate", q, d, xp), d, multipliers

    if backend == "numpy":

        def execute(q: np.ndarray, target: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            try:
                moved, d, multipliers = body(get("numpy"), q[:, None], target[:, None], active[:, None])
            except np.linalg.LinAlgError:
                raise SingularError(
                    f"'{model.name}' cannot be moved onto its constraints: joints move no inertia, or "
                    f"method '{chosen.name}' does not take rows that depend on each other"
                ) from None
            return moved[:, 0], d[:, 0], multipliers[:, 0]

        return execute
    kernel = _compiled(model, body)

    def run(q: np.ndarray, target: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        moved, d, multipliers = kernel(q, target, active)
        return moved, d, multipliers

    return run


def _compiled(model: Model, body: Any) -> Kernel:
    from linkwork.kernels.kernel import Kernel
    from linkwork.kernels.trace import trace

    sizes = {"q": model.nq, "target": model.rows, "active": len(model.constraints)}
    names = ("moved", "d", "multipliers")
    return Kernel(
        trace(
            "correction",
            lambda xp, symbol: dict(zip(names, body(xp, *(symbol(n, k) for n, k in sizes.items())), strict=True)),
        )
    )
