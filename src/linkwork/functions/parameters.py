"""Parameters of a model as inputs of its functions: one value for all states, or one for each.

`parameters=("inertia", "gravity")` adds inputs of these names behind the others, with `model.parameters()` as defaults.
What is not named stays constant, and folds away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linkwork.checks import choice, several
from linkwork.constraints import CentreOfMass
from linkwork.errors import InputError, UnsupportedError, listing
from linkwork.model import Model
from linkwork.model.parameters import UNITS

GROUPS = (*UNITS, "softness")
PARAMETERS = several(choice("group of parameters", GROUPS))

BY_MASS = ("inertia", "armature")
"""Parameters of the mass matrix and what is made of it."""

BY_FORCE = (*BY_MASS, "gravity", "damping", "stiffness", "rest")
"""Parameters of inverse dynamics."""

BY_ROWS = (*BY_FORCE, "targets", "softness")
"""Parameters of forward dynamics."""

BY_CONTROL = ("gain", "bias")
"""Parameters of actuators."""

BY_CONTACT = (*BY_FORCE, "joint_friction")
"""Parameters of steps with contacts, limits and dry friction; coefficients of contacts are inputs anyway."""


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
            raise InputError(f"this function does not depend on {listing(wrong)}; its parameters are {listing(valid)}")
        if "softness" in self.named and softness is None:
            raise InputError("parameters=('softness',) makes R an input: give R=, which is its default")
        if "targets" in self.named and not model.constraints:
            raise InputError("targets are those of constraint rows, and this model has none")
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
