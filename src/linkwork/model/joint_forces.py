"""Joint forces that depend on the state: springs and damping (springs_and_dampers.py), and actuators.

A saturated actuator has the stiffness and damping of its secant: where the force f is cut to f_max they are scaled by
f_max / f. With these a semi-implicit step (springs_and_dampers.py) is stable for any gains: no servo passes its target
within a step because of its own stiffness, and one that pushes with all it has moves the mechanism as a constant force
does. Actuators of several joints add a full matrix, bounded by a diagonal (transmission_lengths.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.model.activation import bounded
from linkwork.model.actuator import Actuator
from linkwork.model.model import Model
from linkwork.model.motion import Motion
from linkwork.model.springs_and_dampers import implicit_inertia as of_passive
from linkwork.model.springs_and_dampers import passive_force
from linkwork.model.transmission_lengths import Joints, column, forces_along, implicit_along, length, length_rate
from linkwork.model.wrenches import carried_by_joints


def joint_forces(model: Model, q: Array, v: Array, xp: Ops, given: Mapping[str, Array] | None = None) -> Array | None:
    """Forces of springs, damping and, for controls u that are `given`, actuators, nv x 1, or None.

    Springs and damping of joints that close loops count, too.
    """
    parts = (
        passive_force(model, q, v, xp, given),
        actuator_force(model, q, v, xp, given or {}),
        cut_force(model, q, v, xp),
    )
    return total_of(*parts)


def cut_force(model: Model, q: Array, v: Array, xp: Ops) -> Array | None:
    """Joint forces of damping and springs of cut joints (`Closure.resistance`), nv x 1; None without any."""
    resisting = [c for c in model.constraints if getattr(c, "damping", 0.0) or getattr(c, "stiffness", 0.0)]
    if not resisting:
        return None
    motion, felt = Motion(model, q, v, xp), dict[int, Array]()
    for c in resisting:
        for i, f in c.resistance(motion).items():  # type: ignore[attr-defined]
            felt[i] = felt[i] + f if i in felt else f
    return carried_by_joints(motion, felt)


def total_of(*parts: Array | None) -> Array | None:
    """The sum of those that are there."""
    there = [x for x in parts if x is not None]
    return sum(there[1:], start=there[0]) if there else None


def actuator_force(model: Model, q: Array, v: Array, xp: Ops, given: Mapping[str, Array]) -> Array | None:
    """Joint forces of all actuators for the controls u that are `given`, nv x 1; None without controls."""
    if "u" not in given:
        return None
    total = forces_along(model, ((d.joints, d.force) for d in _driven(model, q, v, xp, given)))
    return column({k: _clipped(x, _effort(model, k), xp)[0] for k, x in total.items()}, model.nv, xp)


def implicit_inertia(
    model: Model, h: Array, xp: Ops, given: Mapping[str, Array] | None = None, q: Array = None, v: Array = None
) -> Array | None:
    """What a semi-implicit step of h adds to armature for springs, damping and servos, nv x 1, or None.

    q and v are those of servos, whose stiffness depends on whether they are saturated.
    """
    known = given or {}
    own = of_passive(model, h, xp, known, q)
    if "u" not in known or not _has_servos(model, known):
        return own
    driven = list(_driven(model, q, v, xp, known))
    total = forces_along(model, ((d.joints, d.force) for d in driven))
    extra = implicit_along(model, ((d.joints, d.share * (h * d.damping + (h * h / 2) * d.stiffness)) for d in driven))
    cut = {k: x * _clipped(total[k], _effort(model, k), xp)[1] for k, x in extra.items()}
    servos = column(cut, model.nv, xp)
    return servos if own is None else own + servos


class Driven(NamedTuple):
    """An actuator in a state: its gears, its force, the share that is left.

    `stiffness` and `damping` are those of the actuator's length, at least zero.
    """

    joints: Joints
    force: Array
    share: Array
    stiffness: Array
    damping: Array


def _driven(model: Model, q: Array, v: Array, xp: Ops, given: Mapping[str, Array]) -> Iterator[Driven]:
    u, place = given["u"], 0
    for n, a in enumerate(model.actuators):
        gain, bias = (_numbers(what, a, n, given) for what in ("gain", "bias"))
        control = given["act"][place, 0] if a.state else bounded(u[n, 0], a.control_range, xp)
        place += bool(a.state)
        slopes = [g * control + b for g, b in zip(gain, bias, strict=True)]
        state = 1.0, length(model, a.joints, q, xp), length_rate(model, a.joints, v, xp)
        force, share = _clipped(sum(k * x for k, x in zip(slopes, state, strict=True)), a.force_range, xp)
        stiffness, damping = (xp.where(k < 0, -k, 0.0) for k in slopes[1:])
        yield Driven(a.joints, force, share, stiffness, damping)


def _numbers(what: str, a: Actuator, n: int, given: Mapping[str, Array]) -> list[Array]:
    """Gain or bias of an actuator: constants, or inputs."""
    return [given[what][3 * n + k, 0] for k in range(3)] if what in given else [float(x) for x in getattr(a, what)]


def _clipped(x: Array, bounds: tuple[float, float], xp: Ops) -> tuple[Array, Array | float]:
    """x within bounds, and the share of it that is left: 1 where it is inside."""
    lower, upper = bounds
    out, share = x, 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.isfinite(lower):
            below = x < lower
            out = xp.where(below, lower, out)
            share = xp.where(below, lower / xp.where(below, x, 1.0) if lower <= 0 else 0.0, share)
        if np.isfinite(upper):
            above = x > upper
            out = xp.where(above, upper, out)
            share = xp.where(above, upper / xp.where(above, x, 1.0) if upper >= 0 else 0.0, share)
    return out, share


def _effort(model: Model, k: int) -> tuple[float, float]:
    """The bounds of the actuators' force at a degree of freedom: the effort limit of its joint."""
    i = next(i for i in model.topology.links if k < model.topology.v_slices[i].stop)
    limit = model.links[i].limits.effort
    return (-limit, limit) if limit > 0 else (-np.inf, np.inf)


def _has_servos(model: Model, given: Mapping[str, Array]) -> bool:
    return "gain" in given or "bias" in given or any(a.is_servo for a in model.actuators)
