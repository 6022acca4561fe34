"""How fast a contact may approach the ground within a step: u_n >= -offset.

`offset` is gap / h in front of the ground: the contact may close the gap within the step. For a contact that bounces it
is restitution times the velocity before the step. At a depth d below the ground it is what brings the contact out,

    d / (T + d / w),    w = 8 g T,

with the recovery time T: d / T where d is small, and w at most. Contacts do not pull, so a body that comes out goes on
with that velocity v; v^2 < 2 g d for every d, so that gravity stops it before it leaves the ground. Joints outside
their limits come back with as much, in rad/s or m/s. A contact of an arm that is fixed to the world may hardly move
along the normal, and moves much else if it does: there u^2 / (2 G) is at most m g d, with G and m of all, and it stays
where it is if it takes more than that because of friction, or cannot come out (energy.py).

The work of an impulse is p^T (u- + u+) / 2, with the velocities before and after the step. Where contacts do not roll
p^T u+ <= 0, so that there is never more kinetic energy than without them (where they roll: energy.py), and

    p^T (u- + u+) / 2 <= h^2 a^T M a / 8,    a without contacts:

positive at most where forces reverse a motion within the step. A round body rolls: its place of contact comes with u-
and leaves with u+ = -m, because another place touches next (m of RoundContact.moves). Where it sticks the work is that
of the energy |u|^2 = u^T G^-1 u,

    p^T (u- + u+) / 2 = (|m|^2 - |u-|^2) / 2 but for forces: so |m| <= |u-|, and -m_n <= -u-_n for where it slips,

as with a coefficient of restitution for u- as a whole: with that of the normal alone friction could add energy.

What brings a round body out of the ground must not add energy to its motion: with the normal velocities u-, before the
step, and u_free, without contacts,

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

LEAST = 1e-10
"""The least mobility along an axis, relative to their sum: in a plane mechanism one of them is zero."""

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

    def _by_gap(self, gap: Array) -> Array:
        """The same by its distance from the ground alone."""
        xp = self.xp
        offset = gap / xp.where(gap > 0, self.h, self.time - gap * self.slower)
        return xp.where(gap * gap < CLOSED * CLOSED, 0.0, offset)

    def offset(
        self,
        gap: Array,
        free: Array,
        before: Array,
        restitution: float,
        rolled: Array | None = None,
        lifts: Array | None = None,
    ) -> Array:
        """The offset of a contact with these normal velocities; of a round body with what is `rolled` of them.

        `lifts` is the mass, in units of what the contact moves, that is lifted by its depth if it comes out.
        """
        offset = self._by_gap(gap)
        if lifts is not None:
            offset = self._lifted(offset, gap, lifts)
        if rolled is not None:
            offset = self._rounded(offset, rolled, free, before)
        return self._bounced(offset, gap, free, before, restitution, rolled) if restitution else offset

    def weight(self, mass: float | Array, gap: Array) -> Array:
        """m g d, for the depth d."""
        return (mass * self.g) * self.xp.where(gap < 0, -gap, 0.0)

    def _lifted(self, offset: Array, gap: Array, lifts: Array) -> Array:
        """The same, with no more energy than the weight of all has along the depth: u^2 / (2 G) <= m g d."""
        xp = self.xp
        most = 2 * self.weight(lifts, gap)
        return xp.where(offset < 0, xp.where(offset * offset > most, -xp.sqrt(most), offset), offset)

    def _bounced(
        self, offset: Array, gap: Array, free: Array, before: Array, restitution: float, rolled: Array | None
    ) -> Array:
        """The same, of a contact that bounces if it hits the ground: but for rolling."""
        explained = 0.0 if rolled is None else rolled
        hits = self.xp.where(gap + self.h * free < 0, before - explained, 0.0) < -SLOW
        return self.xp.where(hits, explained + restitution * (before - explained), offset)

    def _rounded(self, offset: Array, rolled: Array, free: Array, before: Array) -> Array:
        """The same, of a round body."""
        xp, weight = self.xp, self.g * self.h
        pushed = rolled + offset * xp.where(free < -weight, -weight / free, 1.0)
        limited = xp.where(before < 0, xp.where(pushed > before, pushed, before), pushed)
        return xp.where(offset < 0, limited, rolled + offset)

    def stopped(self, below: Array, above: Array) -> tuple[Array, Array]:
        """The least and the largest velocity of a joint between its limits."""
        xp = self.xp
        lower = below / xp.where(below < 0, self.h, self.time + below * self.slower)
        return lower, above / xp.where(above > 0, self.h, self.time - above * self.slower)


def rolled(moves: Array, before: Array, G: Array, xp: Ops) -> Array:
    """`moves`, but with no more energy than u-, and no more along the normal where that comes down."""
    least = xp.where(before[2, 0] < 0, before[2, 0], 0.0)
    moves = xp.matrix([[moves[0, 0]], [moves[1, 0]], [xp.where(moves[2, 0] > least, moves[2, 0], least)]])
    small = LEAST * (G[0, 0] + G[1, 1] + G[2, 2])
    x, y, z = (G[:, k : k + 1] + small * xp.eye(3)[:, k : k + 1] for k in range(3))
    inverse = xp.vstack([xp.cross(y, z).T, xp.cross(z, x).T, xp.cross(x, y).T])  # but for a factor
    most, energy = (before.T @ (inverse @ before))[0, 0], (moves.T @ (inverse @ moves))[0, 0]
    more = energy > most
    return xp.where(more, xp.sqrt(most / xp.where(more, energy, 1.0)), 1.0) * moves


def gravity_of(model: Model) -> float:
    """g, or that of the earth where there is none: nothing stops there what comes out of the ground."""
    return float(np.linalg.norm(model.gravity)) or EARTH
