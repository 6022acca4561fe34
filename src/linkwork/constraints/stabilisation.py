"""Baumgarte's stabilisation of constraint rows: J a + drift = -2 zeta omega (J v) - omega^2 phi(q)."""

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

    def pull(self, rate: Array, drift: Array, phi: Array) -> Array:
        """What is added to J a + drift = 0: 2 zeta omega (J v) + omega^2 phi."""
        return (2 * self.damping * self.omega) * rate + self.omega**2 * phi


STABILISATION = optional(instance(Stabilisation, "a linkwork.Stabilisation"))

SHARE = 0.6
"""The share of the correction for the step's curvature; all of it excites rows that are nearly redundant."""


@dataclass(frozen=True, eq=False)
class Stepped(Stabilisation):
    """The same for semi-implicit Euler steps of length h.

    Such a step moves phi by h (J v+) + h^2/2 drift: seen from its end, the rate of phi was J v - h/2 drift, not J v.
    Uncorrected, phi does not decay to 0 but to -h drift / omega.
    """

    h: Array | float = 0.0

    def pull(self, rate: Array, drift: Array, phi: Array) -> Array:
        return super().pull(rate - (SHARE / 2 * self.h) * drift, drift, phi)
