"""The laws of contacts and joints in a step of interior_point.py: dp = b - E du.

With the other unknowns w and s eliminated a contact has E = (S + damping)^-1,

    S = | s + 2 s p_t p_t^T / c    -2 s mu^2 p_n p_t / c |
        |          0                       w / p_n       |

and a joint the sum of l / a over its limits.
"""

from __future__ import annotations

from linkwork.algorithms.contact.laws import Cone, Stop
from linkwork.backends.ops import Array, Ops, threshold

BLOCKED, LEFT = 0.1, 1e-3
"""Steps that a cone would make shorter than that are bent along it, where they leave less than LEFT of c."""

DAMPING = 1e-10
"""Of a step, relative to a contact's own mobility: redundant contacts keep the impulses that they have."""

SLIPPERY = 1e-9
"""The least mu that has an inside."""

OPEN, OPENEST = 1e2, 1e15
"""The velocity, relative to the largest, that it takes to close a gap that is far from closing, and the most of it."""

FAR = 1e30
"""A way without an end."""


class InnerCone:
    """A contact; its unknowns are p, w and s."""

    size = 5

    def __init__(self, law: Cone, xp: Ops) -> None:
        self.law, self.xp, self.mu = law, xp, xp.where(law.mu > SLIPPERY, law.mu, SLIPPERY)

    def begun(self, speed: Array, g: Array) -> Array:
        """Where it begins: nearly open where its gap is far from closing, but with the same products."""
        far = g[2, 0] / speed
        far = self.xp.where(far > OPEN, self.xp.where(far < OPENEST, far, OPENEST), 1.0)
        scale = self.law.scale
        return self.xp.matrix([[0.0], [0.0], [speed / (scale * far)], [speed * far], [scale * far * far]])

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

    def begun(self, speed: Array, g: Array) -> Array:
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
