"""Contact with friction by Newton's method on the laws of all contacts at once.

The laws of Signorini and Coulomb are p_i = F(y_i), y_i = p_i - r u_i, with any r > 0, here rho over the contact's own
mobility: F keeps y_n >= 0 and shortens y_t to mu y_n. F is piecewise smooth, so its derivative D says what an open, a
sticking and a slipping contact do, and a step is

    (1 - D + D r G + lambda D) dp = F(y) - p

Alart and Curnier 1991. lambda damps redundant contacts (four points under a foot) towards the impulses at hand, in the
step and not in the solution. What every law makes of it is in linearised_laws.py, the system in link_contacts.py.

`Newton` knows contacts only: most steps meet no limit of a joint, and are solved by a system over few ports.
`WholeNewton` has the limits too. With one r it may run in circles, so rho falls whenever a step makes things worse.
From the second on each step has two halves: after that above one for what is then in force (known_modes.py), where a
contact that slips has a given s = |u_t| / (mu p_n), and the system is symmetric.

A humanoid on eight points of its feet takes one step from the impulses of the last time step in 85 % of time steps, and
at most four in 99 %, where sweeps and solves of active contacts take 80. What four leave is for other methods
(slips.py, interior_point.py).
"""

from __future__ import annotations

from typing import NamedTuple

from linkwork.algorithms.contact.gauss_seidel import TINY
from linkwork.algorithms.contact.laws import Cone, Law, larger
from linkwork.algorithms.contact.linearised_laws import DAMPING, RHO, given_slip, slip_at, slipping, stopping
from linkwork.algorithms.contact.link_contacts import Ports
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops, threshold

FALLS, LEAST = 0.1, 1e-4
"""By what rho is multiplied, and how small it becomes."""

SOFT = 0.05
"""lambda of contacts that begin to push, in the first step: they give way by half of what they would alone."""

SAFE = 2.0
"""How much more exact a step must be than asked for: the residual of a result is computed in another way."""

LOST = 1e30
"""The residual of a step that is not a number: the lane goes back."""


class Step(NamedTuple):
    """Where a step leads: impulses, and what of them is `inside` their cones.

    Velocities y of ports and the violation of laws are those of what is inside.
    """

    raw: Array
    inside: Array
    y: Array
    error: Array


