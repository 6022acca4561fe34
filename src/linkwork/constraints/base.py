"""The form of constraints that every algorithm takes, and the interface that produces it.

    sum_l K_l a_l + sum_i G_i vdot_i + drift = 0,   stabilised:  ... = -2 zeta omega (J v) - omega^2 phi(q)

with `a_l` the classical acceleration of link l (see model/motion.py) in its own frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwork.backends.ops import Array
from linkwork.value_objects import Value, clipped, short

if TYPE_CHECKING:
    from linkwork.constraints.stabilisation import Stabilisation
    from linkwork.model import Model
    from linkwork.model.motion import Motion


@dataclass(frozen=True)
class Rows:
    """K_l (m x 6) for each link, G_i (m x nv_i) for each joint (by its link), and the drift (m x 1).

    `relative` rows do not depend on a motion, rotations included, that all their links, the world too, have in common.
    """

    links: Mapping[int, Array]
    joints: Mapping[int, Array]
    drift: Array
    relative: bool = True


class Constraint(Value):
    """Base of all constraints. They are frozen and refer to frames, links and joints by name."""

    name: str
    stabilisation: Stabilisation | None

    @property
    def rows(self) -> int:
        """How many equations this constraint adds."""
        raise NotImplementedError

    @property
    def original(self) -> Constraint:
        """The user's constraint, where this one replaces it."""
        return self

    @property
    def source(self) -> Model | None:
        """The model whose rows these are, where this constraint replaces one of another model."""
        return None

    @property
    def coefficients(self) -> np.ndarray:
        """The numbers K over links that can be inputs of functions, n x 6; most constraints have none."""
        return np.zeros((0, 6))

    def check(self, model: Model) -> None:
        """Raise a typed error if the model lacks what this constraint names."""
        raise NotImplementedError

    def touches(self, model: Model) -> tuple[int, ...]:
        """The links whose accelerations the rows contain (0 is the world)."""
        raise NotImplementedError

    def evaluate(self, motion: Motion) -> Rows:
        """The rows and their drift in this state."""
        raise NotImplementedError

    def evaluate_relative(self, motion: Motion) -> Rows:
        """The same where the constraint is met, and `relative` if there are such rows."""
        return self.evaluate(motion)

    def position_error(self, motion: Motion) -> Array:
        """phi(q), m x 1, whose derivative is J v where phi is zero."""
        raise NotImplementedError

    def without_passive(self) -> Constraint:
        """The same without damping and springs of its own, which only some closures have."""
        return self

    def renamed(self, new: Callable[[str], str]) -> Constraint:
        """The same constraint in a model with other names, its own included: `new(name)` for each `name`."""
        raise NotImplementedError

    def describe(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        kind, what = type(self).__name__, self.describe()
        return f"{kind}({short(self.name)}{'' if what == kind else ', ' + clipped(what, 60)})"
