"""No step leaves more kinetic energy than without contacts, but for what comes out of the ground.

The law of a round body is that of the place in the middle of the step, u = J v+ + m (problem.py), while its impulse
acts where it touches now. So p^T u <= 0 leaves p^T J v+ <= -p^T m, and with u_free = J v_free, J v+ = u_free + G p

    kinetic energy - that without contacts = p^T (u_free + J v+) / 2 = p^T J v+ - p^T G p / 2.

That is never above zero, but for the work p_n w of what brings it out of the ground with w (and of bouncing), if

    sum of p^T J v+ - p_n w over the places that roll <= p^T G p / 2:

other places have p^T J v+ <= p_n w by their laws. So it is in steady rolling, where the right side is h^2 / 2 times the
square of all that contacts prevent. Where a solution breaks it, the step is solved for the place as it is now, m = 0:
then all places have p^T J v+ <= p_n w.

The work p_n w itself is bounded for bodies that float. An arm that is fixed to the world may not be able to come out:
then there is no solution, or one with an energy of any size, because friction jams it. Where the sum of p_n w, less
p^T G p / 2, is more than the weight of the arm takes, m g d for each depth d, and where other loops find no solution,
the step is solved with w = 0: then v+ = 0 is possible, and a solution exists (Acary, Cadoux, Lemarechal, Malick 2011).

What no loop solves is shortened until it adds no energy: s p with s = - p^T u_free / (p^T G p / 2), or nothing.
"""

from __future__ import annotations

from copy import copy

from linkwork.algorithms.contact.gauss_seidel import GaussSeidel
from linkwork.algorithms.contact.newton import Newton
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops

AGAIN = 1.0
"""The change of velocities, relative to the largest, that a loop reports when it begins to solve without m."""


class NoGain:
    """A loop of a solver, with m and w of arms, and where that gives energy without.

    Its state is the solver's, with the share of these, 1 or 0, behind what all loops hand on. A loop that
    begins `again` is without.
    """

    def __init__(self, loop: Newton | GaussSeidel, problem: Problem, tolerance: float, again: bool, xp: Ops) -> None:
        self.loop, self.problem, self.xp, self.tolerance = loop, problem, xp, tolerance
        self.without = again
        self.kept, self.size = loop.kept + 1, loop.size + 1

    def first(self) -> tuple[Array, Array]:
        """The state after the solver's first step, and its change."""
        return self._checked(*self.loop.first(), 1.0)

    def enter(self, x: Array) -> Array:
        """The state from which it goes on where another loop ended."""
        return self._with(self._at(self._share(x)).enter(self._without(x)), x[self.kept - 1, 0])

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one step more, and its change."""
        share = self._share(x)
        return self._checked(*self._at(share).next(self._without(x)), share)

    def finish(self, x: Array) -> tuple[list[Array], Array, Array]:
        """The impulses, the largest violation of a law, and the velocity that it is relative to."""
        xp, share = self.xp, x[self.kept - 1, 0]
        p, violation, speed = self._at(share).finish(self._without(x))
        violation = xp.where(self._gains(p, share), speed, violation)
        # what is not solved adds no energy
        falls, rises = self.problem.energy(p)
        shorter = xp.where(falls < 0, -falls / xp.where(rises > 0, rises, 1.0), 0.0)
        unsafe = xp.where((violation / speed)[0, 0] > self.tolerance, falls + rises, 0.0) > 0
        return [xp.where(unsafe, shorter, 1.0) * a for a in p], violation, speed

    def _checked(self, x: Array, change: Array, share: Array) -> tuple[Array, Array]:
        """The state after a step to x, without m and w from now on if that is a solution that gives energy."""
        xp = self.xp
        gains = self._gains(self.loop.finish(x)[0], share)
        again = xp.where(change[0, 0] <= self.tolerance, gains, 0.0) > 0
        x = self._with(xp.where(again, self.loop.enter(x), x), xp.where(again, 0.0, share))
        return x, xp.where(again, AGAIN * xp.eye(1), change)

    def _gains(self, p: list[Array], share: Array) -> Array:
        """Whether these impulses give energy, with m and w."""
        xp, problem = self.xp, self.problem
        more = xp.where(problem.gain(p) > 0, 1.0, 0.0) if problem.rolls else 0.0
        more = xp.where(problem.lifted(p) > 0, 1.0, more) if problem.lifts else more
        return xp.where(share > 0, more, 0.0) > 0

    def _share(self, x: Array) -> Array:
        """That of m and w."""
        return self.xp.zeros(1)[0, 0] if self.without else x[self.kept - 1, 0]

    def _at(self, share: Array) -> Newton | GaussSeidel:
        """The solver's loop with a share of m and w."""
        loop = copy(self.loop)
        loop.problem = self.problem.sharing(share, self.xp)
        return loop

    def _with(self, x: Array, share: Array) -> Array:
        k = self.loop.kept
        return self.xp.vstack([x[0:k, :], share * self.xp.eye(1), x[k:, :]])

    def _without(self, x: Array) -> Array:
        k = self.loop.kept
        return self.xp.vstack([x[0:k, :], x[k + 1 :, :]])
