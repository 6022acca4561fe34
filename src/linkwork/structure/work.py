"""Estimated operations of an elimination, from the sizes of blocks and rows that it multiplies.

A product and a sum count as one operation each; symmetric results are computed by half. The estimates compare ways to
treat the same constraints (constraint_treatment.py); predicted times come from traces, which have the exact numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.structure.clusters import Cluster

VECTOR = 6
"""Numbers in a spatial vector."""

MOVE = 24
"""Operations that move a spatial vector over a joint: both halves turn about one axis (4 products and 2 sums each), and
one takes the moment of the other (6 products and 6 sums)."""

INERTIA_MOVES = 5
"""Vectors that take about as many operations to move as one articulated inertia: 55 to turn about an axis
(spatial/inertia.py), and up to 84 to shift, fewer where offsets are zero. Counted by hand and rounded, not traced."""

ROW = 2 * VECTOR
"""Operations of one row times a spatial vector, K a, or of K^T lam."""

OUTER = VECTOR**2
"""Operations of a row's share in a 6 x 6 block mu K_i^T K_n, where half of all blocks follow by symmetry."""

OUTER_WELD = OUTER // 3
"""The same for a closure in all six directions: its K is a transform, so that most products are known. The third is an
assumption, not measured."""

ITERATIONS = 3
"""Solver iterations that are assumed, the first included; methods usually take 1 to 3.3 (registry.py)."""

CHECK = 150
"""Operations by link of the check that M vdot + c = tau + J^T lam, which embedded linkages need
(algorithms/common/certificates.py). Traced with and without it: 150 for a rope of balls, 170 on Digit standing, 188 on
Cassie, 235 on Digit (spherical joints); 20 to 75 on mechanisms in a plane."""


def penalising(links: int, rows: int) -> float:
    """mu K^T K between all links of a constraint, then K a and K^T lam in every iteration."""
    outer = OUTER_WELD if rows == VECTOR else OUTER
    return links**2 * rows * outer + ITERATIONS * links * rows * 2 * ROW


def eliminating(freedoms: int, width: int) -> float:
    """H - U U^T / d, the scaled U, and in every iteration p + U u/d and (u - U^T a)/d."""
    return freedoms * (width**2 + 2 * width + ITERATIONS * 4 * width)


def moving(bodies: int, neighbours: int, rows: int) -> float:
    """An inertia, blocks, rows, and in every iteration a force and an acceleration, moved to the parent."""
    return bodies * MOVE * (INERTIA_MOVES + VECTOR * neighbours + rows + ITERATIONS * 2)


def solving(rows: int, others: int) -> float:
    """Rows eliminated at a link, coupled with `others`: a factor, L^-1 K, K^T L^-1 K, and solutions."""
    columns = VECTOR + others
    factor = rows**3 / 3 + 2 * rows**2 * columns + rows * columns**2
    return factor + ITERATIONS * (2 * rows**2 + 4 * rows * columns)


def embedding(node: Cluster, neighbours: int, held: Sequence[int]) -> float:
    """The inverses of a cluster's rows, and G^T M G of its joints; of couplings both are a few products.

    `held`: how many of its bodies each penalised constraint holds. Where penalties couple bodies with each other or
    with neighbours, every column of its motion is moved there and back, and multiplied by their blocks.
    """
    dofs, columns = len(node.dofs), VECTOR + len(node.independent)
    work = sum(
        2.0 * len(rows) * len(dependent) ** 2 + dofs**2 * columns for rows, dependent in node.blocks if len(rows) > 1
    )
    pairs = neighbours + sum(n * (n - 1) for n in held)
    if node.constraints and pairs:
        work += columns * (2 * MOVE * len(node.bodies) + 2 * VECTOR**2 * pairs)
    return work
