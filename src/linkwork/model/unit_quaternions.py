"""Quaternions [x y z w] and planar [cos sin] have length one: others are refused or marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.errors import InputError

if TYPE_CHECKING:
    from linkwork.model.model import Model

UNIT_TOLERANCE = 1e-4
"""How far from one the length of a quaternion may be."""


def places(model: Model) -> list[np.ndarray]:
    """Where such numbers are in q: one array of rows for pairs, one for quaternions."""
    parts = [list(range(part.start, part.stop)) for i in model.topology.links for part in model.unit_parts(i)]
    return [np.array([p for p in parts if len(p) == size]) for size in sorted({len(p) for p in parts})]


def check_unit_quaternions(model: Model, q: np.ndarray) -> None:
    """Refuse positions, an array of numbers with nq columns, that have others, by the name of the joint."""
    squares = q * q
    if all((np.abs(squares[..., k].sum(axis=-1) - 1) <= UNIT_TOLERANCE).all() for k in model._units):
        return
    for i, part in ((k, part) for k in model.topology.links for part in model.unit_parts(k)):
        length = np.ravel(np.sqrt((q[..., part] ** 2).sum(axis=-1)))
        if np.any(np.abs(length - 1) > UNIT_TOLERANCE):
            what = "[cos sin]" if part.stop - part.start == 2 else "quaternion [x y z w]"
            where = f"of joint '{model.links[i].joint_name}' (entries {part.start}..{part.stop - 1})"
            raise InputError(
                f"q: the {what} {where} has length "
                f"{length[np.argmax(np.abs(length - 1))]:.6g}, not 1; "
                "model.normalised(q) makes it one, model.neutral() gives a valid configuration"
            )


def unit_guard(model: Model, q: Array, xp: Ops) -> Array:
    """Zero, or NaN where a quaternion of q is not of length one.

    Machine code adds it to an output that is a number otherwise, so that Python looks at the inputs.
    """
    guard = xp.zeros(1)
    for i in model.topology.links:
        for part in model.unit_parts(i):
            off = q[part, :].T @ q[part, :] - 1
            guard = guard + xp.where(off * off < (2 * UNIT_TOLERANCE) ** 2, 0.0, float("nan"))
    return guard
