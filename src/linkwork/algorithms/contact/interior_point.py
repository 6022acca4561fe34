"""Contact with friction by an interior-point method, for states in which others run in circles.

Each contact has, besides p, the slack w of its normal velocity and s = |u_t| / (mu p_n) of its slip; each limit of a
joint its impulse l and the slack a of its velocity:

    u_n = w,         p_n w = tau,                             p_n, w > 0
    u_t = -s p_t,    s c = tau,     c = mu^2 p_n^2 - p_t^2,   s, c > 0
    u = lower + a,   l a = tau,     p = l                     l, a > 0      (upper: u = upper - a, p = -l)

and tau goes to zero: at tau = 0 these are the laws of Signorini and Coulomb, not those of an associated cone, because
the slack of the cone acts on p_t only. Every iteration makes a Newton step of all of them towards a tenth of the mean
tau, shortened so that it stays inside, and bent along the cones, on which p_t turns. Primal-dual methods: Nocedal and
Wright, "Numerical optimization", 2006, 19.3.
With the other unknowns eliminated a contact has dp_i = b_i - E_i du_i, E_i = (S_i + damping)^-1,

    S = | s + 2 s p_t p_t^T / c    -2 s mu^2 p_n p_t / c |
        |          0                       w / p_n       |

and all of them together are the system over ports of link_contacts.py. From the same start in every state it takes 13
iterations in the median for eight digits, 38 at most in 400 steps of a humanoid on redundant points.
"""

from __future__ import annotations

from linkwork.algorithms.contact.laws import Cone, Law, Stop
from linkwork.algorithms.contact.link_contacts import Ports
from linkwork.algorithms.contact.newton import Newton
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops, threshold

CENTRE = 0.1
"""Of the mean tau, the one that a step aims at."""

BLOCKED, LEFT = 0.1, 1e-3
"""Steps that a cone would make shorter than that are bent along it, where they leave less than LEFT of c."""

INSIDE = 0.99
"""Of the way to where something becomes zero, how far a step goes."""

DAMPING = 1e-10
"""Of a step, relative to a contact's own mobility: redundant contacts keep the impulses that they have."""

SLIPPERY = 1e-9
"""The least mu that has an inside."""

SMALLEST = 1e-4
"""Of the tau that a step aims at, the least product after it: one that falls far behind the others blocks all steps."""

FAR = 1e30
"""A way without an end."""


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
        own = [law.begun(self.speed[0, 0]) for law in self.inner]
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


class InnerCone:
    """A contact; its unknowns are p, w and s."""

    size = 5

    def __init__(self, law: Cone, xp: Ops) -> None:
        self.law, self.xp, self.mu = law, xp, xp.where(law.mu > SLIPPERY, law.mu, SLIPPERY)

    def begun(self, speed: Array) -> Array:
        """Where it begins."""
        return self.xp.matrix([[0.0], [0.0], [speed / self.law.scale], [speed], [self.law.scale]])

    def impulse(self, z: Array) -> Array:
        """p."""
        return z[0:3, :]

    def products(self, z: Array) -> list[Array]:
        """Those that are to be tau."""
        return [z[2, 0] * z[3, 0], z[4, 0] * self._room(z)]

    def step(self, z: Array, u: Array, tau: Array) -> tuple[Array, Array]:
        """E and b: dp = b - E du."""
        xp, (p0, p1, pn, w, s), c = self.xp, (z[k, 0] for k in range(5)), self._room(z)
        damping = threshold(xp, DAMPING) * self.law.scale
        soft, steep = s + damping, 2 * s / c
        across = steep / (soft + steep * (p0 * p0 + p1 * p1))
        T00, T11, T01 = ((one - across * a * b) / soft for one, a, b in ((1, p0, p0), (1, p1, p1), (0, p0, p1)))
        En = 1.0 / (w / pn + damping)
        off = across * self.mu * self.mu * pn * En
        E = xp.matrix([[T00, T01, off * p0], [T01, T11, off * p1], [0.0, 0.0, En]])
        pull = tau / c
        return E, E @ xp.matrix([[-u[0, 0] - pull * p0], [-u[1, 0] - pull * p1], [tau / pn - u[2, 0]]])

    def changes(self, z: Array, u: Array, dp: Array, du: Array, tau: Array) -> Array:
        """Of all unknowns."""
        dw = (tau - z[3, 0] * dp[2, 0]) / z[2, 0] - z[3, 0]
        ds = (tau - 2 * z[4, 0] * self._slope(z, dp)) / self._room(z) - z[4, 0]
        return self.xp.vstack([dp, self.xp.matrix([[dw], [ds]])])

    def ends(self, z: Array, dz: Array) -> list[Array]:
        """How far it is until p_n, w, s and c are zero: c of the step, or of one along the cone."""
        xp, half, square, c = self.xp, self._slope(z, dz), self._room(dz), self._room(z)
        inner = half * half - square * c
        below = xp.sqrt(xp.where(inner > 0, inner, 0.0)) - half
        straight, bent = way(c, xp.where(inner > 0, -below, 0.0), xp), way(c, 2 * half, xp)
        ways = [way(z[k, 0], dz[k, 0], xp) for k in (2, 3, 4)]
        return [*ways, xp.where(straight < BLOCKED, xp.where(straight > bent, straight, bent), straight)]

    def moved(self, z: Array, dz: Array, far: Array) -> Array:
        """The unknowns after a step: where it is bent, p_t is shortened to the c of its slope."""
        xp, new = self.xp, z + far * dz
        before, side = self._room(z), self.mu * new[2, 0]
        square, c = new[0, 0] * new[0, 0] + new[1, 0] * new[1, 0], before + 2 * far * self._slope(z, dz)
        most = side * side - c
        bent = xp.where(square > most, side * side - square, before) < LEFT * before
        share = xp.where(bent, xp.sqrt(xp.where(most > 0, most, 0.0) / xp.where(bent, square, 1.0)), 1.0)
        return xp.vstack([share * new[0:2, :], new[2:, :]])

    def lifted(self, z: Array, least: Array) -> Array:
        """The unknowns with p_n w not below `least`."""
        pn, w = lifted(z[2, 0], z[3, 0], self.law.scale, least, self.xp)
        return self.xp.vstack([z[0:2, :], self.xp.matrix([[pn], [w]]), z[4:5, :]])

    def _room(self, z: Array) -> Array:
        """c."""
        side = self.mu * z[2, 0]
        return side * side - z[0, 0] * z[0, 0] - z[1, 0] * z[1, 0]

    def _slope(self, z: Array, d: Array) -> Array:
        """The change of c / 2 with d."""
        return self.mu * self.mu * z[2, 0] * d[2, 0] - z[0, 0] * d[0, 0] - z[1, 0] * d[1, 0]


