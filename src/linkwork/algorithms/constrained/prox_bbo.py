"""Closed loops by `bbo` with a proximal term on the multipliers: redundant and singular loops are welcome.

    L + 1/mu in place of L,   l + lam/mu in place of l  (eq. 42c starts from k + lam/mu),   repeated until lam settles

sathya2025_lcaba_proxbbo, algorithms 4-6. The sweeps over inertias and rows happen once; a step sweeps over forces.
Suits rows over many links (centre of mass), which `lcaba` does not.
"""

from __future__ import annotations

from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.penalties import penalties
from linkwork.algorithms.common.recursion import outer_rows
from linkwork.algorithms.common.weights import left_over, over_links, weigh
from linkwork.algorithms.constrained.bbo import CarriedLoops
from linkwork.algorithms.constrained.constrained_aba import split
from linkwork.algorithms.constrained.lcaba import certificate, in_parts
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, links_alone
from linkwork.structure.pivots import Mixture


def prox_bbo(
    motion: Motion, tau: Array, fext: Array | None = None, *, mu: Array, active: Array | None = None
) -> Iteration:
    """Any rows; constraints with weight 0 in `active` are removed."""
    return on_tree(motion, links_alone(motion.model), tau, fext, mu, active)


def on_tree(
    motion: Motion,
    tree: ClusterTree,
    tau: Array,
    fext: Array | None,
    mu: Array,
    active: Array | None,
    mix: Mixture | None = None,
) -> Iteration:
    """The same where rows travel through links or clusters; those of constraints in a cluster do not.

    With a mixture, some constraints are penalised instead (mixed.py).
    """
    xp = motion.xp
    still = tree.stilled(motion) if fext is None else motion
    rows, roots = weigh(motion, outer_rows(still, tree), active, tree.outer)
    damping, p = [1 / mu_c for mu_c in penalties(motion, mu, tree.outer)], still.bias(fext)
    loops = CarriedLoops(motion, tree, rows, damping, still, mix)

    def step(lam: Array) -> Step:
        old = split(lam, rows)
        vdot, forces, a = loops.solve(tau, p, [r.k + d * l for r, d, l in zip(rows, damping, old, strict=True)])
        new = [forces[part(motion, n), :] for n in tree.outer]
        errors, size = left_over(still, [over_links(still, r) for r in rows], a)
        within = [forces[part(motion, n), :] for n in range(len(motion.model.constraints)) if n not in tree.outer]
        return Step(xp.vstack([xp.zeros(0), *new]), xp.vstack([xp.zeros(0), *errors]), size, xp.vstack([vdot, *within]))

    def finish(lam: Array, found: Array) -> tuple[Array, Array]:
        vdot, forces = in_parts(motion, tree, active)(lam, found)
        return vdot, forces * roots

    return Iteration(sum(r.k.shape[0] for r in rows), step, finish, xp, certificate(motion, tree, tau, fext, finish))


def part(motion: Motion, n: int) -> slice:
    """The rows of constraint n in a column over all."""
    constraints = motion.model.constraints
    start = sum(c.rows for c in constraints[:n])
    return slice(start, start + constraints[n].rows)
