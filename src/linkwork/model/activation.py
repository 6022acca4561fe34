"""Actuators with a state: an activation w in place of the control u.

    f = (gain . [1 l l']) w + bias . [1 l l'],       w' = u  (integrator),   w' = (u - w) / T  (filter)

u within its control range, w within its state range. A step of h moves w by h w', or, where the filter is exact, by
T (1 - exp(-h / T)) w': for a control that is held. All have MuJoCo's names and rules. The force is that of w at the
beginning of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from linkwork.backends import get
from linkwork.backends.ops import Array, Ops
from linkwork.model.actuator import EVERYTHING, Actuator
from linkwork.model.model import Model


def activation_rate(model: Model, xp: Ops, given: Mapping[str, Array]) -> Array:
    """w' of all activations for controls u and activations `act`, na x 1."""
    return _column([rate for _, _, rate in _moving(model, xp, given)], xp)


def activation_after(model: Model, h: Array, xp: Ops, given: Mapping[str, Array]) -> Array:
    """The activations after a step of h, na x 1."""
    after = []
    for a, w, rate in _moving(model, xp, given):
        exact = a.state == "filterexact"
        span = a.time_constant * (1.0 - xp.apply("exp", -h / a.time_constant)) if exact else h
        after.append(bounded(w + span * rate, a.state_range, xp))
    return _column(after, xp)


def _moving(model: Model, xp: Ops, given: Mapping[str, Array]) -> Iterator[tuple[Actuator, Array, Array]]:
    """The actuators with a state, their activations and the rates of these."""
    place = 0
    for n, a in enumerate(model.actuators):
        if a.state:
            u, w = bounded(given["u"][n, 0], a.control_range, xp), given["act"][place, 0]
            yield a, w, u if a.state == "integrator" else (u - w) / a.time_constant
            place += 1


def _column(entries: list[Array], xp: Ops) -> Array:
    return xp.matrix([[x] for x in entries]) if entries else xp.zeros(0)


def bounded(x: Array, bounds: tuple[float, float], xp: Ops) -> Array:
    """x within bounds."""
    lower, upper = bounds
    x = xp.where(x < lower, lower, x) if np.isfinite(lower) else x
    return xp.where(x > upper, upper, x) if np.isfinite(upper) else x


def stateless(model: Model) -> Model:
    """The model whose controls are activations, for those actuators that have one."""
    plain = (replace(a, state="", control_range=EVERYTHING) if a.state else a for a in model.actuators)
    return replace(model, actuators=tuple(plain))


class Activated:
    """A controller of the `stateless` model: activations, zero at the start, in place of controls."""

    def __init__(self, model: Model, controller: Callable[..., np.ndarray]) -> None:
        self.model, self.controller, self.last = model, controller, 0.0
        self.given = {"u": np.zeros((model.nu, 1)), "act": np.zeros((model.na, 1))}

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The controls at t; activations have moved since the last call by the controls of then."""
        xp = get("numpy")
        self.given["act"] = activation_after(self.model, np.float64(t - self.last), xp, self.given)
        u = self.controller(t, q, v)
        self.last, self.given["u"], out = t, u[:, None], u.copy()
        out[[n for n, a in enumerate(self.model.actuators) if a.state]] = self.given["act"][:, 0]
        return out
