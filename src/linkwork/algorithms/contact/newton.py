"""Contact with friction by Newton's method on the laws of all contacts at once.

The laws of Signorini and Coulomb are p_i = F(y_i), y_i = p_i - r u_i, with any r > 0, here one over the contact's own
mobility: F keeps y_n >= 0 and shortens y_t to mu y_n. F is piecewise smooth, so its derivative D says what an open, a
sticking and a slipping contact do, and a step is

    (1 - D + D r G + lambda D) dp = F(y) - p

Alart and Curnier 1991. lambda damps redundant contacts (four points under a foot) towards the impulses at hand, in the
step and not in the solution. In the form of ports.py, contact by contact, with k = r / lambda and e = y_t / |y_t|:

    opens    dp = -p
    sticks   dp = -k (u + du)
    slips    dp_n = -k (u_n + du_n);   along e it follows dp_n mu;   across e it gives way by kappa = mu y_n / |y_t|

A humanoid on the eight points of its feet takes two steps in the median from the impulses of the last time step, and
99 % of its time steps take eight or fewer, where sweeps and solves of active contacts take 80. Where it cycles, nothing
but another method helps (interior_point.py).
"""

from __future__ import annotations

from linkwork.algorithms.contact.gauss_seidel import TINY
from linkwork.algorithms.contact.laws import Cone, larger
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops, threshold

DAMPING = 1e-7
"""lambda: less gives up digits of redundant contacts, more takes more steps."""

LENGTH = 1e-150
"""Added to lengths that may be zero: its square is still a number."""

LOST = 1e30
"""The residual of a step that is not a number: the lane goes back."""


class Newton:
    """The loop over steps. Its state has the impulses, what other solvers remember, and the velocities y of ports.

    Impulses of joint limits are zero in it: it is for steps in which joints do not reach their limits.
    """

    def __init__(self, problem: Problem, start: Array, xp: Ops) -> None:
        self.problem, self.xp, self.ports = problem, xp, problem.ports
        self.cones = [law for law in problem.laws if isinstance(law, Cone)]
        self.rows, self.kept = 3 * len(self.cones), start.shape[0]
        self.start, self.speed = start, problem.speed + TINY

    @property
    def size(self) -> int:
        """How many numbers the state has."""
        return int(self.kept + self.ports.rows)

    def first(self) -> tuple[Array, Array]:
        """The state after one step from `start`, and its violation."""
        xp, limits = self.xp, self.problem.rows - self.rows
        p = [law.inside(x) for law, x in zip(self.cones, self._split(self.start), strict=True)]
        start = [*p, xp.zeros(limits), self.start[self.rows + limits :, :], self.ports.moved(p)]
        return self.next(xp.vstack(start))

    def enter(self, x: Array) -> tuple[Array, Array | None]:
        """The state from which it goes on where another loop ended, and the violation there, if it has changed."""
        p = self._split(x)
        y = self.ports.moved(p)
        return self.xp.vstack([x[0 : self.kept, :], y]), self.violation(p, y) / self.speed

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one step more, and its violation of the laws, relative to the largest velocity."""
        xp, p, y = self.xp, self._split(x), x[self.kept :, :]
        u = [self.problem.g[i] + self.ports.at(i, y) for i in range(len(p))]
        steps = [self._linearised(law, *pu) for law, *pu in zip(self.cones, p, u, strict=True)]
        dp = self.ports.solve([E for E, _ in steps], [b for _, b in steps])
        new = [a + b for a, b in zip(p, dp, strict=True)]
        after = self.ports.moved(new)
        error = self.violation(new, after) / self.speed
        sane = error < LOST
        state = xp.vstack([*new, x[self.rows : self.kept, :], after])
        return xp.where(sane, state, x), xp.where(sane, error, LOST)

    def finish(self, x: Array) -> tuple[list[Array], Array, Array]:
        """The impulses, the largest violation of any law, and the velocity that it is relative to."""
        p = self.problem.split(x)
        return p, self.problem.violation(p, self.xp), self.speed

    def violation(self, p: list[Array], y: Array) -> Array:
        """The largest one of a law of contact, for impulses and velocities of ports."""
        worst = self.xp.zeros(1)
        for i, law in enumerate(self.cones):
            one = law.violation(p[i], self.problem.g[i] + self.ports.at(i, y))
            worst = larger(self.xp, worst, one)
        return worst

    def _linearised(self, law: Cone, p: Array, u: Array) -> tuple[Array, Array]:
        """E and b: dp = b - E du."""
        xp, mu, damping = self.xp, law.mu, threshold(self.xp, DAMPING)
        r = 1.0 / law.scale
        k = r / damping
        y0, y1, yn = (p[j, 0] - r * u[j, 0] for j in range(3))
        N, length = xp.where(yn > 0, yn, 0.0), xp.sqrt(y0 * y0 + y1 * y1 + LENGTH)
        pushes, slips = xp.where(yn > 0, 1.0, 0.0), length > mu * N
        e0, e1 = y0 / length, y1 / length
        kappa = xp.where(slips, mu * N / length, 1.0)
        # across e: 1 - kappa + lambda kappa is what is left of its own; kappa = 1 is sticking
        across = kappa / (1 - (1 - damping) * kappa)
        along = xp.where(slips, 0.0, pushes * k)
        Et, En = r * across * pushes, pushes * k
        off = xp.where(slips, mu * En, 0.0)
        E01 = (along - Et) * e0 * e1
        E = xp.matrix(
            [
                [along * e0 * e0 + Et * e1 * e1, E01, off * e0],
                [E01, along * e1 * e1 + Et * e0 * e0, off * e1],
                [0.0, 0.0, En],
            ]
        )
        # b: F(y) - p of a contact that opens; of one that pushes, the same divided by what is left
        bn = xp.where(yn > 0, (N - p[2, 0]) / damping, -p[2, 0])
        f0, f1 = kappa * y0 - p[0, 0], kappa * y1 - p[1, 0]
        fe, fa = e0 * f0 + e1 * f1, e0 * f1 - e1 * f0
        fe = xp.where(slips, fe + pushes * mu * (1 - damping) * bn, fe / damping)
        fa = fa * xp.where(slips, 1.0 / (1 - (1 - damping) * kappa), 1.0 / damping)
        return E, xp.matrix([[e0 * fe - e1 * fa], [e1 * fe + e0 * fa], [bn]])

    def _split(self, x: Array) -> list[Array]:
        return [x[3 * i : 3 * i + 3, :] for i in range(len(self.cones))]
