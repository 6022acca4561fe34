"""Back onto the constraints, after a step or at an impact: the smallest correction that the rows ask for.

    min 1/2 |d|_M^2   with   J d = wish          d = M^-1 J^T (J M^-1 J^T)^+ wish

This is forward dynamics without forces, gravity and velocity products, with k = wish: every solver can do it, and the
multipliers are impulses. With wish = -J v it projects a velocity (an inelastic impact), with wish = -phi a position.
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
"""Solves of a method that iterates: each gains about the digits of mu times the least row's mobility."""


Correction = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""(q, wish, active) -> (q moved by d, d, multipliers)."""


def correction(model: Model, method: str | None = None, backend: str = "kernel") -> Correction:
    """The correction of a model's constraints as a function of q, the wish of each row and the weight of each."""
    chosen = pick("forward_dynamics", method, model, modes=True)
    mu, flat = (None, 0.0) if chosen.prox is None else (chosen.prox.mu, chosen.prox.flat)

    def body(xp: Ops, q: Array, wish: Array, active: Array) -> tuple[Array, Array, Array]:
        ends = np.cumsum([0, *(c.rows for c in model.constraints)])
        wishes = [wish[int(i) : int(j), :] for i, j in pairwise(ends)]
        solver = Solver(chosen, Rewritten(model), lambda at: with_targets(at, wishes))
        still = xp.zeros(model.nv)
        d, multipliers = solver(xp, q, still, still, None, mu, active).straight(SOLVES, flat)
        return by_joint(model, "integrate", q, d, xp), d, multipliers

    if backend == "numpy":

        def execute(q: np.ndarray, wish: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            try:
                moved, d, multipliers = body(get("numpy"), q[:, None], wish[:, None], active[:, None])
            except np.linalg.LinAlgError:
                raise SingularError(
                    f"'{model.name}' cannot be moved onto its constraints: joints move no inertia, or "
                    f"method '{chosen.name}' does not take rows that depend on each other"
                ) from None
            return moved[:, 0], d[:, 0], multipliers[:, 0]

        return execute
    kernel = _compiled(model, body)

    def run(q: np.ndarray, wish: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        moved, d, multipliers = kernel(q, wish, active)
        return moved, d, multipliers

    return run


def _compiled(model: Model, body: Any) -> Kernel:
    from linkwork.kernels.kernel import Kernel
    from linkwork.kernels.trace import trace

    sizes = {"q": model.nq, "wish": model.rows, "active": len(model.constraints)}
    names = ("moved", "d", "multipliers")
    return Kernel(
        trace(
            "correction",
            lambda xp, symbol: dict(zip(names, body(xp, *(symbol(n, k) for n, k in sizes.items())), strict=True)),
        )
    )
