"""One step of a simulation as a function.

Constrained dynamics and integrator, for a time that the caller chooses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwork.algorithms.common.iteration import Prox
from linkwork.backends import get
from linkwork.functions.choice import Choice
from linkwork.functions.dynamics import forward_dynamics
from linkwork.model import Model
from linkwork.simulation import integrators
from linkwork.simulation.step import Step

After = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Configuration and velocity after a step, and constraint forces."""

Advance = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float], After]
"""(q, v, tau, active, h) -> (q, v, lam)."""


def advance(
    model: Model,
    integrator: str,
    method: str | None,
    prox: Prox | None,
    iterations: int,
    modes: bool,
    backend: str,
) -> Advance:
    """One step as a function, compiled where it is explicit.

    With `modes`, `active` has a weight per constraint.

    Planned and compiled at its first call.
    """
    if integrator == "midpoint":
        fd = forward_dynamics(model, method=method, backend=backend, modes=modes, prox=prox)

        def midpoint(q: np.ndarray, v: np.ndarray, tau: np.ndarray, active: np.ndarray, h: float) -> After:
            more = (active,) if modes else ()
            after = integrators.midpoint(model, lambda x, y: np.asarray(fd(x, y, tau, *more).a), q, v, h)
            return (*after, fd(q, v, tau, *more).lam)

        return midpoint
    chosen = Choice("forward_dynamics", method, model, modes=modes, prox=prox)
    step = Step(model, chosen, integrator, prox, iterations, modes, extras=("lam",))
    if backend == "numpy":

        def execute(q: np.ndarray, v: np.ndarray, tau: np.ndarray, active: np.ndarray, h: float) -> After:
            x = {"q": q, "v": v, "dt": np.array([h]), "tau": tau, "active": active}
            try:
                with np.errstate(all="ignore"):
                    out = step(get("numpy"), {n: y[:, None] for n, y in x.items()})
            except np.linalg.LinAlgError:  # kernels give NaN then
                return np.full_like(q, np.nan), np.full_like(v, np.nan), np.full(model.rows, np.nan)
            return out["q"][:, 0], out["v"][:, 0], out["lam"][:, 0]

        return execute

    def run(q: np.ndarray, v: np.ndarray, tau: np.ndarray, active: np.ndarray, h: float) -> After:
        out = step.kernel(q, v, np.array([h]), tau, *((active,) if modes else ()))
        return out.q, out.v, out.lam

    return run
