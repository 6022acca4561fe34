"""Inverse dynamics of robots whose motors may not be enough: what is left over is an error."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwork.errors import ActuationError
from linkwork.functions.function import Function

RESIDUAL = {"float64": 1e-6, "float32": 1e-2}
"""The part of M a + c that may be left over before it counts as missing."""


class ActuatedFunction(Function):
    """A function whose result has a `residual`, which must be small."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        result = super().__call__(*args, **named)
        worst = float(np.max(result.residual, initial=0.0))
        if not worst <= RESIDUAL[self.dtype]:
            raise ActuationError(
                f"{self.name}: these accelerations need other motors: {worst:.3g} of the forces M a + c is "
                "left over. Actuate more joints, add the contacts that carry the robot, or give an `a` of its dynamics"
            )
        return result
