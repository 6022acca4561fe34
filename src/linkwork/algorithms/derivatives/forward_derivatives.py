"""Derivatives of forward dynamics with any constraints, at its solution.

    M a + c = tau + J^T lam,   J a + R lam = k        [M, -J^T; J, R] [da; dlam] = -[dID; d(J a - k)]

where dID is the derivative of inverse dynamics for a and lam held fixed: `rnea_derivatives` with the constraint forces
as external ones, and what rows that turn with the robot add, d(K^T) lam. Carpentier and Mansard 2018, section VI, for
any rows: closures, couplings, stabilisation, softness, modes. O(n d), and O(n d + m^2) for each column of the solve.

Redundant and singular rows have the derivative of the least-squares solution at constant rank (kkt_solution.py): where
a change of q would make redundant rows contradict each other, that part of it is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from linkwork.algorithms.derivatives.base_frame_motion import Rooted
from linkwork.algorithms.derivatives.kkt_solution import Equations, Implicit, Multipliers
from linkwork.algorithms.derivatives.rnea_derivatives import RneaDerivatives, placed, rnea_derivatives
from linkwork.algorithms.tree.crba import assemble
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows
from linkwork.model import Motion

Solver = Callable[[Equations], Multipliers]
"""What solves them."""


class RowSlopes(NamedTuple):
    """Derivatives of rows for fixed accelerations and multipliers, by the columns of q and of v.

    `residual` of sum K a + sum G vdot - k, m x nv each; `links` of the forces K^T lam, and `joints` of G^T lam, by q.
    """

    residual: tuple[Array, Array]
    links: Mapping[int, Array]
    joints: Mapping[int, Array]


Differentiate = Callable[[Rooted, list[ConstraintRows], RneaDerivatives, Array, Sequence[Array]], RowSlopes]
"""How rows are differentiated: of a motion, its rows, the tree's derivatives, accelerations and multipliers."""


class Slopes(NamedTuple):
    """dID by q and by v (nv x nv), and d(J a - k) by q and by v (m x nv).

    Both are for accelerations that change by -x. Those x, `known` (nv x nv), are of free bases: [dID; d(J a - k)] for
    fixed ones is this and [M; J] x more, so that da = -x - (what these columns give). By its place and velocity a base
    changes the accelerations of all links as if gravity and its axes turned, which it can take itself: with x most of
    its columns are zero.
    """

    force_q: Array
    force_v: Array
    row_q: Array
    row_v: Array
    known_q: Array
    known_v: Array


def forward_derivatives(
    motion: Motion,
    tau: Array,
    forces: Mapping[int, Array],
    differentiate: Differentiate,
    softness: Sequence[Array] | None = None,
    active: Array | None = None,
    solver: Solver = Implicit,
) -> tuple[Multipliers, Slopes]:
    """The solution for joint forces and `forces` on links, and what its columns come from.

    Forces are in link coordinates.
    """
    motion, xp, t = motion.classical, motion.xp, motion.model.topology
    rooted = Rooted(motion)

    # the solution
    M = assemble(motion, rooted.mass())
    c = rooted.tau(rooted.forces(rooted.accelerations(None), forces), None)
    solved = solver(Equations(motion, M, c, tau, softness, active))

    # the tree with constraint forces as external ones, then the rows
    felt = dict(forces)
    for r, y in zip(solved.rows, solved.by_constraint, strict=True):
        for l, K in r.links.items():
            felt[l] = felt[l] + K.T @ y if l in felt else K.T @ y
    d = rnea_derivatives(rooted, solved.a, felt, but_for_bases=True)
    rows = differentiate(rooted, solved.rows, d, solved.a, solved.by_constraint)

    # forces of rows that turn with the robot
    turned = [xp.zeros(t.v_slices[i].stop - t.v_slices[i].start, t.nv) for i in range(len(t.v_slices))]
    for l, df in rows.links.items():
        moved = rooted.force_from_link(l, df)
        for j in t.supports[l]:
            turned[j] = turned[j] + rooted.S[j].T @ moved
    for i, dg in rows.joints.items():
        turned[i] = turned[i] + dg
    force_q, force_v = placed(motion, d.dq) - xp.vstack(turned), placed(motion, d.dv)
    known_q, known_v = (placed(motion, {(i, i): x[k] for i, x in d.of_base.items()}) for k in range(2))
    return solved, Slopes(force_q, force_v, *rows.residual, known_q, known_v)
