"""Baumgarte's stabilisation of constraint rows: J a + dJ/dt v = -2 zeta omega (J v) - omega^2 phi(q)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwork.backends.ops import Array
from linkwork.checks import NOT_NEGATIVE, POSITIVE, checked_class, instance, optional
from linkwork.value_objects import Value


@checked_class(period=POSITIVE, damping=NOT_NEGATIVE)
@dataclass(frozen=True, eq=False)
class Stabilisation(Value):
    """Baumgarte's: position errors decay like a damped oscillator of this period and damping ratio.

    Examples:
        >>> lw.surface("left_foot", stabilisation=lw.Stabilisation(period=0.2)).stabilisation
        Stabilisation(period=0.2, damping=1.0)
    """

    period: float = 0.1
    damping: float = 1.0

    @property
    def omega(self) -> float:
        return 2 * np.pi / self.period

    def pull(self, rate: Array, curvature: Array, phi: Array) -> Array:
        """What is added to J a + dJ/dt v = 0: 2 zeta omega (J v) + omega^2 phi; `curvature` is dJ/dt v."""
        return (2 * self.damping * self.omega) * rate + self.omega**2 * phi


STABILISATION = optional(instance(Stabilisation, "a linkwork.Stabilisation"))


@dataclass(frozen=True, eq=False)
class Stepped(Stabilisation):
    """The same for semi-implicit Euler steps of length h.

    Such a step moves phi by h (J v+) + h^2/2 (dJ/dt v): seen from its end, the rate of phi was J v - h/2 (dJ/dt v), not
    J v. Uncorrected, phi does not decay to 0 but to -h (dJ/dt v) / omega.
    """

    h: Array | float = 0.0

    def pull(self, rate: Array, curvature: Array, phi: Array) -> Array:
        return super().pull(rate - (self.h / 2) * curvature, curvature, phi)
