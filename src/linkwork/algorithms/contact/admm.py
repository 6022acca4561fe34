"""Contact with friction by ADMM on the damped Delassus matrix, with a rho that adapts.

Impulses p obey the dynamics, impulses y the laws, and z are the velocities that go with y:

    (G + R) p = R y + z - g
    y <- impulses that the laws require if velocities were u = z + R (y - p)
    z <- z + R (y - p),      R = rho times the mean of the diagonal of G_ii

Where p = y, z is the velocity G p + g. With R in place of G_ii a law is a projection: of Signorini and Coulomb as they
are, not of the associated cone that is corrected afterwards. Boyd et al. 2011; for contacts Carpentier et al. 2024.

Each iteration may have its own R, because G is brought to tridiagonal form first (common/tridiagonal.py). Every PERIOD
iterations rho is multiplied by the root of |p - y| / |G p + g - z|, by less and less the longer it takes; in between
(y, z) is extrapolated by Anderson's method of depth one, as sweeps are (gauss_seidel.py). O(4/3 m^3) once, O(4 m^2) an
iteration. Feet on the ground take 60 iterations for eight digits, a few hundred at most, where sweeps take 10: but it
also solves the states in which these cycle. Heavy bodies on light ones (1000 to 1) are for the active set.
"""

from __future__ import annotations

from linkwork.algorithms.common.tridiagonal import Tridiagonal
from linkwork.algorithms.contact.gauss_seidel import FARTHEST, SAFE, GaussSeidel
from linkwork.algorithms.contact.laws import largest
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops, tiny

RHO = 1.0
"""At the start, in units of a contact's own mobility."""

PERIOD = 10
"""Iterations with one rho."""

MOST, LESS = 10.0, 0.8
"""The largest factor between one rho and the next, and what is left of its excess over 1 every time."""


class Admm(GaussSeidel):
    """The loop over projections.

    Its state has y and what the laws remember, then w = (y, z - g), the change of w and w of the iteration before, all
    with mobilities of 1; at last rho, the iterations since it changed, and its largest factor.
    """

    anew = False

    def __init__(self, problem: Problem, start: Array, xp: Ops) -> None:
        super().__init__(problem, start, xp)
        roots, sizes = [xp.sqrt(law.scale) for law in problem.laws], [law.rows for law in problem.laws]
        pairs = list(zip(roots, sizes, strict=True))
        self.units = xp.vstack([xp.zeros(0), *(r * xp.constant([1.0] * n) for r, n in pairs)])
        blocks = [[problem.block(i, j, xp) / (a * b) for j, b in enumerate(roots)] for i, a in enumerate(roots)]
        self.G = xp.symmetric(xp.vstack([xp.hstack(row) for row in blocks])) if blocks else xp.zeros(0, 0)
        self.tridiagonal = Tridiagonal(self.G, xp)

    @property
    def g(self) -> Array:
        """In units in which mobilities are 1."""
        return self.xp.vstack([self.xp.zeros(0), *self.problem.g]) / self.units

    @property
    def size(self) -> int:
        return self.kept + 6 * self.rows + 3

    def first(self) -> tuple[Array, Array]:
        """The state after one iteration from `start`, and its error."""
        y = self.units * self.start[0 : self.rows, :]
        return self.next(self._from(self.start, y, self.G @ y))

    def enter(self, x: Array) -> Array:
        """From zero, and not from where another loop ended."""
        return self._from(x[0 : self.kept, :], self.xp.zeros(self.rows), self.xp.zeros(self.rows))

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one iteration more, and its error, relative to the largest velocity."""
        xp, m, k = self.xp, self.rows, self.kept
        w, f_before, before = (x[k + 2 * m * i : k + 2 * m * (i + 1), :] for i in range(3))
        rho, count, most = (x[k + 6 * m + i, 0] for i in range(3))
        y, z = w[0:m, :], w[m:, :] + self.g
        # what the dynamics make of y and z, and the laws of that
        p = self.tridiagonal.solve(rho, rho * y + z - self.g)
        u = z + rho * (y - p)
        aims = self._split((p - z / rho) / self.units)
        found: list[Array] = []
        for law, a in zip(self.problem.laws, aims, strict=True):
            found.append(law.given(found).near(a, rho * law.scale))
        new = xp.vstack([xp.zeros(0), *found])
        q = self.units * new
        z = z + rho * (q - p)
        error = largest(xp, self.units * (p - q)) + largest(xp, self.units * (u - z))
        # ahead, unless rho has just changed
        after = xp.vstack([q, z - self.g])
        f = after - w
        df = f - f_before
        square = self._dot(df, df, rho)
        theta = self._dot(f, df, rho) / xp.where(square > 0, square, 1.0)
        theta = xp.where(theta < -FARTHEST, -FARTHEST, xp.where(theta > 1, 1.0, theta))
        theta = xp.where(count > 0, theta, 0.0)
        # the next rho
        last = count > PERIOD - 1.5
        factor = xp.sqrt((largest(xp, p - q)[0, 0] + tiny(xp)) / (largest(xp, u - z)[0, 0] + tiny(xp)))
        factor = xp.where(factor > most, most, xp.where(factor * most < 1, 1 / most, factor))
        rho = xp.where(last, rho * factor, rho)
        count, most = xp.where(last, 0.0, count + 1), xp.where(last, 1 + LESS * (most - 1), most)
        state = [new, x[m:k, :], after - theta * (after - before), f, after, xp.matrix([[rho], [count], [most]])]
        return xp.vstack(state), SAFE * error / self.speed

    def _from(self, kept: Array, y: Array, z: Array) -> Array:
        """The state at the beginning."""
        xp, w = self.xp, self.xp.vstack([y, z])
        return xp.vstack([kept, w, xp.zeros(2 * self.rows), w, xp.constant([RHO, 0.0, MOST])])

    def _dot(self, a: Array, b: Array, rho: Array) -> Array:
        """a^T b of (y, z), in units in which rho is 1."""
        m = self.rows
        return rho * (a[0:m, :].T @ b[0:m, :])[0, 0] + (a[m:, :].T @ b[m:, :])[0, 0] / rho
