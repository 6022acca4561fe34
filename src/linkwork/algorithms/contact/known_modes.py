"""The impulses of several contacts at once, where it is known which are open, stick and slip.

With s = |u_t| / (mu p_n) of those that slip the problem is linear and symmetric, over the rows A of what is in force:

    (G_AA + diag(s, s, 0)) p_A = -g_A,      p = 0 elsewhere
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.algorithms.contact.joint_space import JointPorts
from linkwork.algorithms.contact.laws import Held
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops, threshold

DAMPING = 1e-9
"""Of the way from the impulses at which laws are looked at, relative to what rows feel: contacts of one body may be
redundant."""


def at_once(problem: Problem, p: Sequence[Array], s: Array, xp: Ops, which: Sequence[int] | None = None) -> list[Array]:
    """The impulses of what is in force at p, moved to where they are possible.

    `s` are those that the laws remember. Laws other than `which` (all by default) keep their impulses.
    """
    solved = range(len(problem.laws)) if which is None else which
    held, k, others, damping = dict[int, Held](), 0, problem.without_own(p), threshold(xp, DAMPING)
    for i, law in enumerate(problem.laws):
        if i in solved:
            held[i] = law.given(p).held(p[i], others[i], s[k, 0] if law.memory else 0.0)
        k += law.memory
    given = [held[i].impulse if i in held else p[i] for i in range(len(p))]
    if isinstance(problem.every, JointPorts):
        return _by_joints(problem, problem.every, p, held, given)
    H, b = [], []
    for n, (i, h) in enumerate(held.items()):
        scale = problem.laws[i].scale
        row = [h.active * other.active * problem.block(i, j, xp) for j, other in held.items()]
        own = h.active * (h.slip + damping * scale) + (1.0 - h.active) * scale
        row[n] = row[n] + xp.eye(problem.laws[i].rows) * own
        H.append(xp.hstack(row))
        b.append(h.active * (h.velocity - problem.others(i, given) + damping * scale * p[i]))
    x, out, start = xp.factor_spd(xp.vstack(H)).solve(xp.vstack(b)), list(p), 0
    for i, h in held.items():
        law = problem.laws[i]
        out[i] = law.inside(h.impulse + x[start : start + law.rows, :])
        start += law.rows
    return out


def _by_joints(
    problem: Problem, every: JointPorts, p: Sequence[Array], held: dict[int, Held], given: list[Array]
) -> list[Array]:
    """The same as p_A = D^-1 (target - u), D = diag(s, s, 0) and the damping: a system over joints.

    D is small where contacts stick, and target - u are few digits then: what p_A leaves is solved for, too.
    """
    xp, u, soft, targets = every.xp, problem.velocities(given), list[Array](), list[Array]()
    for i, law in enumerate(problem.laws):
        h = held.get(i, Held(xp.zeros(1)[0, 0], xp.zeros(law.rows), u[i], p[i]))
        damping = threshold(xp, DAMPING) * law.scale
        soft.append(h.slip + damping)
        targets.append(h.active * (h.velocity - u[i] + damping * p[i]))
    active = [held[i].active if i in held else 0.0 for i in range(len(p))]
    E = [a * (xp.eye(d.shape[0]) * (1.0 / d)) for a, d in zip(active, soft, strict=True)]
    solve = every.stiffened(E, symmetric=True)
    x, _ = solve([e @ b for e, b in zip(E, targets, strict=True)])
    y = every.moved(x)
    left = [e @ (targets[i] - every.at(i, y)) - active[i] * x[i] for i, e in enumerate(E)]
    more, _ = solve(left)
    return [law.inside(given[i] + x[i] + more[i]) if i in held else p[i] for i, law in enumerate(problem.laws)]
