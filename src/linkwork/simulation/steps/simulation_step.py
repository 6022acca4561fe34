"""One step of a simulation as a function.

Constrained dynamics and integrator, for a time that the caller chooses.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from linkwork.algorithms.common.iteration import Prox
from linkwork.backends import get
from linkwork.errors import warn_violated
from linkwork.functions.dynamics import forward_dynamics
from linkwork.functions.method_choice import Choice
from linkwork.model import Model
from linkwork.simulation.steps import integrators
from linkwork.simulation.steps.constrained_step import Step
from linkwork.simulation.steps.drifted_loops import LoopDrift, warn_of_drift

After = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Configuration and velocity after a step, and constraint forces."""


class Advance(Protocol):
    """One step as a function, (q, v, drive, active, h) -> (q, v, lam).

    `drive` are controls of actuators, if these are used, and then joint forces. Methods that iterate start from `lam0`.
    `tell` warns if constraint rows were violated in some step.
    """

    lam0: np.ndarray

    def tell(self, q: np.ndarray, active: np.ndarray) -> None: ...

    def __call__(self, q: np.ndarray, v: np.ndarray, drive: np.ndarray, active: np.ndarray, h: float) -> After: ...


def advance(
    model: Model,
    integrator: str,
    method: str | None,
    prox: Prox | None,
    iterations: int,
    modes: bool,
    backend: str,
    actuators: bool = False,
) -> Advance:
    """One step as a function, compiled where it is explicit.

    With `modes`, `active` has a weight per constraint. Planned and compiled at its first call.
    """
    if integrator == "midpoint":
        return _Midpoint(model, method, prox, modes, backend, actuators)
    chosen = Choice("forward_dynamics", method, model, modes=modes, prox=prox)
    step = Step(model, chosen, integrator, prox, iterations, modes, extras=("lam",), actuators=actuators)
    return _Explicit(step, backend)


def driving(model: Model, drive: np.ndarray) -> dict[str, np.ndarray]:
    """What drives a mechanism, by name: controls `u` of actuators, if they are used, and joint forces."""
    if len(drive) == model.nv:
        return {"tau": drive}
    return {"u": drive[: model.nu], "tau": drive[model.nu :]}


class _Explicit:
    """A step as one function of its inputs, compiled or by NumPy."""

    def __init__(self, step: Step, backend: str) -> None:
        self.step, self.backend = step, backend
        self.lam0, self.worst = np.zeros(step.model.rows), np.zeros(1)

    def tell(self, q: np.ndarray, active: np.ndarray) -> None:
        model = self.step.model
        if model.rows and not self.worst[0] <= self.step.bound:
            warn_violated("simulate", self.step.solver, self.step.bound, False)
        elif self.step.conflicts:
            held = np.repeat(active > 0, [c.rows for c in model.constraints])
            if (which := LoopDrift(model, self.backend)(q[None], held[None])).any():
                warn_of_drift("simulate", which)

    def __call__(self, q: np.ndarray, v: np.ndarray, drive: np.ndarray, active: np.ndarray, h: float) -> After:
        given = {"q": q, "v": v, "dt": np.array([h]), "active": active, "lam0": self.lam0}
        given |= driving(self.step.model, drive)
        given["worst"] = self.worst
        x = {n: given[n] for n in (*self.step.inputs, *(n for n in self.step.carried if n not in self.step.inputs))}
        if self.backend == "kernel":
            out = self.step.kernel(*x.values())
            if self.step.model.rows:
                self.worst = out.worst
            return out.q, out.v, out.lam
        try:
            with np.errstate(all="ignore"):
                found = self.step(get("numpy"), {n: y[:, None] for n, y in x.items()})
        except np.linalg.LinAlgError:  # kernels give NaN then
            return np.full_like(q, np.nan), np.full_like(v, np.nan), np.full(self.step.model.rows, np.nan)
        if self.step.model.rows:
            self.worst = found["worst"][:, 0]
        return found["q"][:, 0], found["v"][:, 0], found["lam"][:, 0]


class _Midpoint:
    """An implicit step, which solves for accelerations several times."""

    def __init__(
        self, model: Model, method: str | None, prox: Prox | None, modes: bool, backend: str, actuators: bool
    ) -> None:
        self.model, self.modes, self.lam0 = model, modes, np.zeros(model.rows)
        self.fd = forward_dynamics(
            model,
            method=method,
            backend=backend,
            modes=modes,
            prox=prox,
            warm_start=True,
            actuators=actuators,
        )

    def tell(self, q: np.ndarray, active: np.ndarray) -> None:
        """Nothing: forward dynamics warn where they have not converged."""

    def __call__(self, q: np.ndarray, v: np.ndarray, drive: np.ndarray, active: np.ndarray, h: float) -> After:
        given = {"lam0": self.lam0, **({"active": active} if self.modes else {}), **driving(self.model, drive)}
        first = self.fd(q, v, **given)
        given["lam0"] = first.lam

        def acceleration(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.asarray(self.fd(x, y, **given).a)

        return (*integrators.midpoint(self.model, acceleration, q, v, h), first.lam)
