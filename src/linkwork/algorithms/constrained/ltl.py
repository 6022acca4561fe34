"""Constrained forward dynamics in joint space, with the sparsity of the tree and of supports.

    M = L^T D L,    Y = L^-T J^T,    (Y^T D^-1 Y) lam = k - J M^-1 (tau - c),    vdot = M^-1 (tau - c + J^T lam)

sathya2023_pv_lqr, II-C (Featherstone 2005 and 2010), which is the factorisation of carpentier2021_proximal_sparse,
algorithm 1, with nothing on the constraints' diagonal. O(n d^2 + m d^2 + m^2 d + m^3). Any rows, but independent ones:
redundant or singular ones give NaN, which callers report (`prox_ltl` solves them).
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import met, squared
from linkwork.algorithms.common.columns import split
from linkwork.algorithms.constrained.kkt_factor import kkt_factor
from linkwork.algorithms.delassus.ltl import joint_columns
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, constraint_rows
from linkwork.model import Motion


def ltl(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    motion = motion.classical
    rows = constraint_rows(motion)
    factor = kkt_factor(motion, rows)
    k = joint_targets(motion, rows)
    x = factor.solve(motion.xp.vstack([k, tau - rnea(motion, None, fext)]))
    vdot, lam = x[factor.m :, :], -x[0 : factor.m, :]
    return vdot + met(motion, *row_errors(motion, rows, split(k, rows), vdot))[0, 0], lam


def row_errors(motion: Motion, rows: list[ConstraintRows], k: list[Array], vdot: Array) -> tuple[list[Array], Array]:
    """Errors k - J vdot for joint accelerations, and the sum of squares of their terms, with those of k."""
    errors, squares = list[Array](), [motion.xp.zeros(0)]
    for kc, known, r in zip(k, _known_terms(motion, rows), rows, strict=True):
        moved = [-(c.T * vdot[j, 0]) for j, c in joint_columns(motion, r).items()]
        errors.append(sum(moved, kc))
        squares.append(squared([*known, *moved]))
    return errors, motion.xp.vstack(squares)


def joint_targets(motion: Motion, rows: list[ConstraintRows]) -> Array:
    """k of J vdot = k: the rows' right-hand side less their values with joints at rest."""
    left = [sum(known[1:], known[0]) for known in _known_terms(motion, rows)]
    return motion.xp.vstack([motion.xp.zeros(0), *left])


def _known_terms(motion: Motion, rows: list[ConstraintRows]) -> list[list[Array]]:
    """For each constraint, the terms of k of J vdot = k: their sum may be much smaller."""
    at_rest = motion.accelerations(None)
    return [[r.k, *(-(K @ at_rest[l]) for l, K in r.links.items())] for r in rows]
