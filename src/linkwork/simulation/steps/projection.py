"""Projection onto the constraints, after a step or at an impact: least in the mass metric.

    min 1/2 |d|_M^2   with   J d = target          d = M^-1 J^T (J M^-1 J^T)^+ target

This is forward dynamics without forces, gravity and velocity products, with k = target: every solver can do it, and the
multipliers are impulses. With target = -J v it projects a velocity (an inelastic impact), with target = -phi a
configuration.

Proximal methods start from zero, not from the multipliers of the last projection: the right-hand side is the error
itself, so that zero is right but for the error, what remains after `SOLVES` iterations is 1e-13 of it, and the next
correction of a configuration, whose error is the square of this one, takes that away too. No start could gain more.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from linkwork.algorithms.constrained.impact import with_targets
from linkwork.backends import Array, Ops, get
from linkwork.errors import SingularError
from linkwork.functions.method_choice import Choice
from linkwork.functions.solver import Solver
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.rewrite.rewritten import Rewritten
from linkwork.simulation.steps.integrators import by_joint

if TYPE_CHECKING:
    from linkwork.kernels.calls.kernel import Kernel

SOLVES = 3
"""Solver iterations of proximal methods: each gains about the digits of mu times the least row's mobility.

|J d - target| / |target| after one, two and three: four-bar 3e-9, 5e-17; ring of six 1e-8, 1e-15; quadruped on four
feet 7e-6, 6e-9, 1e-13.
"""


Corrected = tuple[np.ndarray, np.ndarray, np.ndarray]
"""q moved by d, d itself, and multipliers."""


class Correction:
    """`correct(q, target, active)`: q moved by d, d, and multipliers.

    `active` has a weight per constraint.

    Planned and compiled at its first call.
    """

    def __init__(self, model: Model, method: str | None = None, backend: str = "kernel") -> None:
        self.model, self.backend = model, backend
        self.choice = Choice("forward_dynamics", method, model, modes=True)

    def __call__(self, q: np.ndarray, target: np.ndarray, active: np.ndarray) -> Corrected:
        if self.backend == "kernel":
            moved, d, multipliers = self.kernel(q, target, active)
            return moved, d, multipliers
        try:
            moved, d, multipliers = self._body(get("numpy"), q[:, None], target[:, None], active[:, None])
        except np.linalg.LinAlgError:
            raise SingularError(
                f"'{self.model.name}' cannot be moved onto its constraints: joints move no inertia, or "
                f"method '{self.choice.method.name}' does not take rows that depend on each other"
            ) from None
        return moved[:, 0], d[:, 0], multipliers[:, 0]

    def _body(self, xp: Ops, q: Array, target: Array, active: Array) -> tuple[Array, Array, Array]:
        model, method = self.model, self.choice.method
        mu, flat = (None, 0.0) if method.prox is None else (method.prox.mu, method.prox.flat)
        ends = np.cumsum([0, *(c.rows for c in model.constraints)])
        targets = [target[int(i) : int(j), :] for i, j in pairwise(ends)]
        solver = Solver(method, Rewritten(model), lambda at: with_targets(at, targets))
        still = xp.zeros(model.nv)
        d, multipliers = solver(xp, q, still, still, None, mu, active).straight(SOLVES, flat)
        return by_joint(model, "integrate", q, d, xp), d, multipliers

    @cached_property
    def kernel(self) -> Kernel:
        """The native code."""
        from linkwork.kernels.calls.kernel import Kernel
        from linkwork.kernels.programs.trace import trace

        sizes = {"q": self.model.nq, "target": self.model.rows, "active": len(self.model.constraints)}

        def body(xp: Ops, symbol: Callable[[str, int], Array]) -> dict[str, Array]:
            found = self._body(xp, *(symbol(n, k) for n, k in sizes.items()))
            return dict(zip(("moved", "d", "multipliers"), found, strict=True))

        return Kernel(trace("correction", body))