class Newton:
    """The loop over steps. Impulses of joint limits are zero in it.

    Its state has the impulses, what other solvers remember, rho and the last violation.
    """

    anew = False

    def __init__(self, problem: Problem, start: Array, xp: Ops) -> None:
        self.problem, self.xp, self.start = problem, xp, start
        self.kept, self.speed = start.shape[0], problem.speed + TINY
        self.ports, self.laws = self.solved_for(problem)
        self.rows = sum(law.rows for law in self.laws)

    def solved_for(self, problem: Problem) -> tuple[Ports, list[Law]]:
        """Those of contacts."""
        return problem.ports, problem.laws[: len(problem.axes)]

    @property
    def size(self) -> int:
        """How many numbers the state has."""
        return int(self.kept + 2)

    def first(self) -> tuple[Array, Array]:
        """The state after one step from `start`, and its violation.

        Contacts that begin to push are soft in it: most of them share loads with others.
        """
        xp, others = self.xp, self.problem.rows - self.rows
        p = [law.inside(x) for law, x in zip(self.laws, self._split(self.start), strict=True)]
        remembered = self.start[self.problem.rows :, :]
        x = xp.vstack([*p, xp.zeros(others), remembered, *self._begun()])
        pushed = [xp.where(a[-1, 0] > 0, threshold(xp, DAMPING), SOFT) for a in p]
        near = self._stepped(x, pushed)
        return self._after(x, near.raw, near.error, near.error)

    def enter(self, x: Array) -> Array:
        """The state from which it goes on where another loop ended."""
        return self.xp.vstack([x[0 : self.kept, :], *self._begun()])

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one step more, and its violation of the laws, relative to velocities."""
        xp, near = self.xp, self._stepped(x, [threshold(self.xp, DAMPING)] * len(self.laws))
        raw = self._split(near.raw)
        outer = self.violation(raw, self.ports.moved(raw)) / self.speed
        nearer = near.error < outer
        p, least = xp.where(nearer, near.inside, near.raw), xp.where(nearer, near.error, outer)
        # what is in force inside the cones
        inside, u = self._split(near.inside), self._velocities(near.y)
        held = [self._in_force(law, a, b) for law, a, b in zip(self.laws, inside, u, strict=True)]
        exact = self._solved(inside, held, symmetric=True)
        better = exact.error < least
        p, least = xp.where(better, exact.raw, p), xp.where(better, exact.error, least)
        return self._after(x, p, least, xp.where(better, exact.error, near.error))

    def finish(self, x: Array) -> tuple[list[Array], Array, Array]:
        """The impulses, the largest violation of any law, and the velocity that it is relative to."""
        p = [law.inside(p) for law, p in zip(self.problem.laws, self.problem.split(x), strict=True)]
        return p, self.problem.violation(p, self.xp), self.speed

    def violation(self, p: list[Array], y: Array) -> Array:
        """The largest one of these laws, for impulses and velocities of ports."""
        worst = self.xp.zeros(1)
        for i, law in enumerate(self.laws):
            worst = larger(self.xp, worst, law.violation(p[i], self.problem.g[i] + self.ports.at(i, y)))
        return worst

    def _stepped(self, x: Array, damping: list[Array]) -> Step:
        """A step on the laws as they are linearised at x."""
        p, rho = self._split(x), x[self.kept, 0]
        laws = zip(self.laws, p, self._velocities(self.ports.moved(p)), damping, strict=True)
        return self._solved(p, [self._linearised(law, a, b, rho, soft) for law, a, b, soft in laws])

    def _solved(self, p: list[Array], steps: list[tuple[Array, Array]], symmetric: bool = False) -> Step:
        """The step with the changes that E and b of all laws lead to."""
        xp = self.xp
        dp, _ = self.ports.solve([E for E, _ in steps], [b for _, b in steps], symmetric)
        new = [a + b for a, b in zip(p, dp, strict=True)]
        inside = [law.inside(a) for law, a in zip(self.laws, new, strict=True)]
        y = self.ports.moved(inside)
        return Step(xp.vstack(new), xp.vstack(inside), y, self.violation(inside, y) / self.speed)

    def _after(self, x: Array, p: Array, least: Array, error: Array) -> tuple[Array, Array]:
        """The state with impulses p after a step from x, and its violation; `least` is that of p as they are."""
        xp, rho, before = self.xp, x[self.kept, 0], x[self.kept + 1 : self.kept + 2, :]
        # less of u in y if that was worse than before, and back if it was nothing at all
        sane, smaller = error < LOST, xp.where(FALLS * rho > LEAST, FALLS * rho, LEAST)
        rho = xp.where(least < before, rho, smaller) * xp.eye(1)
        state = xp.where(sane, xp.vstack([p, x[self.rows : self.kept, :]]), x[0 : self.kept, :])
        least, error = (xp.where(sane, a, LOST) for a in (least, error))
        return xp.vstack([state, rho, least]), SAFE * error

    def _velocities(self, y: Array) -> list[Array]:
        """Those of contacts and joints, for velocities of ports."""
        return [self.problem.g[i] + self.ports.at(i, y) for i in range(len(self.laws))]

    def _begun(self) -> tuple[Array, Array]:
        """What is in the state besides impulses at the beginning."""
        return RHO * self.xp.eye(1), LOST * self.xp.eye(1)

    def _linearised(self, law: Law, p: Array, u: Array, rho: Array, damping: Array) -> tuple[Array, Array]:
        """E and b: dp = b - E du."""
        if isinstance(law, Cone):
            return slipping(law, p, u, rho / law.scale, damping, self.xp)
        return stopping(law, p, u, rho / law.alone, self.xp)

    def _in_force(self, law: Law, p: Array, u: Array) -> tuple[Array, Array]:
        """E and b of what is in force at p and u."""
        if isinstance(law, Cone):
            return given_slip(law, p, u, *slip_at(law, p, u, self.xp), threshold(self.xp, DAMPING), self.xp)
        return stopping(law, p, u, RHO / law.alone, self.xp)

    def _split(self, x: Array) -> list[Array]:
        return self.problem.split(x)[: len(self.laws)]


class WholeNewton(Newton):
    """The same with limits of joints: for what others leave, or from the start over joints."""

    anew = True

    def solved_for(self, problem: Problem) -> tuple[Ports, list[Law]]:
        """All."""
        return problem.every, problem.laws
