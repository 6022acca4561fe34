"""The laws of contacts and joints in a step of newton.py: dp = b - E du.

With y = p - r u, k = r / lambda and e = y_t / |y_t| a contact

    opens    dp = -p
    sticks   dp = -k (u + du)
    slips    dp_n = -k (u_n + du_n);   along e it follows mu dp_n;   across e it gives way by kappa = mu y_n / |y_t|

and with a given slip s = |u_t| / (mu p_n) it is linear: u_t + s p_t = 0. A joint that meets a limit sticks there, at
the limit's velocity.
"""

from __future__ import annotations

from linkwork.algorithms.contact.laws import Cone, Stop
from linkwork.backends.ops import Array, Ops, threshold, tiny

RHO = 0.1
"""r over a contact's own mobility, at the start."""

DAMPING = 1e-8
"""lambda: less gives up digits of redundant contacts, more takes more steps."""

FASTEST, EDGE = 100.0, 1e-9
"""The largest s, relative to a contact's own mobility, and how far from sticking a contact must be to slip."""


def slipping(law: Cone, p: Array, u: Array, r: Array, damping: Array, xp: Ops) -> tuple[Array, Array]:
    """E and b of a contact."""
    mu = law.mu
    y0, y1, yn = (p[j, 0] - r * u[j, 0] for j in range(3))
    N, length = xp.where(yn > 0, yn, 0.0), xp.sqrt(y0 * y0 + y1 * y1 + tiny(xp))
    slips = length > mu * N
    e0, e1 = y0 / length, y1 / length
    kappa = xp.where(slips, mu * N / length, 1.0)
    left = 1 - (1 - damping) * kappa  # of what is across e: lambda if it sticks
    En = xp.where(yn > 0, r / damping, 0.0)
    across, along = r * kappa / left, xp.where(slips, 0.0, En)
    off, E01 = xp.where(slips, mu * En, 0.0), (along - across) * e0 * e1
    rows = [
        [along * e0 * e0 + across * e1 * e1, E01, off * e0],
        [E01, along * e1 * e1 + across * e0 * e0, off * e1],
        [0.0, 0.0, En],
    ]
    bn = xp.where(yn > 0, (N - p[2, 0]) / damping, -p[2, 0])
    f0, f1 = kappa * y0 - p[0, 0], kappa * y1 - p[1, 0]
    fe, fa = e0 * f0 + e1 * f1, (e0 * f1 - e1 * f0) / left
    fe = xp.where(slips, fe + xp.where(yn > 0, mu * (1 - damping) * bn, 0.0), fe / damping)
    return xp.matrix(rows), xp.matrix([[e0 * fe - e1 * fa], [e1 * fe + e0 * fa], [bn]])


def slip_at(law: Cone, p: Array, u: Array, xp: Ops) -> tuple[Array, Array]:
    """s of a contact with the impulse p and the velocity u, zero if it sticks, and 1 if it pushes, else 0."""
    r, most = RHO / law.scale, FASTEST * law.scale
    y0, y1, yn = (p[j, 0] - r * u[j, 0] for j in range(3))
    side, square = law.mu * yn, p[0, 0] * p[0, 0] + p[1, 0] * p[1, 0]
    s = -(u[0, 0] * p[0, 0] + u[1, 0] * p[1, 0]) / (square + tiny(xp))
    s = xp.where(s > 0, xp.where(s < most, s, most), 0.0)
    return xp.where(y0 * y0 + y1 * y1 > (1 + EDGE) * side * side, s, 0.0), xp.where(yn > 0, 1.0, 0.0)


def given_slip(law: Cone, p: Array, u: Array, s: Array, pushes: Array, damping: float, xp: Ops) -> tuple[Array, Array]:
    """E and b of a contact that slips with s, if it pushes: u_t + s p_t = 0 and u_n = 0."""
    least = damping * law.scale / RHO
    Et, En = pushes / (s + least), pushes / least
    b = [[-Et * (u[j, 0] + s * p[j, 0]) - (1 - pushes) * p[j, 0]] for j in range(2)]
    b.append([-En * u[2, 0] - (1 - pushes) * p[2, 0]])
    return xp.matrix([[Et, 0.0, 0.0], [0.0, Et, 0.0], [0.0, 0.0, En]]), xp.matrix(b)


def stopping(law: Stop, p: Array, u: Array, r: Array, xp: Ops) -> tuple[Array, Array]:
    """E and b of a joint: where F is neither 0 nor its largest friction, the velocity is given."""
    F, damping = law.near(p - r * u, 1.0 / r), threshold(xp, DAMPING)
    free = F[0, 0] * F[0, 0] - law.p_max * law.p_max
    held = free * free > 0
    E = xp.where(held, r / damping, 0.0) * xp.eye(1)
    return E, (F - p) * xp.where(held, 1.0 / damping, 1.0)