class InnerStop:
    """A joint with limits; its unknowns are l and a of each limit that it has."""

    def __init__(self, law: Stop, xp: Ops) -> None:
        self.law, self.xp = law, xp
        both = ((1.0, law.lower), (-1.0, law.upper))
        self.limits = [limit for limit, there in zip(both, law.sides, strict=True) if there]
        self.size = 2 * len(self.limits)

    def begun(self, speed: Array) -> Array:
        """Where it begins."""
        return self.xp.matrix([[x] for _ in self.limits for x in (speed / self.law.alone, speed)])

    def impulse(self, z: Array) -> Array:
        """p."""
        return sum((sign * z[2 * k, 0] for k, (sign, _) in enumerate(self.limits)), 0.0) * self.xp.eye(1)

    def products(self, z: Array) -> list[Array]:
        """Those that are to be tau."""
        return [z[2 * k, 0] * z[2 * k + 1, 0] for k in range(len(self.limits))]

    def step(self, z: Array, u: Array, tau: Array) -> tuple[Array, Array]:
        """E and b: dp = b - E du."""
        E = b = 0.0
        for k, (sign, limit) in enumerate(self.limits):
            l, a = z[2 * k, 0], z[2 * k + 1, 0]
            E = E + l / a
            b = b + sign * ((tau - l * sign * (u[0, 0] - limit)) / a)
        soft = 1.0 / (1.0 + threshold(self.xp, DAMPING) * self.law.alone * E)
        return E * soft * self.xp.eye(1), b * soft * self.xp.eye(1)

    def changes(self, z: Array, u: Array, dp: Array, du: Array, tau: Array) -> Array:
        """Of all unknowns: those of a limit that holds by the impulse, those of any other by the velocity."""
        xp, free, out = self.xp, list[tuple[Array, Array]](), []
        for k, (sign, limit) in enumerate(self.limits):
            l, a = z[2 * k, 0], z[2 * k + 1, 0]
            da = sign * (u[0, 0] + du[0, 0] - limit) - a
            free.append(((tau - l * (a + da)) / a, da))
        for k, (sign, _) in enumerate(self.limits):
            l, a = z[2 * k, 0], z[2 * k + 1, 0]
            others = sum((other[0] for j, other in enumerate(free) if j != k), 0.0)  # of the opposite sign
            dl, holds = sign * dp[0, 0] + others, l * self.law.alone > a
            held = dl, (tau - a * dl) / l - a
            out += [[xp.where(holds, x, y)] for x, y in zip(held, free[k], strict=True)]
        return xp.matrix(out)

    def lifted(self, z: Array, least: Array) -> Array:
        """The unknowns with l a of every limit not below `least`."""
        pairs = [lifted(z[2 * k, 0], z[2 * k + 1, 0], self.law.alone, least, self.xp) for k in range(len(self.limits))]
        return self.xp.matrix([[x] for pair in pairs for x in pair])

    def moved(self, z: Array, dz: Array, far: Array) -> Array:
        """The unknowns after a step."""
        return z + far * dz

    def ends(self, z: Array, dz: Array) -> list[Array]:
        """How far it is until one of them is zero."""
        return [way(z[k, 0], dz[k, 0], self.xp) for k in range(self.size)]


def lifted(impulse: Array, slack: Array, mobility: Array, least: Array, xp: Ops) -> tuple[Array, Array]:
    """An impulse and its slack with a product not below `least`: the smaller of the two becomes larger."""
    low, smaller = impulse * slack < least, impulse * mobility < slack
    more_impulse, more_slack = xp.where(smaller, least / slack, impulse), xp.where(smaller, slack, least / impulse)
    return xp.where(low, more_impulse, impulse), xp.where(low, more_slack, slack)


def way(value: Array, change: Array, xp: Ops) -> Array:
    """How far it is until the value is zero."""
    return xp.where(change < 0, -value / xp.where(change < 0, change, -1.0), FAR)
