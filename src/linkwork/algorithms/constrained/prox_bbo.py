"""Closed loops by `bbo` with a proximal term on the multipliers: loops may be redundant or singular.

    L + 1/mu in place of L,   l + lam/mu in place of l  (eq. 42c starts from k + lam/mu),   repeated until lam settles

sathya2025_lcaba_proxbbo, algorithms 4-6. The sweeps over inertias and rows happen once; a step sweeps over forces.
Suits rows over many links (centre of mass), which `lcaba` does not.
"""

from __future__ import annotations

from linkwork.algorithms.common.cluster_node import ClusterNode
from linkwork.algorithms.common.columns import in_order, split
from linkwork.algorithms.common.hessian import Hessian
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.loop_forces import loop_forces
from linkwork.algorithms.common.penalties import penalties
from linkwork.algorithms.common.propagated import PropagatedRows
from linkwork.algorithms.common.recursion import outer_rows
from linkwork.algorithms.common.weights import left_over, over_links, weigh
from linkwork.algorithms.constrained.bbo import at_loop_roots, roll_out, sweep_forces, sweep_inertias
from linkwork.algorithms.constrained.lcaba import certificate, in_parts
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, links_alone
from linkwork.structure.pivots import Mixture
from linkwork.structure.rotors import freeze_rotors


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
    """The same where nodes are links or clusters; rows of constraints in a cluster are embedded.

    With a mixture, some constraints are penalised instead (mixed.py).
    """
    xp = motion.xp
    frozen = freeze_rotors(motion, tree) if fext is None else motion
    rows, roots = weigh(motion, outer_rows(frozen, tree), active, tree.outer)
    damping, bias = [1 / mu_c for mu_c in penalties(motion, mu, tree.outer)], frozen.bias(fext)
    ends, order = at_loop_roots(motion.model, tree, rows) if mix is None else (mix.ends, mix.order)
    penalised = {c: over_links(frozen, rows[c]) for c in sorted(mix.penalised)} if mix else {}
    firm = {c: 1 / damping[c] for c in penalised}
    propagated = {c: r for c, r in enumerate(rows) if c not in penalised}
    H = Hessian(frozen, list(penalised.values()), list(firm.values()))
    e = sweep_inertias(motion, frozen, H, PropagatedRows(frozen, propagated, dict(enumerate(damping))), ends, order)

    def step(lam: Array) -> Step:
        p, l = list(bias), [r.k + d * old for r, d, old in zip(rows, damping, split(lam, rows), strict=True)]
        for c, r in penalised.items():
            l[c] = l[c] + (r.k - rows[c].k)  # written over links, rows over joints have another k
            for i, K in r.links.items():
                p[i] = p[i] - K.T @ (firm[c] * l[c])
        u, y, p = sweep_forces(e, tau, p, l)
        vdot, a, new = roll_out(e, u, y)
        for c, r in penalised.items():
            new[c] = firm[c] * (l[c] - sum((K @ a[i] for i, K in r.links.items()), xp.zeros(l[c].shape[0])))
        within = dict[int, Array]()
        for x in e.passed:
            if isinstance(x.node, ClusterNode):
                multipliers = [(c, r, new[c]) for c, r in propagated.items()]
                within |= loop_forces(frozen, x.node, tau, vdot, a, p, x.forces, multipliers)
        errors, size = left_over(frozen, [over_links(frozen, r) for r in rows], a)
        found = xp.vstack([vdot, in_order(motion, within)])
        return Step(in_order(motion, new), xp.vstack([xp.zeros(0), *errors]), size, found)

    def finish(lam: Array, found: Array) -> tuple[Array, Array]:
        vdot, forces = in_parts(motion, tree, active)(lam, found)
        return vdot, forces * roots

    return Iteration(sum(r.k.shape[0] for r in rows), step, finish, xp, certificate(motion, tree, tau, fext, finish))
