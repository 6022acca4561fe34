"""Parameters of a model as inputs of its functions: one value for all states, or one for each.

`parameters=("inertia", "gravity")` adds inputs of these names behind the others, with `model.parameters()` as defaults.
What is not named stays constant, and folds away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.backends.ops import threshold
from linkwork.checks import Kind, choice, several
from linkwork.constraints import CentreOfMass
from linkwork.errors import InputError, UnsupportedError, listing
from linkwork.model import Model
from linkwork.model.memo import cached
from linkwork.model.parameters import UNITS

GROUPS = (*UNITS, "softness")


def _group(value: Any) -> str:
    """The name of a group; those of contacts are told where their coefficients are."""
    if isinstance(value, str) and value in ("friction", "contact_friction"):
        raise InputError(
            f"'{value}' of contacts is no group of parameters: it is the input `friction` of lw.step and of "
            "lw.rollout(..., contacts=[...]), always; the dry friction of joints is 'joint_friction'"
        )
    return str(_KNOWN.take(value))


_KNOWN = choice("group of parameters", GROUPS)
PARAMETERS = several(Kind(_KNOWN.what, _group))

BY_MASS = ("inertia", "armature")
"""Parameters of the mass matrix."""

BY_EFFECT = (*BY_MASS, "link_rows")
"""Parameters of the effective inertia of constraint rows, and of impulses."""

BY_TENDON = ("tendon_stiffness", "tendon_damping", "tendon_rest")
"""Parameters of tendons."""

BY_FORCE = (*BY_MASS, "gravity", "damping", "stiffness", "rest", *BY_TENDON)
"""Parameters of inverse dynamics."""

BY_OWN_ROWS = ("targets", "link_rows", "softness")
"""Parameters of the model's own constraint rows."""

BY_ROWS = (*BY_FORCE, *BY_OWN_ROWS)
"""Parameters of forward dynamics."""

BY_CONTROL = ("gain", "bias")
"""Parameters of actuators."""

BY_CONTACT = (*BY_ROWS, "joint_friction")
"""Parameters of steps with contacts, limits and dry friction; coefficients of contacts are inputs anyway."""


NEVER_NEGATIVE = ("armature", "joint_friction")

LEAST = float(np.finfo(np.float32).tiny)
"""The least softness: forces of rows are divided by it."""

INDEFINITE = 1e-9
"""How negative a principal moment may be, relative to the moments about the link's origin: by rounding."""


def impossible(model: Model, name: str, value: np.ndarray) -> str:
    """Why no body and no joint has these values of a parameter; "" if they can be.

    They are flat, or behind an axis for states.

    Links whose inertia in the model itself is impossible, by the fault of a file, may keep it so.
    """
    if name in NEVER_NEGATIVE and (value < 0).any():
        return f"'{name}' has negative entries"
    if name == "softness" and not (value >= LEAST).all():
        return "'softness' has entries that are not above zero: a hard row is one of a function made without R="
    if name == "tendon_rest" and (value[..., 0::2] > value[..., 1::2]).any():
        return "'tendon_rest' has a lower length above the upper one"
    if name != "inertia":
        return ""
    slack = INDEFINITE if value.dtype == np.float64 else INDEFINITE**0.5
    each = value.reshape(-1, model.nlinks, 10).astype(float)
    units, checked = _own_inertias(model)
    wrong = checked & np.any([(x[0] < 0).any(axis=0) for x in _signs(each.transpose(2, 0, 1), units, slack)], axis=0)
    if not wrong.any():
        return ""
    i = int(np.argmax(wrong))
    what = "mass" if (each[:, i, 0] < 0).any() else "moment of inertia about its centre of mass"
    return (
        f"'inertia' gives link '{model.links[i + 1].name}' a negative {what}, which no body has; its ten numbers are "
        "[m  m c  Ixx Ixy Iyy Ixz Iyz Izz], about the link's origin"
    )


def possible_guard(model: Model, inputs: Mapping[str, Array], xp: Ops) -> Array:
    """Zero, or NaN where `impossible` has something to say; for machine code."""
    lowest, guard, odd = None, xp.zeros(1), xp.constant([[np.nan]])
    for *others, last in _not_negative(model, inputs, xp):
        guard = xp.where(last >= 0, guard, odd)  # which what is no number is not either
        for x in others:
            lowest = x if lowest is None else xp.where(x < lowest, x, lowest)
    return guard if lowest is None else xp.where(lowest < 0, odd, guard)


