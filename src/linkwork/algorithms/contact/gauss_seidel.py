"""Contact with friction by Gauss-Seidel over contacts, each solved exactly with the others given.

    for all i:   p_i <- impulse that the law of contact i requires, u_i = G_ii p_i + sum_{j != i} G_ij p_j + g_i

Moreau 1988; Jean, "The non-smooth contact dynamics method", 1999. Where others project onto the cone, the law of one
contact is solved with its whole 3 x 3 block (laws.py), one Newton step for its slip in every sweep: a quadruped on four
feet takes about 10 sweeps for eight digits instead of hundreds. O(m^2) a sweep. For few contacts; where many share a
body, or masses differ by orders of magnitude, sweeps pass impulses on slowly.
"""

from __future__ import annotations

from linkwork.algorithms.contact.laws import largest
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops

SAFE = 3.0
"""How much larger than the change in a sweep the error may be."""

TINY = 1e-30
"""Added to velocities that errors are relative to, m/s."""


class GaussSeidel:
    """The loop over sweeps: its state has all impulses, then what the laws remember."""

    def __init__(self, problem: Problem, start: Array, xp: Ops) -> None:
        self.problem, self.xp, self.start = problem, xp, start
        self.rows, self.memory = (sum(getattr(l, n) for l in problem.laws) for n in ("rows", "memory"))
        self.size = self.rows + self.memory
        self.speed = largest(xp, xp.vstack([xp.zeros(0), *problem.g])) + TINY

    def first(self) -> tuple[Array, Array]:
        """The state after one sweep from `start`, and its change."""
        return self.next(self.start)

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one sweep, and the largest change of a velocity relative to the largest velocity."""
        p, s = self._parts(x)
        change = self.xp.zeros(1)
        for i, law in enumerate(self.problem.laws):
            new, s[i], off = law.solved(self.problem.others(i, p), s[i])
            change = larger(self.xp, change, law.scale * larger(self.xp, largest(self.xp, new - p[i]), off))
            p[i] = new
        return self._joined(p, s), SAFE * change / self.speed

    def finish(self, x: Array) -> tuple[list[Array], Array, Array]:
        """The impulses, the largest violation of a law, and the velocity that it is relative to."""
        p, _ = self._parts(x)
        worst = self.xp.zeros(1)
        for i, law in enumerate(self.problem.laws):
            u = self.problem.others(i, p) + self.problem.G[i, i] @ p[i]
            worst = larger(self.xp, worst, law.violation(p[i], u))
        return p, worst, self.speed

    def _parts(self, x: Array) -> tuple[list[Array], list[Array]]:
        p, s, row, at = [], [], 0, self.rows
        for law in self.problem.laws:
            p.append(x[row : row + law.rows, :])
            s.append(x[at, 0] if law.memory else 0.0)
            row, at = row + law.rows, at + law.memory
        return p, s

    def _joined(self, p: list[Array], s: list[Array]) -> Array:
        kept = [[v] for v, law in zip(s, self.problem.laws, strict=True) if law.memory]
        return self.xp.vstack([self.xp.zeros(0), *p, *([self.xp.matrix(kept)] if kept else [])])


def larger(xp: Ops, a: Array, b: Array) -> Array:
    """The larger of two numbers that are not negative, 1 x 1; NaN if b is."""
    return xp.where(b <= a, a, b)
