"""The solution of constrained dynamics by trunk and limbs, and the matrices for any other columns.

    [M, -J^T; J, R] [x; y] = [b; r]

Limbs l meet in the trunk t alone (structure/limbs.py), and every row acts on one limb at most. With F = M_lt a limb's
joints are eliminated first, x_l = M_l^-1 (b_l + J_l^T y - F x_t), which leaves the trunk and the rows:

    P = -M_l^-1 F,    N = M_l^-1 J_l^T,    f = b_t + sum P^T b_l,    v = r - N^T b_l
    A = M_t + sum F^T P,    H = J_t + J_l P,    Q = A^-1 H^T

    x_t = A^-1 f + Q y,     y = W (v - Q^T f),     x_l = M_l^-1 b_l + P x_t + N y

where W is the (pseudo-)inverse of J M^-1 J^T = J_l N + H Q, as in kkt_solution.py: joints first and rows last, so that
straight limbs, whose own joints cannot move along all rows, lose no digits. Products with columns take n_t + m_l for
each entry instead of n + m. O(n d^2 + m^3) to factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linkwork.algorithms.common.activation import weigh
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.delassus.ltl import Columns, joint_columns
from linkwork.algorithms.derivatives.kkt_solution import Equations, Multipliers, keeping, regular, rows_inverse
from linkwork.algorithms.tree.ltl import LTL
from linkwork.backends.ops import Array, Ops
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion
from linkwork.structure.limbs import Limb, limbs


class Eliminated(NamedTuple):
    """A limb, M_l^-1, P^T and N^T."""

    limb: Limb
    inverse: Array
    PT: Array
    NT: Array


class LimbSolution(Multipliers):
    """Accelerations `a` and multipliers.

    Rows are those of constraints times the `roots` of their weights, but for N and Q: these are of forces, not of
    multipliers, x_t = A^-1 f + Q (roots y).
    """

    def __init__(self, given: Equations, vanishing: Sequence[int] | None = None) -> None:
        motion, M, c, tau, softness, active = given
        xp, parent, m = motion.xp, motion.model.topology.dof_parent, motion.model.rows
        plain = constraint_rows(motion)
        self.rows, self.roots = weigh(motion, plain, active)
        self.xp = xp
        columns = [joint_columns(motion, r) for r in plain]
        spans = [range(*motion.model.row_span(k)) for k in range(len(plain))]
        self.trunk, found = limbs(parent, list(zip(spans, columns, strict=True)))
        self.JT = JT = whole_columns(columns, len(parent), m, xp)

        # limbs: what they leave of the trunk and of the rows adds up
        A, HT, own = _part(M, self.trunk, self.trunk), _part(JT, self.trunk, range(m)), xp.zeros(m, m)
        self.limbs = []
        for limb in found:
            inverse = _inverse(_part(M, limb.dofs, limb.dofs), M, limb.dofs, motion)
            F, J = _part(M, limb.dofs, [self.trunk[k] for k in limb.carriers]), _part(JT, limb.dofs, limb.rows)
            done = Eliminated(limb, inverse, -(inverse @ F).T, (inverse @ J).T)
            A = A + put(xp.symmetric(done.PT @ F), limb.carriers, limb.carriers, A.shape, xp)
            HT = HT + put(done.PT @ J, limb.carriers, limb.rows, HT.shape, xp)
            own = own + put(xp.symmetric(done.NT @ J), limb.rows, limb.rows, own.shape, xp)
            self.limbs.append(done)

        # the trunk, then the rows
        self.A = _inverse(A, M, self.trunk, motion)
        self.Q, roots = self.A @ HT, self.roots
        D = xp.symmetric((own + xp.symmetric(HT.T @ self.Q)) * roots * roots.T)
        self.W = rows_inverse(D, roots, [k - 1 for k in range(m)], motion, softness, active, vanishing)

        # the solution
        r = joint_targets(motion, self.rows)
        f, v, local = self._reduced(tau - c, r)
        self.multipliers = xp.held(self.W @ (v - roots * (self.Q.T @ f)))
        self.a = xp.held(self._accelerations(f, local))

    @property
    def joint_forces(self) -> Array:
        """J^T y."""
        return self.JT @ self.lam

    def _reduced(self, b: Array, r: Array) -> tuple[Array, Array, list[Array]]:
        """f, v, and M_l^-1 b_l of each limb."""
        f, v, local = _part(b, self.trunk, [0]), r, []
        for l in self.limbs:
            own = _part(b, l.limb.dofs, [0])
            f = f + put(l.PT @ own, l.limb.carriers, [0], f.shape, self.xp)
            v = v - self.roots * put(l.NT @ own, l.limb.rows, [0], v.shape, self.xp)
            local.append(l.inverse @ own)
        return f, v, local

    def _accelerations(self, f: Array, local: Sequence[Array]) -> Array:
        """x, for the multipliers found."""
        n = len(self.trunk) + sum(len(l.limb.dofs) for l in self.limbs)
        x_t = self.A @ f + self.Q @ self.lam
        x = put(x_t, self.trunk, [0], (n, 1), self.xp)
        for l, own in zip(self.limbs, local, strict=True):
            moved = own + l.PT.T @ _part(x_t, l.limb.carriers, [0]) + l.NT.T @ _part(self.lam, l.limb.rows, [0])
            x = x + put(moved, l.limb.dofs, [0], (n, 1), self.xp)
        return x


def _inverse(A: Array, M: Array, dofs: Sequence[int], motion: Motion) -> Array:
    """A^-1 of some degrees of freedom, what is left of their part of M."""
    xp, keep = motion.xp, keeping(motion)
    factor = LTL(A, _within(motion.model.topology.dof_parent, dofs), xp, held=lambda k, d: keep(dofs[k], d))
    return regular(factor.pivots, _part(M, dofs, dofs), xp) * factor.inverse()


def _part(x: Array, rows: Sequence[int], columns: Sequence[int]) -> Array:
    """Some rows and columns of a matrix."""
    return x[list(rows), :][:, list(columns)]


def put(x: Array, rows: Sequence[int], columns: Sequence[int], shape: tuple[int, int], xp: Ops) -> Array:
    """A matrix of this shape with x in these rows and columns, else zero."""
    down, across = np.zeros((shape[0], len(rows))), np.zeros((len(columns), shape[1]))
    down[list(rows), range(len(rows))] = 1.0
    across[range(len(columns)), list(columns)] = 1.0
    return xp.constant(down) @ x @ xp.constant(across)


def _within(parent: Sequence[int], dofs: Sequence[int]) -> list[int]:
    """The parents among some degrees of freedom; -1 for those whose parent is not one of them."""
    place = {k: n for n, k in enumerate(dofs)}
    return [place.get(parent[k], -1) for k in dofs]


def whole_columns(columns: Sequence[Columns], n: int, m: int, xp: Ops) -> Array:
    """J^T, n x m."""
    parts = [xp.zeros(n, 0)]
    for c in columns:
        width = next(iter(c.values())).shape[1] if c else 0
        parts.append(xp.vstack([xp.zeros(0, width), *(c[k] if k in c else xp.zeros(1, width) for k in range(n))]))
    return xp.hstack(parts)
