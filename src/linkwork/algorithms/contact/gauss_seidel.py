"""Contact with friction by Gauss-Seidel over contacts, each solved exactly with the others given.

    for all i:   p_i <- impulse that the law of contact i requires, u_i = G_ii p_i + sum_{j != i} G_ij p_j + g_i

Moreau 1988; Jean, "The non-smooth contact dynamics method", 1999. Where others project onto the cone, the law of one
contact is solved with its whole 3 x 3 block (laws.py), one Newton step for its slip in every sweep: a quadruped on four
feet takes about 10 sweeps for eight digits instead of hundreds. O(m^2) a sweep.

Sweeps from p to q(p) are extrapolated by Anderson's method of depth one, with f = q(p) - p:

    p <- q - theta (q - q'),      theta = f . (f - f') / |f - f'|^2,      ' of the sweep before

which saves most of the sweeps where legs are straight or contacts redundant (20 instead of 130). For few contacts:
where many share a body, or masses differ by orders of magnitude, sweeps still pass impulses on slowly.
"""

from __future__ import annotations

from linkwork.algorithms.contact.known_modes import at_once
from linkwork.algorithms.contact.laws import Cone, larger, largest
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops

SAFE = 3.0
"""How much larger than the change in a sweep the error may be."""

TINY = 1e-30
"""Added to velocities that errors are relative to, m/s."""

FEW = 4
"""Contacts up to which a solve of all of them costs less than a sweep or two."""

FARTHEST = 20.0
"""The most that a sweep is extrapolated by."""


class GaussSeidel:
    """The loop over sweeps, starting from impulses and what the laws remember of the last step.

    Its state has q and what the laws remember, then f and the p of the next sweep. As a further loop it begins anew:
    it has laws that loops before may not have.
    """

    anew = True

    def __init__(self, problem: Problem, start: Array, xp: Ops) -> None:
        self.problem, self.xp, self.start = problem, xp, start
        self.rows, self.memory = sum(law.rows for law in problem.laws), sum(law.memory for law in problem.laws)
        self.kept = self.rows + self.memory
        self.speed = problem.speed + TINY

    @property
    def size(self) -> int:
        """How many numbers the state has."""
        return 3 * self.rows + self.memory

    def first(self) -> tuple[Array, Array]:
        """The state after one sweep from `start`, and its change.

        Of few contacts those that pushed in the last step are first solved at once: if none of them begins to slip or
        to lift, that is the solution.
        """
        m, cones = self.rows, [i for i, law in enumerate(self.problem.laws) if isinstance(law, Cone)]
        if not 1 < len(cones) <= FEW:
            return self._begun(self.start)
        s = self.start[m : self.kept, :]
        p = at_once(self.problem, self._split(self.start[0:m, :]), s, self.xp, cones)
        return self._begun(self.xp.vstack([*p, s]))

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one sweep more, and its change, relative to the largest velocity."""
        xp, m = self.xp, self.rows
        before, f_before, p = x[0:m, :], x[self.kept : self.kept + m, :], x[self.kept + m :, :]
        q, s, change = self._swept(p, x[m : self.kept, :])
        f = q - p
        df = f - f_before
        square = (df.T @ df)[0, 0]
        theta = (f.T @ df)[0, 0] / xp.where(square > 0, square, 1.0)
        theta = xp.where(theta < -FARTHEST, -FARTHEST, xp.where(theta > 1, 1.0, theta))
        ahead = self._split(q - theta * (q - before))
        inside = [law.inside(x) for law, x in zip(self.problem.laws, ahead, strict=True)]
        return xp.vstack([q, s, f, *inside]), change

    def enter(self, x: Array) -> Array:
        """The state from which it goes on where another loop ended."""
        state = self.xp.vstack([x[0 : self.kept, :], self.xp.zeros(self.rows), *self._split(x)])
        return state[0 : self.size, :]

    def finish(self, x: Array) -> tuple[list[Array], Array, Array]:
        """The impulses, the largest violation of a law, and the velocity that it is relative to."""
        p = self._split(x[0 : self.rows, :])
        return p, self._violation(p), self.speed

    def _begun(self, x: Array) -> tuple[Array, Array]:
        """The state after one sweep from impulses and what the laws remember, and its change."""
        p = x[0 : self.rows, :]
        q, s, change = self._swept(p, x[self.rows : self.kept, :])
        return self.xp.vstack([q, s, q - p, q]), change

    def _violation(self, p: list[Array]) -> Array:
        """The largest one of a law."""
        worst = self.xp.zeros(1)
        for law, a, u in zip(self.problem.laws, p, self.problem.velocities(p), strict=True):
            worst = larger(self.xp, worst, law.given(p).violation(a, u))
        return worst

    def _swept(self, p: Array, s: Array) -> tuple[Array, Array, Array]:
        """Impulses and what laws remember after a sweep, and the largest change."""
        xp, parts, memory, k = self.xp, self._split(p), list[list[Array]](), 0
        change, running = xp.zeros(1), self.problem.running(parts)
        for i, law in enumerate(self.problem.laws):
            new, kept, off = law.given(parts).solved(running.others(i), s[k, 0] if law.memory else 0.0)
            change = larger(xp, change, law.scale * larger(xp, largest(xp, new - parts[i]), off))
            running.put(i, new)
            if law.memory:
                memory.append([kept])
                k += 1
        q = xp.vstack([xp.zeros(0), *parts])
        return q, xp.matrix(memory) if memory else xp.zeros(0), SAFE * change / self.speed

    def _split(self, p: Array) -> list[Array]:
        return self.problem.split(p)
