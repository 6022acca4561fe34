"""Inverse dynamics of robots that may be underactuated: a large residual is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.errors import ActuationError, SingularError
from linkwork.functions.function import Function, R
from linkwork.functions.recipes import remade
from linkwork.lazy import cached_property

RESIDUAL = {"float64": 1e-6, "float32": 1e-2}
"""The largest residual, relative to M a + c, that counts as zero."""

RESOLVED = {"float64": 1e-10, "float32": 1e-5}
"""The largest residual of machine code: where torques are small beside M a + c, more would be a part of them."""


class LeastCost(NamedTuple):
    """What is least, |tau|^2 + (weight |lam|)^2, and which degrees of freedom are actuated (nv).

    `enough` says that these are enough for all motions.
    """

    actuated: np.ndarray
    weight: float
    enough: bool


class ActuatedFunction(Function[R]):
    """A function whose `residual` must be small; where it is not, a kernel makes `tau` NaN.

    `least` says of which forces its results are. Where rounding decides about a result, or actuators that are enough
    for all motions are too few in a posture, singular values do.
    """

    least: LeastCost | None = None

    def _guard(self, xp: Ops, inputs: Mapping[str, Array]) -> Array:
        return self._guard_of_inputs(xp, inputs) + xp.where(
            self._body(xp, inputs)["residual"] <= RESOLVED[self.dtype], 0.0, float("nan")
        )

    def _guard_of_inputs(self, xp: Ops, inputs: Mapping[str, Array]) -> Array:
        """That of inputs alone, for results which doubt themselves."""
        return super()._guard(xp, inputs)

    def _sound(self, result: Any, arrays: list[np.ndarray], batch: int | None) -> Any:
        dense = self._dense
        for b in self._odd(list(result), batch) if dense is not None else ():
            assert dense is not None
            found = dense._execute([x.astype(float) for x in self._state(arrays, b).values()])
            for part, x in zip(result, found.values(), strict=True):
                part[b] = x.reshape(part[b].shape)
        worst = float(np.max(result.residual, initial=0.0))
        if worst > RESIDUAL[self.dtype]:
            raise ActuationError(
                f"{self.name}: these accelerations need other motors: {worst:.3g} of the forces M a + c is "
                "left over. Actuate more joints, add the contacts that carry the robot, or give an `a` of its dynamics"
            )
        return super()._sound(result, arrays, batch)

    def _singular(self, where: str = "", state: Mapping[str, np.ndarray] | None = None) -> SingularError:
        return SingularError(
            f"{self.name}: there is no solution{where}: in this posture the constraint rows do not hold the joints "
            "without actuators, or rounding decides about forces of redundant rows. Actuate more joints, or give "
            "constraint forces a larger weight"
        )

    @cached_property
    def _dense(self) -> Function[Any] | None:
        """The same function for any number of motors, by singular values."""
        enough = self.least is not None and self.least.enough
        if self.recipe is None or (self.backend == "numpy" and not enough):
            return None
        module, name, args, named = self.recipe
        how = {"backend": "numpy", "dtype": "float64", "threads": None, "underactuated": True}
        return cast(Function[Any], remade(module, name, args, {**named, **how}, None))