def _not_negative(model: Model, inputs: Mapping[str, Array], xp: Ops) -> Iterator[tuple[Array, ...]]:
    """Numbers that are not negative if a body or joint has these parameters.

    The last one of each depends on all of its parameters.
    """
    for name in NEVER_NEGATIVE:
        for k in range(inputs[name].shape[0] if name in inputs else 0):
            yield (inputs[name][k : k + 1, :],)
    for k in range(inputs["softness"].shape[0] if "softness" in inputs else 0):
        yield (inputs["softness"][k : k + 1, :] - LEAST,)
    units, checked = _own_inertias(model)
    for i in np.flatnonzero(checked) if "inertia" in inputs else ():
        yield _signs(inputs["inertia"][10 * i : 10 * i + 10, :], float(units[i]), threshold(xp, INDEFINITE))


@cached
def _own_inertias(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """A unit for each link's inertia, against overflow, and whether its own inertia is possible."""
    own = model.parameters().inertia.T
    size = own[0] * (own[4] + own[6] + own[9])
    strange = ((size > 1e-100) & (size < 1e-30)) | ((size > 1e30) & (size < 1e100))
    units = np.where(strange, 1 / np.where(strange, size, 1.0), 1.0)
    return units, np.all([x[0] >= 0 for x in _signs(own, units, INDEFINITE)], axis=0)


def _signs(row: Array, unit: Any, slack: float) -> tuple[Array, ...]:
    """What is not negative if a body has this inertia: its mass, and minors of I about c.

        m I_c = m I + (h h^T - h.h E)

    The moments of I count as larger by `slack`. Of a body without mass, the trace of I decides.
    """
    mass, *rest = (row[k : k + 1, :] for k in range(10))
    x, y, z = (h * unit**0.5 for h in rest[:3])
    xx, xy, yy, xz, yz, zz = rest[3:]
    m, more = mass * unit, mass * (unit * (1 + slack))
    square = x * x + y * y + z * z
    A, B, C = (more * moment + (h * h - square) for moment, h in ((xx, x), (yy, y), (zz, z)))
    D, E, F = m * xy + x * y, m * xz + x * z, m * yz + y * z
    minor, mixed = A * B - D * D, A * F - D * E
    return mass, xx + yy + zz, A, minor, minor * (A * C - E * E) - mixed * mixed  # the last is A times det


class Inputs:
    """The inputs of a function: `sizes` of those that it has anyway, then the parameters that are `named`.

    `defaults` and `shapes` are those of parameters; `softness` is the default of the group of that name.
    """

    def __init__(
        self,
        model: Model,
        named: Sequence[str],
        valid: Sequence[str],
        more: Mapping[str, np.ndarray] | None = None,
        softness: np.ndarray | None = None,
        **sizes: int,
    ) -> None:
        self.named = tuple(n for n in GROUPS if n in named)
        wrong = [n for n in self.named if n not in valid]
        if wrong:
            has = f"its parameters are {listing(valid)}" if valid else "it has no parameters"
            raise InputError(f"this function does not depend on {listing(wrong)}; {has}")
        if "softness" in self.named and softness is None:
            raise InputError("parameters=('softness',) makes R an input: give R=, which is its default")
        if "targets" in self.named and not model.constraints:
            raise InputError("targets are those of constraint rows, and this model has none")
        if {*BY_TENDON} & {*self.named} and not model.tendons:
            raise InputError("this model has no tendons: model.with_tendons(lw.Tendon(...)) adds some")
        if "link_rows" in self.named:
            _check_link_rows([c.name for c in model.constraints if len(c.coefficients)])
        if "inertia" in self.named and any(isinstance(c, CentreOfMass) for c in model.constraints):
            raise UnsupportedError("the centre of mass is a constraint here, and its rows have the model's own masses")
        known = dict(model.parameters()) if self.named else {}
        if softness is not None:
            known["softness"] = softness
        given = {n: known[n] for n in self.named}
        self.defaults = {**(more or {}), **given}
        self.sizes = {**sizes, **{n: x.size for n, x in self.defaults.items()}}
        self.shapes = {n: x.shape for n, x in given.items() if x.ndim > 1}

    @property
    def identity(self) -> tuple[str, ...]:
        """What the cache distinguishes functions by."""
        return self.named


def _check_link_rows(names: Sequence[str]) -> None:
    """Refuse models whose rows over links are not there, or cannot be told apart."""
    if not names:
        raise InputError("link_rows are the K of LinkRows constraints, and this model has none")
    if len(set(names)) < len(names):
        raise InputError(f"the LinkRows {listing(names)} need names of their own: LinkRows(..., name=)")
