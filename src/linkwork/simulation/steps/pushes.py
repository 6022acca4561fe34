"""Pushes: external forces on frames, as joint forces.

    tau = sum over pushes of J^T f,     J the Jacobian of the frame, f = [force; torque] at its origin

in axes of the world, or of the frame. Their power f . J v is that of tau, so energy balances need no further term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwork.backends import Array, Ops, get
from linkwork.checks import Kind, Refused, choice, finite_array, mapping, shown
from linkwork.errors import InputError
from linkwork.model import Model, Motion
from linkwork.model.wrenches import carried_by_joints
from linkwork.spatial import angular, linear

PUSH_AXES = choice("axes of pushes", ("world", "frame"))


def _push(value: Any) -> Any:
    if callable(value):
        return value
    x = finite_array(value)
    if x.shape != (6,):
        raise Refused
    return x


PUSHES = mapping(Kind("six numbers [force; torque], or a function of time that gives them", _push))


@dataclass(frozen=True)
class Pushes:
    """Frames of a model that are pushed, and the axes of forces: "world" or "frame"."""

    frames: tuple[str, ...] = ()
    axes: str = "world"

    def check(self, model: Model) -> None:
        """Raise unless the model has all frames, each once."""
        for name in self.frames:
            model.frame(name)
        if len({*self.frames}) < len(self.frames):
            raise InputError(f"pushes names frames, each once: {', '.join(self.frames)}")

    @property
    def size(self) -> int:
        return 6 * len(self.frames)

    def added(self, tau: Array, model: Model, q: Array, x: Mapping[str, Array], xp: Ops) -> Array:
        """Joint forces with those of the pushes among the inputs `x`."""
        return tau + self.joint_forces(model, q, x["push"], xp) if self.frames else tau

    def joint_forces(self, model: Model, q: Array, push: Array, xp: Ops) -> Array:
        """J^T f of all pushes, nv x 1; `push` has [force; torque] of each frame."""
        motion, felt = Motion(model, q, xp.zeros(model.nv), xp), dict[int, Array]()
        for n, name in enumerate(self.frames):
            frame, f = model.frame(name), push[6 * n : 6 * n + 6, :]
            R = xp.constant(frame.placement.R) if self.axes == "frame" else motion.poses[frame.link][0].T
            force, at = R @ linear(f), xp.constant(frame.placement.p)
            own = xp.vstack([force, R @ angular(f) + xp.cross(at, force)])
            felt[frame.link] = felt[frame.link] + own if frame.link in felt else own
        return carried_by_joints(motion, felt)


NO_PUSHES = Pushes()


class TimedPushes:
    """Pushes of a simulation: constants, or functions of time."""

    def __init__(self, model: Model, given: Mapping[str, Any], axes: str) -> None:
        self.model, self.given, self.of = model, given, Pushes(tuple(given), axes)
        self.of.check(model)

    def __call__(self, t: float, q: np.ndarray) -> np.ndarray:
        """Their joint forces (nv,) at time t."""
        if not self.given:
            return np.zeros(self.model.nv)
        push = np.concatenate([self._value(n, x, t) for n, x in self.given.items()])
        return np.asarray(self.of.joint_forces(self.model, q[:, None], push[:, None], get("numpy")))[:, 0]

    def _value(self, name: str, given: np.ndarray | Callable[[float], Any], t: float) -> np.ndarray:
        if not callable(given):
            return given
        found = given(t)
        try:
            x = finite_array(found)
        except Refused as why:
            raise InputError(f"the push on '{name}' is no force at t = {t:g} s: {str(why) or shown(found)}") from None
        if x.shape != (6,):
            raise InputError(f"the push on '{name}' has shape {x.shape}; [force; torque] has 6 numbers")
        return x


def pushed(names: Sequence[str], axes: str, model: Model) -> Pushes:
    """The pushes on these frames, checked."""
    made = Pushes(tuple(names), axes)
    made.check(model)
    return made
