"""Closed loops by `bbo` with a proximal term on the multipliers: loops may be redundant or singular.

    L + 1/mu in place of L,   l + lam/mu in place of l  (eq. 42c starts from k + lam/mu),   repeated until lam settles

sathya2025_lcaba_proxbbo, algorithms 4-6. The sweeps over inertias and rows happen once; a step sweeps over forces.
Suits rows over many links (centre of mass), which `lcaba` does not.
"""

from __future__ import annotations

from linkwork.algorithms.common.activation import change_of, left_over, over_links, starting, unweighed, weigh
from linkwork.algorithms.common.certificates import kept
from linkwork.algorithms.common.cluster_node import ClusterNode
from linkwork.algorithms.common.columns import by_constraint, in_order, split, stacked
from linkwork.algorithms.common.hessian import Hessian
from linkwork.algorithms.common.iteration import Iteration, Step
from linkwork.algorithms.common.loop_forces import by_motion
from linkwork.algorithms.common.penalties import inertias, penalties
from linkwork.algorithms.common.propagated import PropagatedRows
from linkwork.algorithms.common.recursion import outer_rows
from linkwork.algorithms.common.supports import supporting
from linkwork.algorithms.constrained.bbo import Eliminated, at_loop_roots, roll_out, sweep_forces, sweep_inertias
from linkwork.algorithms.constrained.lcaba import certificate, constraints_of, embedded_forces
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, holders
from linkwork.model import Motion
from linkwork.structure.clusters import ClusterTree, links_alone
from linkwork.structure.constraint_treatment import Mixture
from linkwork.structure.rotor_lumping import freeze_rotors


def prox_bbo(
    motion: Motion,
    tau: Array,
    fext: Array | None = None,
    *,
    mu: Array,
    active: Array | None = None,
    lam0: Array | None = None,
) -> Iteration:
    """Any rows, from forces `lam0`; constraints with weight 0 in `active` are removed."""
    return on_tree(motion, links_alone(motion.model), tau, fext, mu, active, lam0)


def on_tree(
    motion: Motion,
    tree: ClusterTree,
    tau: Array,
    fext: Array | None,
    mu: Array,
    active: Array | None,
    lam0: Array | None,
    mix: Mixture | None = None,
) -> Iteration:
    """The same where nodes are links or clusters; rows of constraints in a cluster are embedded.

    With a mixture, some constraints are penalised instead (mixed.py).
    """
    xp = motion.xp
    frozen = freeze_rotors(motion, tree) if fext is None else motion
    rows, roots = weigh(motion, outer_rows(frozen, tree), active, tree.outer)
    mus = penalties(motion, mu, tree.outer)
    damping, flat = [1 / mu_c for mu_c in mus], [over_links(frozen, r) for r in rows]
    ends, order = at_loop_roots(motion.model, tree, rows) if mix is None else (mix.ends, mix.order)
    penalised = sorted(mix.penalised) if mix else []
    propagated = {c: r for c, r in enumerate(rows) if c not in penalised}
    H = Hessian(frozen, [flat[c] for c in penalised], [mus[c] for c in penalised])
    e = sweep_inertias(motion, frozen, H, PropagatedRows(frozen, propagated, dict(enumerate(damping))), ends, order)
    moving = supporting(motion.model, (i for r in rows for i in holders(motion.model, r)), tree.clusters)
    inside, outside = moving.parted([x.node for x in e.passed if isinstance(x.node, ClusterNode)])
    stiff = supporting(motion.model, (i for c in penalised for i in flat[c].links), tree.clusters)
    behind, inside = stiff.parted(inside)
    held = {x.node.cluster.bodies[0]: x.forces for x in e.passed}

    def step(
        e: Eliminated, tau: Array, p: list[Array], k: list[Array], flat: list[ConstraintRows], lam: list[Array]
    ) -> tuple[Step, list[list[Array]], list[Array]]:
        p, l = list(p), [kc + d * old for kc, d, old in zip(k, damping, lam, strict=True)]
        for c in penalised:
            for i, K in flat[c].links.items():
                p[i] = p[i] - K.T @ (lam[c] + mus[c] * flat[c].k)  # over links, rows over joints have another k
        u, y, p = sweep_forces(e, tau, p, l)
        vdot, a, new = roll_out(e, u, y)
        errors, squares = left_over(frozen, flat, a)
        new |= {c: lam[c] + mus[c] * errors[c] for c in penalised}
        multipliers = [(c, r, new[c]) for c, r in propagated.items()]
        within = embedded_forces(e.motion, inside, tau, vdot, a, p, held, multipliers)
        found = xp.vstack([moving.pack(motion, vdot, a), in_order(motion, within)])
        return Step(in_order(motion, new), stacked(motion, errors), squares, found), u, p

    start = unweighed(motion, starting(motion, rows, lam0, active, tree.outer), active, tree.outer)
    bias = frozen.bias(fext)
    first, u, pA = step(e, tau, bias, [r.k for r in rows], flat, start)

    def change(d: Array) -> Step:
        of = change_of(motion, flat, d)
        return step(e.at_rest, of.tau, of.p, [r.k for r in of.rows], of.rows, of.lam)[0]

    def finish(lam: Array, found: Array) -> tuple[Array, Array]:
        known, within = moving.unpack(found)
        vdot, a, _ = roll_out(e, u, {}, known)
        forces = by_constraint(motion, tree.outer, lam) | by_constraint(motion, constraints_of(inside), within)
        forces |= embedded_forces(frozen, outside, tau, vdot, a, pA)
        forces |= by_motion(frozen, behind, tau, bias, vdot, list(zip(flat, split(lam, rows), strict=True)))
        return vdot + kept(motion, tree, vdot, active)[0, 0], in_order(motion, forces) * roots

    return Iteration(
        stacked(motion, start),
        first,
        change,
        finish,
        inertias(motion, tree.outer),
        xp,
        certificate(motion, tree, tau, fext, finish),
    )
