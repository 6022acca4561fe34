"""Contact with friction by an interior-point method, for states in which others run in circles.

Each contact has, besides p, the slack w of its normal velocity and s = |u_t| / (mu p_n) of its slip; each limit of a
joint its impulse l and the slack a of its velocity:

    u_n = w,         p_n w = tau,                             p_n, w > 0
    u_t = -s p_t,    s c = tau,     c = mu^2 p_n^2 - p_t^2,   s, c > 0
    u = lower + a,   l a = tau,     p = l                     l, a > 0      (upper: u = upper - a, p = -l)

and tau goes to zero: at tau = 0 these are the laws of Signorini and Coulomb, not those of an associated cone, because
the slack of the cone acts on p_t only. Every iteration makes a Newton step of all of them towards a tenth of the mean
tau, shortened so that it stays inside, and bent along the cones, on which p_t turns. Primal-dual methods: Nocedal and
Wright, "Numerical optimization", 2006, 19.3. What every law makes of it is in inner_laws.py, the system over ports in
link_contacts.py.

From the same start in every state it takes 13 iterations in the median for eight digits, 38 at most in 400 steps of a
humanoid on redundant points.
"""

from __future__ import annotations

from linkwork.algorithms.contact.inner_laws import FAR, InnerCone, InnerStop
from linkwork.algorithms.contact.laws import Cone, Law
from linkwork.algorithms.contact.link_contacts import Ports
from linkwork.algorithms.contact.newton import Newton
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops

CENTRE = 0.1
"""Of the mean tau, the one that a step aims at."""

INSIDE = 0.99
"""Of the way to where something becomes zero, how far a step goes."""

SMALLEST = 1e-4
"""Of the tau that a step aims at, the least product after it: one that falls far behind the others blocks all steps."""


class InteriorPoint(Newton):
    """The loop over steps; it keeps the impulses with the least violation.

    Its state has these and what other solvers remember, then the unknowns of every law, and the least violation.
    """

    def __init__(self, problem: Problem, start: Array, xp: Ops) -> None:
        super().__init__(problem, start, xp)
        self.inner = [InnerCone(law, xp) if isinstance(law, Cone) else InnerStop(law, xp) for law in self.laws]
        self.own = sum(law.size for law in self.inner)

    @property
    def size(self) -> int:
        """How many numbers the state has."""
        return int(self.kept + self.own + 1)

    def enter(self, x: Array) -> Array:
        """The state from which it begins."""
        own = [law.begun(self.speed[0, 0], g) for law, g in zip(self.inner, self.problem.g, strict=False)]
        return self.xp.vstack([x[0 : self.kept, :], *own, FAR * self.xp.eye(1)])

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one step more, and the least violation so far, relative to velocities."""
        xp, row, state = self.xp, self.kept, list[Array]()
        for law in self.inner:
            state.append(x[row : row + law.size, :])
            row += law.size
        best, laws = x[row : row + 1, :], list(zip(self.inner, state, strict=True))
        p = [law.impulse(z) for law, z in laws]
        y = self.ports.moved(p)
        u = [self.problem.g[i] + self.ports.at(i, y) for i in range(len(p))]
        # towards a part of the mean tau
        products = [product for law, z in laws for product in law.products(z)]
        tau = sum(products, 0.0) * (CENTRE / len(products))
        steps = [law.step(z, v, tau) for (law, z), v in zip(laws, u, strict=True)]
        dp, du = self.ports.solve([E for E, _ in steps], [b for _, b in steps])
        changes = [law.changes(z, u[i], dp[i], du[i], tau) for i, (law, z) in enumerate(laws)]
        # as far as everything stays above zero
        far: Array = 1.0 / INSIDE
        for (law, z), dz in zip(laws, changes, strict=True):
            for end in law.ends(z, dz):
                far = xp.where(end < far, end, far)
        state = [law.moved(z, dz, INSIDE * far) for (law, z), dz in zip(laws, changes, strict=True)]
        state = [law.lifted(z, SMALLEST * tau) for law, z in zip(self.inner, state, strict=True)]
        new = [law.impulse(z) for law, z in zip(self.inner, state, strict=True)]
        error = self.violation(new, self.ports.moved(new)) / self.speed
        better = error < best
        kept = [xp.where(better, xp.vstack(new), x[0 : self.rows, :]), x[self.rows : self.kept, :]]
        best = xp.where(better, error, best)
        return xp.vstack([*kept, *state, best]), best


class WholeInteriorPoint(InteriorPoint):
    """The same with limits of joints."""

    def solved_for(self, problem: Problem) -> tuple[Ports, list[Law]]:
        """All."""
        return problem.every, problem.laws
