"""Constrained forward dynamics by `pv` with a proximal term: rows may be redundant.

    (L + 1/mu) lam+ = l - K_0 a_0 + lam / mu

The sweep to the base and the factorisation happen once; a step is a pair of triangular solves in constraint space.
sathya2025_lcaba_proxbbo, proxPV (its reference 11). O(n + m^2 d + m^3), O(m^2) per step.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import errors_of, squared, starting_column, weigh
from linkwork.algorithms.common.articulated import articulated
from linkwork.algorithms.common.columns import split, stacked
from linkwork.algorithms.common.dual import to_base
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.penalties import inertias, penalties
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion


def prox_pv(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows, from forces `lam0`; constraints with weight 0 in `active` are removed."""
    xp = motion.xp
    rows, roots = weigh(motion, constraint_rows(motion), active)
    art = articulated(motion)
    u, _ = art.drive(tau, motion.bias(fext))
    dual = to_base(art, rows, u)
    every = list(range(len(rows)))
    L, r = dual.matrix(every), dual.right_side(every)
    ones = [xp.constant([1.0] * x.k.shape[0]) for x in rows]
    damping = xp.vstack([xp.zeros(0), *(one / mu_c for one, mu_c in zip(ones, penalties(motion, mu), strict=True))])
    factor = xp.factor_spd(L + damping * xp.eye(L.shape[0]))
    # the terms of the rows' right-hand side: their own, and those of each joint without constraint forces
    terms = [[x.k] for x in rows]
    for (i, k), blocks in dual.eT.items():
        for c, eT in blocks.items():
            terms[c].append(eT.T * (art.dofs[i][k].d_inv * u[i][k]))
    squares = r * r + stacked(motion, [squared(of_one) for of_one in terms])

    def step(lam: Array, r: Array) -> Step:
        new = factor.solve(r + damping * lam)
        return Step(new, damping * (new - lam), squares, xp.zeros(0))

    def change(d: Array) -> Step:
        return step(d, xp.zeros(L.shape[0]))

    def finish(lam: Array, found: Array) -> tuple[Array, Array]:
        vdot, _ = art.accelerate(dual.add_forces(u, split(lam, rows)))
        return vdot, lam * roots

    def errors(lam: Array, found: Array) -> Array:
        return errors_of(motion, rows, finish(lam, found)[0])

    start = starting_column(motion, rows, lam0, active)
    of_result = None if xp.single else errors  # float32 rounds them to more than the tolerance
    return Iteration(start, step(start, r), change, finish, inertias(motion), xp, None, of_result)
