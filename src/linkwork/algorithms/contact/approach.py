"""How fast a contact may approach the ground within a step: u_n >= -offset.

`offset` is gap / h in front of the ground: the contact may close the gap within the step. For a contact that bounces it
is restitution times the velocity before the step. At a depth d below the ground it is what brings the contact out,

    d / (T + d / w),    w = 8 g T,

with the recovery time T: d / T where d is small, and w at most. Contacts do not pull, so a body that comes out goes on
with that velocity v; v^2 < 2 g d for every d, so that gravity stops it before it leaves the ground. Joints outside
their limits come back with as much, in rad/s or m/s.

A round body may sink while it rolls, for its places of contact change within a step. What then brings it out must not
add energy to its motion: with the normal velocities u-, before the step, and u_free, without contacts,

    it leaves the ground no faster than it came, -offset <= -u-, where u- < 0: p (u- + u+) / 2 <= 0;
    else what brings it out is g h / |u_free| of the above, where that is less: p times it is no more than the work
    against the weight, m g d for the depth d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.lazy import cached_property
from linkwork.model import Model

RECOVERY = 0.02
"""Seconds in which a contact that has sunk into the ground comes out of it, and a joint back into its limits; at least
two steps."""

CLOSED = 1e-9
"""Gaps (m) that count as none, so that the contacts of a flat face agree on whether it moves."""

EARTH = 9.81
"""m/s^2."""

SLOW = 1e-2
"""Normal velocities (m/s) below which nothing bounces."""


@dataclass(frozen=True)
class Approach:
    """The offsets of a step of h in a field of gravity g."""

    h: Array
    g: float
    xp: Ops

    @cached_property
    def time(self) -> Array:
        """T."""
        return self.xp.where(2 * self.h > RECOVERY, 2 * self.h, RECOVERY)

    @cached_property
    def slower(self) -> Array:
        """1 / w."""
        return 1 / (8 * self.g * self.time)

    def offset(self, gap: Array) -> Array:
        """Of a contact at this distance from the ground."""
        xp = self.xp
        offset = gap / xp.where(gap > 0, self.h, self.time - gap * self.slower)
        return xp.where(gap * gap < CLOSED * CLOSED, 0.0, offset)

    def bounced(self, offset: Array, gap: Array, free: Array, before: Array, restitution: float) -> Array:
        """The same, of a contact that bounces if it hits the ground."""
        hits = self.xp.where(gap + self.h * free < 0, before, 0.0) < -SLOW
        return self.xp.where(hits, restitution * before, offset)

    def rounded(self, offset: Array, rolls: Array, free: Array, before: Array) -> Array:
        """The same, of a round body, whose place of contact gets the normal velocity `rolls` by rolling."""
        xp, weight = self.xp, self.g * self.h
        least = xp.where(before < 0, before, 0.0)
        rolls = xp.where(rolls > least, rolls, least)
        pushed = rolls + offset * xp.where(free < -weight, -weight / free, 1.0)
        limited = xp.where(before < 0, xp.where(pushed > before, pushed, before), pushed)
        return xp.where(offset < 0, limited, rolls + offset)

    def stopped(self, below: Array, above: Array) -> tuple[Array, Array]:
        """The least and the largest velocity of a joint between its limits."""
        xp = self.xp
        lower = below / xp.where(below < 0, self.h, self.time + below * self.slower)
        return lower, above / xp.where(above > 0, self.h, self.time - above * self.slower)


def gravity_of(model: Model) -> float:
    """g, or that of the earth where there is none: nothing stops there what comes out of the ground."""
    return float(np.linalg.norm(model.gravity)) or EARTH
