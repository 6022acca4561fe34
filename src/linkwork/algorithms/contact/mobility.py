"""The inverse of the mass matrix along motions that the model's own constraints allow.

    [ M      E^T    ] [ N f ]   [ f ]
    [ E   -damping  ] [  l  ] = [ 0 ]

with E the rows of loops and couplings. The damping is small beside what rows feel, so that these may be redundant. The
damping of soft rows is their R: E a + R lam = k. The
matrix is factorised as M alone is (tree/ltl.py), with the rows of a loop between the joints that carry it and those in
it: a loop is eliminated with its limb, before the base, and the loops of two legs never meet in one system. What is
then left of the rows is negative definite, and of the joints after that positive definite: pivots are near zero for
redundant rows only. O(n d^2) to factor, O(n d) to apply, d the depth of the tree with these rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwork.algorithms.common.least_inertia import held
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.delassus.ltl import Columns, gram, joint_columns, scaled, through
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL, elimination_parents
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array, Ops
from linkwork.constraints.row_inertia import units
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion

DAMPING = 1e-10
"""Relative to the effective inertia of the rows."""

Pairs = dict[tuple[int, int], Array]
"""The blocks (i, j), i <= j, of a symmetric matrix; those that are not there are zero."""


class Mobility:
    """N of a mechanism in some configuration, and what it does to forces."""

    def __init__(self, motion: Motion, R: Sequence[Array] | None = None) -> None:
        self.motion, self.xp, self.model, self.soft = motion, motion.xp, motion.model, R is not None
        self.own = constraint_rows(motion, relative=not self.soft)  # relative rows are those of closed loops
        sizes, E = [c.rows for c in self.model.constraints], [joint_columns(motion, r) for r in self.own]
        self.damping = [DAMPING / unit for unit, n in zip(units(self.model), sizes, strict=True) for _ in range(n)]
        if R is not None:
            self.damping = [r[k, 0] for r in R for k in range(r.shape[0])]
        self.joints, self.rows = places([min(c) for c in E], sizes, self.model.nv)
        self.H, self.parent = self._matrix(crba(motion), E, sizes)
        inertias = {place: dof for dof, place in enumerate(self.joints)}

        def inertia(k: int, d: Array) -> Array:
            return held(motion, inertias[k], d) if k in inertias else d

        H = self.xp.matrix(self.H) if self.H else self.xp.zeros(0, 0)
        self.factor = LTL(H, self.parent, self.xp, held=inertia)

    def _matrix(self, M: Array, E: Sequence[Columns], sizes: Sequence[int]) -> tuple[list[list[Array]], list[int]]:
        """The lower half of the one above, ordered by `joints` and `rows`, and the tree that is its pattern."""
        n, at = len(self.joints) + len(self.rows), self.joints
        H = [[self.xp.zeros(1)[0, 0]] * n for _ in range(n)]
        parent, together, first = [-1] * n, list[set[int]](), 0
        for i, p in enumerate(self.model.topology.dof_parent):
            parent[at[i]] = at[p] if p >= 0 else -1
            for j in range(i + 1):
                H[at[i]][at[j]] = M[i, j]
        for size, columns in zip(sizes, E, strict=True):
            rows = self.rows[first : first + size]
            for r, k in enumerate(rows):
                H[k][k] = -self.damping[first + r]
                for j, c in columns.items():
                    H[max(k, at[j])][min(k, at[j])] = c[0, r]
            together += [{*rows, at[j]} for j in columns]
            first += size
        return H, elimination_parents(parent, together)

    def accelerations(self, tau: Array) -> Array:
        """Those of the mechanism with its own constraints and no contacts."""
        targets = joint_targets(self.motion, self.own)
        return self._solved(tau - rnea(self.motion, None), targets, self.joints)

    def applied(self, force: Array) -> Array:
        """N f."""
        return self._solved(force, self.xp.zeros(len(self.rows)), self.joints)

    def forces(self, tau: Array, impulse: Array, h: Array) -> Array:
        """Those of the model's own rows, m x 1: means over a step of h with this impulse."""
        targets = joint_targets(self.motion, self.own)
        return -self._solved(tau - rnea(self.motion, None) + impulse / h, targets, self.rows)

    def opened(self, force: Array) -> Array:
        """E N f: what the damping leaves of the velocities of the model's own hard rows, m x 1."""
        if self.soft or not self.rows:
            return self.xp.zeros(0)
        return self.xp.constant(self.damping) * self._solved(force, self.xp.zeros(len(self.rows)), self.rows)

    def gram(self, J: Sequence[Columns], sizes: Sequence[int]) -> Pairs:
        """J N J^T, by blocks."""
        Y = [through(self.factor, {self.joints[j]: c for j, c in columns.items()}) for columns in J]
        return dict(gram(Y, scaled(self.factor.pivots, Y), list(sizes), self.xp).blocks)

    def _solved(self, force: Array, targets: Array, which: Sequence[int]) -> Array:
        """The entries `which` of the solution for joint forces and targets of rows."""
        at = {k: force[i : i + 1, :] for i, k in enumerate(self.joints)}
        at |= {k: targets[r : r + 1, :] for r, k in enumerate(self.rows)}
        x = self.factor.solve(self.xp.vstack([self.xp.zeros(0), *(at[k] for k in sorted(at))]))
        return self.xp.vstack([self.xp.zeros(0), *(x[k : k + 1, :] for k in which)])


def places(first: Sequence[int], sizes: Sequence[int], nv: int) -> tuple[list[int], list[int]]:
    """Where degrees of freedom are in the order of elimination, and where rows are.

    The rows of a constraint come before the `first` degree of freedom that they move, and so after all that carry it.
    """
    before = {j: [c for c, start in enumerate(first) if start == j] for j in range(nv)}
    joints, rows, k = list[int](), dict[int, list[int]](), 0
    for j in range(nv):
        for c in before[j]:
            rows[c] = list(range(k, k + sizes[c]))
            k += sizes[c]
        joints.append(k)
        k += 1
    return joints, [k for c in sorted(rows) for k in rows[c]]


def columns_of(blocks: dict[int, Array], motion: Motion) -> Columns:
    """Rows over joints as columns over degrees of freedom."""
    first = {i: motion.model.topology.v_slices[i].start for i in blocks}
    return {first[i] + k: B[:, k : k + 1].T for i, B in blocks.items() for k in range(B.shape[1])}


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
