"""Delassus matrix in joint space, with the sparsity of the tree and of the constraints' supports.

    M = L^T D L,      Y = L^-T J^T,      Lambda^-1 = Y^T D^-1 Y

LTL-OSIM: Featherstone, "Exploiting sparsity in operational-space dynamics", 2010; sathya2023_pv_lqr, II-C;
sathya2023_pv_osimr, II-A. O(n d^2 + m d^2 + m^2 d). Y has entries only for joints that support a constraint's links,
and two constraints are coupled only by joints that support both. Any rows. Without square roots, unlike the papers.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.common.least_inertia import holding
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.backends.ops import Array, Ops
from linkwork.constraints.rows import ConstraintRows, constraint_rows, jacobian_blocks
from linkwork.model import Motion

Columns = dict[int, Array]
"""The transposed rows of one constraint over joint velocities: 1 x m_c for each degree of freedom that matters."""


def ltl(motion: Motion) -> Array:
    """J M^-1 J^T, m x m."""
    factor = LTL(crba(motion), motion.model.topology.dof_parent, motion.xp, held=holding(motion))
    Y = [through(factor, joint_columns(motion, r)) for r in constraint_rows(motion)]
    return gram(Y, scaled(factor.pivots, Y), [c.rows for c in motion.model.constraints], motion.xp).matrix()


def joint_columns(motion: Motion, r: ConstraintRows) -> Columns:
    """J^T of one constraint."""
    return by_dof(motion, jacobian_blocks(motion, r.links, r.joints, r.relative))


def by_dof(motion: Motion, blocks: dict[int, Array]) -> Columns:
    """The transposes of rows over the velocities of joints, m x nv_i by link."""
    first = {i: motion.model.topology.v_slices[i].start for i in blocks}
    return {first[i] + k: G[:, k : k + 1].T for i, G in blocks.items() for k in range(G.shape[1])}


def through(factor: LTL, JT: Columns) -> Columns:
    """L^-T J^T, tips to base: filled in for all degrees of freedom that support the constraint's."""
    Y = dict(JT)
    for i in reversed(range(len(factor.pivots))):
        if i in Y:
            for j in factor.ancestors[i]:
                Y[j] = Y[j] - factor.L[i][j] * Y[i] if j in Y else -factor.L[i][j] * Y[i]
    return Y


def scaled(pivots: Sequence[Array], Y: list[Columns]) -> list[Columns]:
    """D^-1 Y, for the entries of D^-1."""
    return [{j: pivots[j] * y for j, y in Yc.items()} for Yc in Y]


def gram(Y: list[Columns], DY: list[Columns], sizes: list[int], xp: Ops) -> Blocks:
    """Y^T D^-1 Y, each pair of constraints over the degrees of freedom that they share."""
    blocks = {}
    for c, Yc in enumerate(Y):
        for d in range(c, len(Y)):
            shared = [j for j in Yc if j in Y[d]]
            if shared:
                product = xp.vstack([DY[c][j] for j in shared]).T @ xp.vstack([Y[d][j] for j in shared])
                blocks[c, d] = xp.symmetric(product) if c == d else product
    return Blocks(sizes, blocks, xp)
