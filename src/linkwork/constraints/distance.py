"""A rod with ball joints at its ends: the distance of two points is constant.

phi = (|d|^2 - L^2) / 2L,   d = p_a - p_b:   in metres near zero, and smooth everywhere
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwork.backends.ops import Array
from linkwork.checks import NAME, SMALLEST, checked_class, number
from linkwork.constraints.base import Constraint, Rows
from linkwork.constraints.closure import Closure, Connect
from linkwork.constraints.stabilisation import STABILISATION, Stabilisation
from linkwork.errors import ModelError
from linkwork.lazy import cached_property

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion


@checked_class(a=NAME, b=NAME, length=number(what="a length in metres"), name=NAME, stabilisation=STABILISATION)
@dataclass(frozen=True, eq=False, repr=False)
class Distance(Constraint):
    """The origins of frames `a` and `b` stay `length` metres apart. A positive multiplier is a push.

    Examples:
        >>> model = chain(3).with_constraints(lw.Distance("linktip", "world", length=0.5))
        >>> model.rows
        1
    """

    a: str
    b: str
    length: float
    name: str = ""
    stabilisation: Stabilisation | None = None

    def __post_init__(self) -> None:
        if self.length < SMALLEST:
            raise ModelError(f"the length of a rod must be above zero, not {self.length!r}; use Connect for zero")
        object.__setattr__(self, "name", self.name or f"{self.a}--{self.b}")

    rows = 1

    @cached_property
    def _ends(self) -> Closure:
        """The two points: their difference and its derivatives are those of a spherical closure."""
        return Connect(self.a, self.b)

    def check(self, model: Model) -> None:
        self._ends.check(model)

    def touches(self, model: Model) -> tuple[int, ...]:
        return self._ends.touches(model)

    def renamed(self, new: Callable[[str], str]) -> Distance:
        return replace(self, a=new(self.a), b=new(self.b), name=new(self.name))

    def describe(self) -> str:
        return f"rod of {self.length:g} m {self.a} -- {self.b}"

    def evaluate(self, motion: Motion) -> Rows:
        """J v = d^T (v_a - v_b) / L;  its drift is (|v_a - v_b|^2 + d^T drift) / L."""
        ends = self._ends.evaluate(motion)
        along = self._ends.position_error(motion).T / self.length
        rate = sum((K @ motion.V[l] for l, K in ends.links.items()), motion.xp.zeros(3))
        drift = rate.T @ rate / self.length + along @ ends.drift
        return Rows({l: along @ K for l, K in ends.links.items()}, {}, drift)

    def position_error(self, motion: Motion) -> Array:
        d = self._ends.position_error(motion)
        return (d.T @ d - self.length**2 * motion.xp.eye(1)) / (2 * self.length)
