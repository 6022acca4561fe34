"""The inputs of a rollout, checked: arrays with or without axes for the batch and for time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwork import chunked_arrays as interruptible
from linkwork.checks import LARGEST, Refused, check_memory, real_array, shown
from linkwork.errors import InputError
from linkwork.functions.parameters import GROUPS, impossible
from linkwork.model import Model
from linkwork.model.unit_quaternions import check_unit_quaternions

TIMED = ("tau", "u", "active", "target", "target_v", "push")
"""Inputs that may change with time."""

PD = ("target", "target_v", "kp", "kd")
"""Inputs of joint control."""

OPTIONS = {
    "active": "modes=True",
    "friction": "contacts=[...]",
    "u": "actuators=True",
    "act": "actuators=True), and actuators with a state, lw.Motor(..., state='filter'",
    "push": "pushes=[...]",
}
"""Other inputs that a rollout has if it is made with an option."""

DEFAULTS = {
    "tau": 0.0,
    "u": 0.0,
    "act": 0.0,
    "push": 0.0,
    "active": 1.0,
    "target_v": 0.0,
    "work": 0.0,
    "impulses": 0.0,
    "worst": 0.0,
}


def taken(
    model: Model,
    sizes: Mapping[str, int],
    given: Mapping[str, Any],
    dtype: str,
    own: Mapping[str, np.ndarray],
    defaults: Mapping[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], int | None]:
    """Checked arrays for all inputs of these `sizes`, and the size of the batch (None: one state).

    `own` are the defaults of parameters, which may have several axes; `defaults` are those of all inputs that have one.
    """
    unknown = [n for n, x in given.items() if x is not None and n not in sizes]
    if unknown and "friction" in sizes and unknown[0] not in (*OPTIONS, *PD, *GROUPS):
        raise InputError(f"a rollout with contacts has no input '{unknown[0]}'")
    if unknown:
        option = OPTIONS.get(unknown[0], "pd=True" if unknown[0] in PD else f"parameters=('{unknown[0]}',)")
        raise InputError(f"this rollout has no input '{unknown[0]}': make it with lw.rollout(..., {option})")
    inputs, batches = {}, {}
    with np.errstate(all="ignore"):
        for name, size in sizes.items():
            value = given.get(name)
            if value is not None:
                x = _numbers(name, size, value, dtype, own.get(name))
                _check(model, name, x, name in own)
            elif name in defaults:
                x = defaults[name]
            else:
                raise InputError(f"a rollout with pd=True needs '{name}'")
            if name in TIMED and x.ndim == 1:
                x = x[None]
            if x.ndim == (3 if name in TIMED else 2):
                batches[name] = len(x)
            inputs[name] = x
    if len(set(batches.values())) > 1:
        raise InputError(f"the inputs have different batch sizes: {batches}")
    if inputs["dt"].shape != (1,) or not inputs["dt"][0] > 0:
        raise InputError(f"dt is a time above 0 s, not {given['dt']!r}")
    return inputs, next(iter(batches.values()), None)


def states_of(inputs: Mapping[str, np.ndarray], which: np.ndarray) -> dict[str, np.ndarray]:
    """The checked inputs of some states of a batch."""
    return {n: x[which] if x.ndim == (3 if n in TIMED else 2) else x for n, x in inputs.items()}


def _check(model: Model, name: str, x: np.ndarray, parameter: bool) -> None:
    """Refuse numbers that this input cannot have."""
    if name in ("q", "v") and interruptible.largest(x) > LARGEST:
        raise InputError(f"'{name}' has entries larger than {LARGEST:g}: no motion can be computed from there")
    if name == "friction" and (x < 0).any():
        raise InputError("'friction' has negative entries")
    if parameter and (why := impossible(model, name, x)):
        raise InputError(why)
    if name in ("q", "target", "rest"):
        check_unit_quaternions(model, x)


def defaults_of(
    sizes: Mapping[str, int], own: Mapping[str, np.ndarray], dt: float, dtype: str
) -> dict[str, np.ndarray]:
    """The inputs that may be left out; parameters with several axes are flattened."""
    out = {n: np.full(size, DEFAULTS[n], dtype) for n, size in sizes.items() if n in DEFAULTS}
    return out | {n: np.array(x, dtype).reshape(sizes[n]) for n, x in own.items()} | {"dt": np.array([dt], dtype)}


def _numbers(name: str, size: int, value: Any, dtype: str, own: np.ndarray | None) -> np.ndarray:
    """One input as an array of finite numbers; a single number stands for all entries."""
    if type(value) is np.ndarray and value.dtype == dtype:
        x = value
    else:
        try:
            x = real_array(value, name)
        except Refused as why:
            raise InputError(f"'{name}' is not an array of numbers ({str(why) or shown(value)})") from None
    if x.ndim == 0:
        x = np.full(size, x)
    if own is not None and own.ndim > 1 and x.shape[-own.ndim :] == own.shape:
        x = x.reshape(*x.shape[: -own.ndim], size)
    timed = name in TIMED
    if x.shape[-1] != size or x.ndim > (3 if timed else 2) or 0 in x.shape[(0 if timed else 1) :]:
        shapes = f"({size},), (times, {size}) or (batch, times, {size})" if timed else f"({size},) or (batch, {size})"
        raise InputError(f"'{name}' has shape {x.shape}; it needs {shapes}")
    check_memory(f"'{name}', {x.shape}, and a result as large", 2 * x.size, "give fewer states at a time")
    x = interruptible.typed(x, dtype)
    if not interruptible.all_finite(x):
        raise InputError(f"'{name}' has entries that are NaN or infinite")
    return x


def counted(steps: int | None, every: int | None, inputs: Mapping[str, np.ndarray]) -> tuple[int, int]:
    """The number of steps, given or one for each tau or u in time, and of steps between two records."""
    n = max(inputs[x].shape[-2] for x in ("tau", "u") if x in inputs) if steps is None else steps
    if not isinstance(n, int | np.integer) or n < 1 or (steps is None and n == 1):
        raise InputError(f"steps={steps!r}: a rollout needs a number of steps, or a tau with one value for each")
    k = 1 if every is None else every
    if not 1 <= k <= n or n % k:
        raise InputError(f"every={k} must divide the {n} steps: states are recorded every so many steps")
    for name in TIMED:
        if name in inputs and n % inputs[name].shape[-2]:
            held = inputs[name].shape[-2]
            raise InputError(
                f"'{name}' has {held} values in time, which do not divide the {n} steps: each is held for steps / "
                f"values steps. One for each state, held all the time, has shape (batch, 1, {inputs[name].shape[-1]})"
            )
    return int(n), k
