"""Closed loops by `bbo` with a proximal term on the multipliers: redundant and singular loops are welcome.

    L + 1/mu in place of L,   l + lam/mu in place of l  (eq. 42c starts from k + lam/mu),   repeated until lam settles

sathya2025_lcaba_proxbbo, algorithms 4-6. The sweeps over inertias and rows happen once; a step sweeps over forces.
Suits rows over many links (centre of mass), which `lcaba` does not.
"""

from __future__ import annotations

from linkwork.algorithms.clusters.recursion import outer_rows
from linkwork.algorithms.constrained.bbo import CarriedLoops
from linkwork.algorithms.constrained.weights import embedded, part, settled, weigh
from linkwork.algorithms.iteration import Iteration
from linkwork.backends.ops import Array
from linkwork.constraints.clusters import ClusterTree, links_alone
from linkwork.model import Motion
from linkwork.planner.pivots import Mixture

SOFTER = 10
"""Penalties that couple links lose digits that carried rows keep, so that with them mu is smaller by this: for all
rows, because of those in conflict none may weigh more than others."""


def prox_bbo(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows; constraints with weight 0 in `active` are removed."""
    return on_tree(motion, links_alone(motion.model), tau, fext, mu, active)


def on_tree(
    motion: Motion, tree: ClusterTree, tau: Array, fext: Array | None, mu: Array, active: Array | None,
    mix: Mixture | None = None,
) -> Iteration:
    """The same where rows travel through links or clusters; those of constraints in a cluster do not.

    With a mixture, some constraints are penalised instead (mixed.py).
    """
    xp, m = motion.xp, motion.model.rows
    still = tree.stilled(motion) if fext is None else motion
    rows, roots = weigh(motion, outer_rows(still, tree), active, tree.outer)
    damping, p = (SOFTER if mix and mix.couples else 1) / mu, still.bias(fext)
    loops = CarriedLoops(motion, tree, rows, damping, still, mix)
    guard, outer = embedded(motion, tree.outer, active), [part(motion, n) for n in tree.outer]

    def step(x: Array) -> tuple[Array, Array]:
        lam = [x[at, :] for at in outer]
        vdot, new = loops.solve(tau, p, [r.k + damping * l for r, l in zip(rows, lam, strict=True)])
        changes = [damping * (new[at, :] - l) for at, l in zip(outer, lam, strict=True)]
        return xp.vstack([new, vdot]), settled(motion, changes, vdot, x[m:, :])

    return Iteration(m + motion.model.nv, step, lambda x: (x[m:, :] + guard[0, 0], x[0:m, :] * roots))
