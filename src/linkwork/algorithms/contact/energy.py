"""Round bodies leave with no more kinetic energy than there is without contacts, in every step.

The law of a round body is that of the place in the middle of the step, u = J v+ + m (problem.py), while its impulse
acts where it touches now. So p^T u <= 0 leaves p^T J v+ <= -p^T m, and with u_free = J v_free, J v+ = u_free + G p

    kinetic energy - that without contacts = p^T (u_free + J v+) / 2 = p^T J v+ - p^T G p / 2.

That is never above zero, but for the work p_n w of what brings it out of the ground with w (and of bouncing), if

    sum of p^T J v+ - p_n w over the places that roll <= p^T G p / 2:

other places have p^T J v+ <= p_n w by their laws. So it is in steady rolling, where the right side is h^2 / 2 times the
square of all that contacts prevent. Where a solution breaks it, the step is solved for the place as it is now, m = 0:
then all places have p^T J v+ <= p_n w.
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
    """A loop of a solver, with m and where that gives energy without.

    Its state is the solver's, with the share of m, 1 or 0, behind what all loops hand on.
    """

    def __init__(self, loop: Newton | GaussSeidel, problem: Problem, tolerance: float, xp: Ops) -> None:
        self.loop, self.problem, self.xp, self.tolerance = loop, problem, xp, tolerance
        self.kept, self.size = loop.kept + 1, loop.size + 1

    def first(self) -> tuple[Array, Array]:
        """The state after the solver's first step, and its change."""
        return self._checked(*self.loop.first(), 1.0)

    def enter(self, x: Array) -> Array:
        """The state from which it goes on where another loop ended."""
        return self._with(self._at(x).enter(self._without(x)), x[self.kept - 1, 0])

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one step more, and its change."""
        return self._checked(*self._at(x).next(self._without(x)), x[self.kept - 1, 0])

    def finish(self, x: Array) -> tuple[list[Array], Array, Array]:
        """The impulses, the largest violation of a law, and the velocity that it is relative to."""
        p, violation, speed = self._at(x).finish(self._without(x))
        return p, self.xp.where(self._gains(p, x[self.kept - 1, 0]), speed, violation), speed

    def _checked(self, x: Array, change: Array, share: Array) -> tuple[Array, Array]:
        """The state after a step to x, without m from now on if that is a solution that gives energy."""
        xp = self.xp
        gains = self._gains(self.loop.finish(x)[0], share)
        again = xp.where(change[0, 0] <= self.tolerance, gains, 0.0) > 0
        x = self._with(xp.where(again, self.loop.enter(x), x), xp.where(again, 0.0, share))
        return x, xp.where(again, AGAIN * xp.eye(1), change)

    def _gains(self, p: list[Array], share: Array) -> Array:
        """Whether these impulses give energy, with m."""
        return self.xp.where(share > 0, self.problem.gain(p), 0.0) > 0

    def _at(self, x: Array) -> Newton | GaussSeidel:
        """The solver's loop with the share of m that is in a state."""
        loop = copy(self.loop)
        loop.problem = self.problem.rolling(x[self.kept - 1, 0])
        return loop

    def _with(self, x: Array, share: Array) -> Array:
        k = self.loop.kept
        return self.xp.vstack([x[0:k, :], share * self.xp.eye(1), x[k:, :]])

    def _without(self, x: Array) -> Array:
        k = self.loop.kept
        return self.xp.vstack([x[0:k, :], x[k + 1 :, :]])
