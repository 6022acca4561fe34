"""What impulses leave of each law of contact, one by one, as velocities.

For a contact with the impulse p, the velocity u after the step, and the mobility A (the mean of its own three):

    complementarity   |min(u_n, A p_n)|                                   0 <= u_n,  0 <= p_n,  one of them zero
    cone              A max(|p_t| - mu p_n, 0)                            |p_t| <= mu p_n
    dissipation       |A p_t - P(A p_t - u_t)|, P onto |x| <= A mu p_n    p_t takes the most energy that the cone allows

All three are zero for the solution, and only there. The last is the velocity |u_t| of a contact inside its cone, which
has to stick, and says of one on its border how far p_t is from the direction against the slip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwork.algorithms.contact.laws import Cone
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops


class Residuals(NamedTuple):
    """One number for each contact, n x 1 each (m/s)."""

    complementarity: Array
    cone: Array
    dissipation: Array


def residuals(problem: Problem, p: Sequence[Array], xp: Ops) -> Residuals:
    """Those of all contacts; of the two laws of round bodies and arms (energy.py) the one that is nearer."""
    if problem.rolls or problem.lifts:
        without = problem.sharing(xp.zeros(1)[0, 0], xp)
        nearer = xp.where(without.violation(p, xp) < problem.violation(p, xp), 0.0, 1.0)
        problem = problem.sharing(nearer[0, 0], xp)
    y = problem.moved(problem.impulse(p))
    laws = [law for law in problem.laws if isinstance(law, Cone)]  # contacts come first
    each = [_of_one(law, p[i], problem.g[i] + problem.every.at(i, y), xp) for i, law in enumerate(laws)]
    return Residuals(*(xp.vstack([xp.zeros(0), *(x[k] for x in each)]) for k in range(3)))


def _of_one(law: Cone, p: Array, u: Array, xp: Ops) -> Residuals:
    A, one = law.scale, xp.eye(1)
    N, un = A * p[2, 0], u[2, 0]
    least, border = xp.where(un < N, un, N), law.mu * xp.where(N > 0, N, 0.0)
    over = _length(A * p[0:2, :], xp) - border
    there = A * p[0:2, :] - u[0:2, :]
    length = _length(there, xp)
    inside = xp.where(length > border, border / xp.where(length > border, length, 1.0), 1.0)
    off = _length(A * p[0:2, :] - inside * there, xp)
    return Residuals(xp.where(least > 0, least, -least) * one, xp.where(over > 0, over, 0.0) * one, off * one)


def _length(x: Array, xp: Ops) -> Array:
    """|x|, a scalar."""
    return xp.sqrt((x.T @ x)[0, 0])
