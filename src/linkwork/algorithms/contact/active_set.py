"""Contact with friction by sweeps that find the active contacts, and solves of all of these at once.

Gauss-Seidel (gauss_seidel.py) finds quickly which contacts are open, which stick and which slip, but passes impulses on
slowly through a stack of bodies. With all of that known the problem is linear and symmetric (known_modes.py).

Every iteration makes SWEEPS sweeps and then that solve, and keeps the one of the two results that violates the laws
less. Ten cubes at rest on each other take one iteration, whatever their masses, where sweeps alone take hundreds.
O(m^3) an iteration.

An active-set method as in Alart and Curnier 1991 (their generalised Newton method), with the laws solved by sweeps
instead of linearised, so that the matrix is symmetric.
"""

from __future__ import annotations

from linkwork.algorithms.contact.gauss_seidel import GaussSeidel
from linkwork.algorithms.contact.known_modes import at_once
from linkwork.algorithms.contact.laws import Cone
from linkwork.backends.ops import Array

SWEEPS = 4
"""Before each solve: fewer find the active set later, more cost more than the solve."""


class ActiveSet(GaussSeidel):
    """The loop over sweeps and solves. Its state has the impulses and what the laws remember."""

    @property
    def size(self) -> int:
        return self.kept

    def first(self) -> tuple[Array, Array]:
        """The state after the first iteration from `start`, and its violation of the laws.

        It is shorter than others: contacts that pushed in the last step are solved at once, and there is one sweep.
        """
        xp, problem, m = self.xp, self.problem, self.rows
        s, cones = self.start[m : self.kept, :], [i for i, law in enumerate(problem.laws) if isinstance(law, Cone)]
        p = self._split(self._shared(self._split(self.start[0:m, :])))
        if cones:
            p = at_once(problem, p, s, xp, cones)
        x, _ = self._begun(xp.vstack([xp.zeros(0), *p, s]))
        return x[0 : self.kept, :], self._violation(self._split(x[0:m, :])) / self.speed

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one iteration more, and its violation of the laws, relative to the largest velocity."""
        xp, (x, _) = self.xp, self._begun(x)
        for _ in range(SWEEPS - 1):
            x, _ = super().next(x)
        swept, s = x[0 : self.rows, :], x[self.rows : self.kept, :]
        solved = xp.vstack(at_once(self.problem, self._split(swept), s, xp))
        before, after = self._violation(self._split(swept)), self._violation(self._split(solved))
        p = xp.where(after < before, solved, swept)
        return xp.vstack([p, s]), xp.where(after < before, after, before) / self.speed

    def _shared(self, p: list[Array]) -> Array:
        """Impulses nearer to a solution than p: along what each contact would do alone, by most energy.

        Contacts that could take each other's load share it then; sweeps would give all of it to the first.
        """
        xp, problem = self.xp, self.problem
        u = problem.without_own(p)
        alone = [law.given(p).solved(u[i], 0.0)[0] - p[i] for i, law in enumerate(problem.laws)]
        along = falls = xp.zeros(1)
        for i, (d, x, by) in enumerate(zip(alone, p, problem.velocities(alone), strict=True)):
            falls = falls - d.T @ (u[i] + problem.every.own(i) @ x)
            along = along + d.T @ (by - problem.g[i])
        most = xp.where(along > falls, along, falls)
        far = xp.where(falls > 0, falls / xp.where(falls > 0, most, 1.0), 0.0)
        return xp.vstack([xp.zeros(0), *(x + far[0, 0] * d for x, d in zip(p, alone, strict=True))])
