"""Constrained forward dynamics by Popov and Vereshchagin's recursion.

    min sum 1/2 |a_i - I_i^-1 f_i|^2_I  subject to  K_i a_i = k_i      (Gauss' principle, by dynamic programming)

sathya2023_pv_lqr, algorithm 1. O(n + m^2 d + m^3). The rows must be independent: redundant or singular ones give NaN,
which callers report (`prox_pv` solves them). Beyond the paper: rows may hold several links and joints.

On a floating base the multipliers are eliminated before the base (eq. 49) where the constraints of several limbs meet
only there, because L is then block diagonal; otherwise after it (eq. 47), which needs fewer joints to be invertible.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import left_over, met, over_links
from linkwork.algorithms.common.articulated import Articulated, articulated
from linkwork.algorithms.common.dual import Dual, to_base
from linkwork.algorithms.common.penalties import least_pivots
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion
from linkwork.structure.elimination import needs_base


def pv(motion: Motion, tau: Array, fext: Array | None = None) -> tuple[Array, Array]:
    """Joint accelerations and constraint forces."""
    rows = constraint_rows(motion)
    art = articulated(motion)
    u, pA = art.drive(tau, motion.bias(fext))
    held = [(*r.links, *r.joints) for r in rows]
    limbs = {motion.model.topology.supports[i][1:2] for links in held for i in links}
    if len(limbs) > 1 and not needs_base(motion.model, held, [r.k.shape[0] for r in rows]):
        dual = to_base(art, rows, u, stop=1)
        base, lam = _before_base(art, dual, tau[0:6, :] - pA[1])
    else:
        dual = to_base(art, rows, u)
        base, lam = None, _after_base(art, dual)
    vdot, a = art.accelerate(dual.add_forces(u, lam), base)
    guard = met(motion, *left_over(motion, [over_links(motion, r) for r in rows], a))
    return vdot + guard[0, 0], motion.xp.vstack([motion.xp.zeros(0), *lam])


def _after_base(art: Articulated, dual: Dual) -> list[Array]:
    """Eq. 47: all joints are eliminated, the world's acceleration is known: L lam = l - K_0 a_0."""
    lam = list(dual.l)
    for group in dual.groups():
        factor = art.motion.xp.factor_spd(dual.matrix(group), least_pivots(art.motion, group))
        _spread(lam, group, factor.solve(dual.right_side(group)))
    return lam


def _before_base(art: Articulated, dual: Dual, f: Array) -> tuple[Array, list[Array]]:
    """Eq. 49: (IA + K^T L^-1 K) a = f + K^T L^-1 l for the base, then L lam = l - K a, group by group.

    An armature of the base acts against its acceleration relative to the world.
    """
    motion, xp = art.motion, art.motion.xp
    at_base, armature = dual.KT[1], motion.armature(1)
    IA, solved = xp.symmetric(art.IA[1].matrix() + armature), []
    f = f + armature @ (motion.X[1] @ motion.a0 + motion.c[1])
    for group in dual.groups():
        factor = xp.factor_spd(dual.matrix(group), least_pivots(art.motion, group))
        K = xp.hstack([at_base[c] for c in group]).T
        Y, y = factor.solve(K), factor.solve(xp.vstack([dual.l[c] for c in group]))
        IA, f = IA + xp.symmetric(K.T @ Y), f + K.T @ y
        solved.append((group, Y, y))
    a = xp.factor_spd(IA).solve(f)
    lam = list(dual.l)
    for group, Y, y in solved:
        _spread(lam, group, y - Y @ a)
    return a, lam


def _spread(lam: list[Array], group: list[int], x: Array) -> None:
    """Cut the solution of a group into its constraints' parts."""
    start = 0
    for c in group:
        stop = start + lam[c].shape[0]
        lam[c] = x[start:stop, :]
        start = stop
