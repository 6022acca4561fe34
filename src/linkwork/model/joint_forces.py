"""Joint forces that depend on the state: springs and damping (passive.py), and actuators.

A saturated actuator has the stiffness and damping of its secant: where the force f is cut to f_max they are scaled by
f_max / f. With these a semi-implicit step (passive.py) is stable for any gains: no servo passes its target within a
step because of its own stiffness, and one that pushes with all it has moves the mechanism as a constant force does.
Actuators of several joints have a full matrix K g g^T, whose rows' sums |g_i| sum_j |g_j| K bound it by a diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.model.actuator import Actuator
from linkwork.model.model import Model
from linkwork.model.motion import Motion
from linkwork.model.passive import implicit_inertia as of_passive
from linkwork.model.passive import passive_force
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
    total, t = _sums(model, _driven(model, q, v, xp, given), xp), model.topology
    cut = [_clipped(total[k], _effort(model, k), xp)[0] if k in total else xp.zeros(1)[0, 0] for k in range(t.nv)]
    return xp.matrix([[x] for x in cut]) if cut else xp.zeros(0)


def implicit_inertia(
    model: Model, h: Array, xp: Ops, given: Mapping[str, Array] | None = None, q: Array = None, v: Array = None
) -> Array | None:
    """What a semi-implicit step of h adds to armature for springs, damping and servos, nv x 1, or None.

    q and v are those of servos, whose stiffness depends on whether they are saturated.
    """
    known = given or {}
    own = of_passive(model, h, xp, known)
    if "u" not in known or not _has_servos(model, known):
        return own
    driven = list(_driven(model, q, v, xp, known))
    total, extra = _sums(model, driven, xp), {k: xp.zeros(1)[0, 0] for k in range(model.nv)}
    for d in driven:
        size = sum(abs(g) for g in d.gears.values())
        for k, g in d.gears.items():
            if model.links[d.links[k]].joint.kind != "free":
                extra[k] = extra[k] + (abs(g) * size) * d.share * (h * d.damping + (h * h / 2) * d.stiffness)
    cut = {k: _clipped(x, _effort(model, k), xp)[1] for k, x in total.items()}
    servos = xp.matrix([[extra[k] * cut[k] if k in cut else extra[k]] for k in range(model.nv)])
    return servos if own is None else own + servos


class Driven(NamedTuple):
    """An actuator in a state: gears and links by degree of freedom, its force, the share that is left.

    `stiffness` and `damping` are those of the actuator's length, at least zero.
    """

    gears: dict[int, float]
    links: dict[int, int]
    force: Array
    share: Array
    stiffness: Array
    damping: Array


def _driven(model: Model, q: Array, v: Array, xp: Ops, given: Mapping[str, Array]) -> Iterator[Driven]:
    u, t = given["u"], model.topology
    for n, a in enumerate(model.actuators):
        gears, links, length, speed = dict[int, float](), dict[int, int](), xp.zeros(1), xp.zeros(1)
        for name, values in a.joints.items():
            i = model.joint(name)
            link, g = model.links[i], xp.constant(np.array(values)).T
            first = t.v_slices[i].start
            gears |= {first + k: x for k, x in enumerate(values)}
            links |= dict.fromkeys(range(first, first + len(values)), i)
            speed = speed + g @ v[t.v_slices[i], :]
            rest = xp.constant(link.joint.neutral())
            length = length + g @ link.joint.displacement(rest, q[t.q_slices[i], :], xp)
        state = 1.0, length[0, 0], speed[0, 0]
        gain, bias = (_numbers(what, a, n, given) for what in ("gain", "bias"))
        control, _ = _clipped(u[n, 0], a.control_range, xp)
        slopes = [g * control + b for g, b in zip(gain, bias, strict=True)]
        force, share = _clipped(sum(k * x for k, x in zip(slopes, state, strict=True)), a.force_range, xp)
        stiffness, damping = (xp.where(k < 0, -k, 0.0) for k in slopes[1:])
        yield Driven(gears, links, force, share, stiffness, damping)


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


def _sums(model: Model, driven: Iterator[Driven] | list[Driven], xp: Ops) -> dict[int, Array]:
    """The force of all actuators by degree of freedom."""
    total = dict[int, Array]()
    for d in driven:
        for k, g in d.gears.items():
            total[k] = total[k] + g * d.force if k in total else g * d.force
    return total


def _effort(model: Model, k: int) -> tuple[float, float]:
    """The bounds of the actuators' force at a degree of freedom: the effort limit of its joint."""
    i = next(i for i in model.topology.links if k < model.topology.v_slices[i].stop)
    limit = model.links[i].limits.effort
    return (-limit, limit) if limit > 0 else (-np.inf, np.inf)


def _has_servos(model: Model, given: Mapping[str, Array]) -> bool:
    return "gain" in given or "bias" in given or any(a.is_servo for a in model.actuators)
