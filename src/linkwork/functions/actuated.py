"""Inverse dynamics of robots that may be underactuated: a large residual is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.errors import ActuationError
from linkwork.functions.function import Function, R
from linkwork.functions.traced import marked

RESIDUAL = {"float64": 1e-6, "float32": 1e-2}
"""The largest residual, relative to M a + c, that counts as zero."""


class LeastCost(NamedTuple):
    """What is least, |tau|^2 + (weight |lam|)^2, and which degrees of freedom are actuated (nv).

    `enough` says that these are enough for all motions.
    """

    actuated: np.ndarray
    weight: float
    enough: bool


class ActuatedFunction(Function[R]):
    """A function whose `residual` must be small; where it is not, a kernel makes `tau` NaN.

    `least` says of which forces its results are.
    """

    least: LeastCost | None = None

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        outputs = super()._traced(xp, inputs, symbol)
        missing = xp.where(outputs["residual"] <= RESIDUAL[self.dtype], 0.0, float("nan"))
        return {**outputs, "tau": marked(xp, outputs["tau"], missing)}

    def _sound(self, result: Any, arrays: list[np.ndarray], batch: int | None) -> Any:
        worst = float(np.max(result.residual, initial=0.0))
        if worst > RESIDUAL[self.dtype]:
            raise ActuationError(
                f"{self.name}: these accelerations need other motors: {worst:.3g} of the forces M a + c is "
                "left over. Actuate more joints, add the contacts that carry the robot, or give an `a` of its dynamics"
            )
        return super()._sound(result, arrays, batch)
