"""The inverse of the mass matrix along motions that the model's own constraints allow.

    N = M^-1 - M^-1 E^T (E M^-1 E^T + damping)^-1 E M^-1,      M = L^T D L

with E the rows of loops and couplings. The damping is small beside what rows feel, so that these may be redundant.
Sparse as the tree is: O(n d^2) to factor, O(n d) to apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.delassus.ltl import Columns, gram, joint_columns, scaled, through
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array, Ops
from linkwork.constraints.rows import constraint_rows
from linkwork.constraints.units import units
from linkwork.model import Motion

DAMPING = 1e-10
"""Relative to the effective inertia of the rows."""

Pairs = dict[tuple[int, int], Array]
"""The blocks (i, j), i <= j, of a symmetric matrix; those that are not there are zero."""


class Mobility:
    """N of a mechanism in some configuration, and what it does to forces."""

    def __init__(self, motion: Motion) -> None:
        self.motion, self.xp, self.model = motion, motion.xp, motion.model
        self.factor = LTL(crba(motion), self.model.topology.dof_parent, self.xp)
        self.own = constraint_rows(motion)
        self.E = [joint_columns(motion, r) for r in self.own]
        if self.E:
            self.YE = [through(self.factor, c) for c in self.E]
            self.DYE = scaled(self.factor, self.YE)
            sizes = [c.rows for c in self.model.constraints]
            damping = [self.xp.constant([DAMPING / unit] * n) for unit, n in zip(units(self.model), sizes, strict=True)]
            self.damping = self.xp.vstack(damping)
            self.held = self.xp.factor_spd(gram(self.YE, self.DYE, sizes, self.xp).plus_diagonal(damping).matrix())

    def accelerations(self, tau: Array) -> Array:
        """Those of the mechanism with its own constraints and no contacts."""
        a = self.factor.solve(tau - rnea(self.motion, None))
        if not self.E:
            return a
        missing = joint_targets(self.motion, self.own) - times(self.E, a, self.xp)
        return a + self.factor.solve(transposed(self.E, self.held.solve(missing), self.motion))

    def applied(self, force: Array) -> Array:
        """N f."""
        a = self.factor.solve(force)
        if not self.E:
            return a
        return a - self.factor.solve(transposed(self.E, self.held.solve(times(self.E, a, self.xp)), self.motion))

    def opened(self, force: Array) -> Array:
        """E N f: what the damping leaves of the velocities of the model's own rows, m x 1."""
        if not self.E:
            return self.xp.zeros(0)
        return self.damping * self.held.solve(times(self.E, self.factor.solve(force), self.xp))

    def gram(self, J: Sequence[Columns], sizes: Sequence[int]) -> Pairs:
        """J N J^T, by blocks."""
        Y = [through(self.factor, c) for c in J]
        G = dict(gram(Y, scaled(self.factor, Y), list(sizes), self.xp).blocks)
        if self.E:
            across = [self._across(y, n) for y, n in zip(Y, sizes, strict=True)]
            for j, x in enumerate(across):
                solved = self.held.solve(x)
                for i in range(j + 1):
                    part = across[i].T @ solved
                    part = self.xp.symmetric(part) if i == j else part
                    G[i, j] = G[i, j] - part if (i, j) in G else -part
        return G

    def _across(self, Y: Columns, rows: int) -> Array:
        """E M^-1 J^T of one contact."""
        parts = []
        for DYE, r in zip(self.DYE, self.own, strict=True):
            part = self.xp.zeros(r.k.shape[0], rows)
            for j in DYE.keys() & Y.keys():
                part = part + DYE[j].T @ Y[j]
            parts.append(part)
        return self.xp.vstack(parts)


def times(J: Sequence[Mapping[int, Array]], v: Array, xp: Ops) -> Array:
    """J v of some rows, given as columns over degrees of freedom."""
    parts = [sum((c.T * v[j, 0] for j, c in columns.items()), start=0.0) for columns in J]
    return xp.vstack([xp.zeros(0), *parts])


def transposed(J: Sequence[Columns], p: Array, motion: Motion) -> Array:
    """J^T p."""
    xp, out, start = motion.xp, {k: motion.xp.zeros(1) for k in range(motion.model.nv)}, 0
    for columns in J:
        rows = next(iter(columns.values())).shape[1]
        part, start = p[start : start + rows, :], start + rows
        for k, c in columns.items():
            out[k] = out[k] + c @ part
    return xp.vstack([xp.zeros(0), *out.values()])
