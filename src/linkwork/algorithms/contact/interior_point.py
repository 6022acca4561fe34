"""Contact with friction by an interior-point method: for the states in which other methods run in circles.

Each contact has, besides p, the slack w of its normal velocity and s = |u_t| / (mu p_n) of its slip:

    u_n = w,         p_n w = tau,                             p_n, w > 0
    u_t = -s p_t,    s c = tau,     c = mu^2 p_n^2 - p_t^2,   s, c > 0

and tau goes to zero: at tau = 0 these are the laws of Signorini and Coulomb, not those of an associated cone, because
the slack of the cone acts on p_t only. Every iteration makes a Newton step of all of them towards a tenth of the mean
tau, shortened so that it stays inside. Primal-dual methods: Nocedal and Wright, "Numerical optimization", 2006, 19.3.
With dw and ds eliminated a contact has dp_i = b_i - E_i du_i, E_i = (S_i + damping)^-1,

    S = | s + 2 s p_t p_t^T / c    -2 s mu^2 p_n p_t / c |
        |          0                       w / p_n       |

and all contacts together the system over ports of ports.py. From the same start in every state it takes 13 iterations
in the median for eight digits, 38 at most in 400 steps of a humanoid on redundant points.
"""

from __future__ import annotations

from linkwork.algorithms.contact.newton import Newton
from linkwork.algorithms.contact.problem import Problem
from linkwork.backends.ops import Array, Ops, threshold

CENTRE = 0.1
"""Of the mean tau, the one that a step aims at."""

INSIDE = 0.99
"""Of the way to where something becomes zero, how far a step goes."""

DAMPING = 1e-10
"""Of a step, relative to a contact's own mobility: redundant contacts keep the impulses that they have."""

SLIPPERY = 1e-9
"""The least mu that has an inside."""

FAR = 1e30
"""A way without an end."""


class InteriorPoint(Newton):
    """The loop over steps; it begins where another one ended, and keeps the impulses with the least violation.

    Its state has these and what other solvers remember, then its own p, w and s, and the least violation.
    """

    def __init__(self, problem: Problem, start: Array, xp: Ops) -> None:
        super().__init__(problem, start, xp)
        self.mu = [xp.where(law.mu > SLIPPERY, law.mu, SLIPPERY) for law in self.cones]

    @property
    def size(self) -> int:
        """How many numbers the state has."""
        return int(self.kept + 5 * len(self.cones) + 1)

    def enter(self, x: Array) -> tuple[Array, Array | None]:
        """The state from which it begins, besides the impulses of x; whether they are good enough is known already."""
        xp, speed = self.xp, self.speed[0, 0]
        own = [xp.matrix([[0.0], [0.0], [speed / law.scale]]) for law in self.cones]
        slack = [xp.matrix([[speed] for _ in self.cones]), xp.matrix([[law.scale] for law in self.cones])]
        return xp.vstack([x[0 : self.kept, :], *own, *slack, FAR * xp.eye(1)]), None

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one step more, and the least violation of the laws, relative to the largest velocity."""
        xp, n, k = self.xp, len(self.cones), self.kept
        p, best = self._split(x[k:, :]), x[k + 5 * n : k + 5 * n + 1, :]
        w, s = ([x[k + part * n + i, 0] for i in range(n)] for part in (3, 4))
        y = self.ports.moved(p)
        # the mean of p_n w and s c, and the step towards a part of it
        c = [self._room(i, p[i]) for i in range(n)]
        tau = sum((p[i][2, 0] * w[i] + s[i] * c[i] for i in range(n)), 0.0) * (CENTRE / (2 * n))
        steps = [self._step(i, p[i], self.problem.g[i] + self.ports.at(i, y), w[i], s[i], c[i], tau) for i in range(n)]
        dp = self.ports.solve([E for E, _ in steps], [b for _, b in steps])
        dw = [(tau - w[i] * dp[i][2, 0]) / p[i][2, 0] - w[i] for i in range(n)]
        ds = [(tau - 2 * s[i] * self._across(i, p[i], dp[i])) / c[i] - s[i] for i in range(n)]
        # as far as everything stays above zero
        far: Array = 1.0 / INSIDE
        for i in range(n):
            for value, change in ((p[i][2, 0], dp[i][2, 0]), (w[i], dw[i]), (s[i], ds[i])):
                far = _less(xp, far, xp.where(change < 0, -value / xp.where(change < 0, change, 1.0), FAR))
            far = _less(xp, far, self._to_the_cone(i, p[i], dp[i], c[i]))
        far = INSIDE * far
        new = [a + far * b for a, b in zip(p, dp, strict=True)]
        error = self.violation(new, self.ports.moved(new)) / self.speed
        better = error < best
        kept = xp.vstack([xp.where(better, xp.vstack(new), x[0 : 3 * n, :]), x[3 * n : k, :]])
        w, s = ([[a + far * b] for a, b in zip(v, dv, strict=True)] for v, dv in ((w, dw), (s, ds)))
        best = xp.where(better, error, best)
        return xp.vstack([kept, *new, xp.matrix(w), xp.matrix(s), best]), best

    def _room(self, i: int, p: Array) -> Array:
        """c."""
        side = self.mu[i] * p[2, 0]
        return side * side - p[0, 0] * p[0, 0] - p[1, 0] * p[1, 0]

    def _across(self, i: int, p: Array, q: Array) -> Array:
        """The change of c / 2 with q."""
        return self.mu[i] * self.mu[i] * p[2, 0] * q[2, 0] - p[0, 0] * q[0, 0] - p[1, 0] * q[1, 0]

    def _step(self, i: int, p: Array, u: Array, w: Array, s: Array, c: Array, tau: Array) -> tuple[Array, Array]:
        """E and b of contact i."""
        xp, (p0, p1, pn) = self.xp, (p[k, 0] for k in range(3))
        damping = threshold(xp, DAMPING) * self.cones[i].scale
        soft, steep = s + damping, 2 * s / c
        across = steep / (soft + steep * (p0 * p0 + p1 * p1))
        T00, T11, T01 = ((one - across * a * b) / soft for one, a, b in ((1, p0, p0), (1, p1, p1), (0, p0, p1)))
        En = 1.0 / (w / pn + damping)
        off = across * self.mu[i] * self.mu[i] * pn * En
        E = xp.matrix([[T00, T01, off * p0], [T01, T11, off * p1], [0.0, 0.0, En]])
        r0, r1 = (-u[k, 0] - tau / c * p[k, 0] for k in range(2))
        return E, E @ xp.matrix([[r0], [r1], [tau / pn - u[2, 0]]])

    def _to_the_cone(self, i: int, p: Array, q: Array, c: Array) -> Array:
        """The least a > 0 with no room left at p + a q."""
        xp, half, square = self.xp, self._across(i, p, q), self._room(i, q)
        inner = half * half - square * c
        below = xp.sqrt(xp.where(inner > 0, inner, 0.0)) - half
        meets = xp.where(inner > 0, xp.where(below > 0, 1.0, 0.0), 0.0)
        return xp.where(meets > 0, c / xp.where(meets > 0, below, 1.0), FAR)


def _less(xp: Ops, a: Array, b: Array) -> Array:
    return xp.where(b < a, b, a)
