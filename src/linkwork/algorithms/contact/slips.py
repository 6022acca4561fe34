"""Contact with friction by Newton's method on how fast contacts slip.

With s = |u_t| / (mu p_n) of those that slip, and s = 0 of those that stick, the impulses are the solution of a linear
system (known_modes.py), and s is that for which they are on their cones:

    (G_AA + diag(s, s, 0)) p_A(s) = -g_A,      1 / |p_t(s)| = 1 / (mu p_n(s))

One contact alone takes two or three steps from any s, as for the radius of a trust region (laws.py). Where it can
hardly move, because another point of the same foot sticks, the directions of newton.py turn slowly, and s does not.
Steps are those of all contacts at once:

    p_t . dp_t / |p_t| - mu dp_n = -(|p_t| - mu p_n) |p_t| / (mu p_n),      du_t + s dp_t + ds p_t = 0,      du_n = 0

It begins from zero, with a step of newton.py that says which contacts push and slip. A foot that lands with its heel
while its toe sticks takes three or four more.
"""

from __future__ import annotations

from linkwork.algorithms.contact.laws import Cone
from linkwork.algorithms.contact.linearised_laws import RHO, given_slip, slip_at, slipping
from linkwork.algorithms.contact.newton import LOST, SAFE, Newton
from linkwork.backends.ops import Array, Ops, threshold, tiny

DAMPING = 1e-9
"""Of a step, relative to a contact's own mobility and RHO, towards the impulses at hand."""

FASTER = 100.0
"""How many times faster than before, or than its own mobility allows, a contact may slip after a step."""


class Slips(Newton):
    """The loop over steps.

    Its state has impulses and what other solvers remember, s of every contact and whether it pushed, and whether the
    loop has begun.
    """

    @property
    def size(self) -> int:
        """How many numbers the state has."""
        return int(self.kept + 2 * len(self.laws) + 1)

    def enter(self, x: Array) -> Array:
        """The state from which it begins, whatever the impulses are."""
        return self.xp.vstack([x[0 : self.kept, :], self.xp.zeros(2 * len(self.laws) + 1)])

    def next(self, x: Array) -> tuple[Array, Array]:
        """The state after one step more, and its violation of the laws, relative to velocities."""
        xp, n, end = self.xp, len(self.laws), self.kept
        begun = x[end + 2 * n, 0] > 0
        p = [xp.where(begun, a, 0.0 * a) for a in self._split(x)]
        u = self._velocities(self.ports.moved(p))
        s, pushed = ([x[end + k * n + i, 0] for i in range(n)] for k in range(2))
        cones = [law for law in self.laws if isinstance(law, Cone)]
        # which contacts push and slip: at first all that would, then those that did
        steps = list[tuple[Array, Array]]()
        for i, law in enumerate(cones):
            starts = slipping(law, p[i], u[i], RHO / law.scale, threshold(xp, DAMPING), xp)
            goes_on = faster(law, p[i], u[i], s[i], pushed[i], xp)
            steps.append((xp.where(begun, goes_on[0], starts[0]), xp.where(begun, goes_on[1], starts[1])))
        dp, du = self.ports.solve([E for E, _ in steps], [b for _, b in steps])
        inside = [law.inside(a + b) for law, a, b in zip(cones, p, dp, strict=True)]
        u_inside = self._velocities(self.ports.moved(inside))
        # the slip of each, and the impulses with these
        after, held = list[list[Array]](), list[tuple[Array, Array]]()
        for i, law in enumerate(cones):
            here, there = slip_at(law, p[i], u[i], xp), slip_at(law, inside[i], u_inside[i], xp)
            new = moved_slip(law, p[i], dp[i], du[i], s[i], pushed[i] * here[1], xp)
            pushes, new = xp.where(begun, here[1], there[1]), xp.where(begun, new * here[1], there[0])
            p[i], u[i] = xp.where(begun, p[i], inside[i]), xp.where(begun, u[i], u_inside[i])
            held.append(given_slip(law, p[i], u[i], new, pushes, threshold(xp, DAMPING), xp))
            after.append([new, pushes])
        step = self._solved(p, held, symmetric=True)
        columns = xp.matrix([[a[k]] for k in range(2) for a in after])
        state = xp.vstack([step.raw, x[self.rows : self.kept, :], columns, xp.eye(1)])
        sane = step.error < LOST
        return xp.where(sane, state, x), SAFE * xp.where(sane, step.error, LOST)


def faster(law: Cone, p: Array, u: Array, s: Array, pushed: Array, xp: Ops) -> tuple[Array, Array]:
    """E and b of a contact whose slip changes; one that sticks, and is inside its cone, goes on to stick."""
    mu, least = law.mu, threshold(xp, DAMPING) * law.scale / RHO
    pushes = pushed * slip_at(law, p, u, xp)[1]
    length, slips = xp.sqrt(p[0, 0] * p[0, 0] + p[1, 0] * p[1, 0] + tiny(xp)), _slips(law, p, s)
    e0, e1, side = p[0, 0] / length, p[1, 0] / length, mu * p[2, 0]
    En, across = pushes / least, pushes / (s + least)
    along, off = xp.where(slips, 0.0, across), xp.where(slips, mu * En, 0.0)
    E01 = (along - across) * e0 * e1
    rows = [
        [along * e0 * e0 + across * e1 * e1, E01, off * e0],
        [E01, along * e1 * e1 + across * e0 * e0, off * e1],
        [0.0, 0.0, En],
    ]
    ratio = xp.where(side > 0, length / xp.where(side > 0, side, 1.0), 1.0)
    excess = xp.where(slips, pushes * (side - length) * ratio, 0.0)
    return xp.matrix(rows), xp.matrix([[e0 * excess], [e1 * excess], [0.0]])


def moved_slip(law: Cone, p: Array, dp: Array, du: Array, s: Array, pushes: Array, xp: Ops) -> Array:
    """s after a step."""
    square = p[0, 0] * p[0, 0] + p[1, 0] * p[1, 0] + tiny(xp)
    ds = -sum(p[j, 0] * (du[j, 0] + s * dp[j, 0]) for j in range(2)) / square
    new = s + xp.where(_slips(law, p, s), pushes * ds, 0.0)
    most = FASTER * (s + law.scale)
    return xp.where(new > 0, xp.where(new < most, new, most), 0.0)


def _slips(law: Cone, p: Array, s: Array) -> Array:
    """Whether a contact slips, or is outside its cone."""
    length = law.xp.sqrt(p[0, 0] * p[0, 0] + p[1, 0] * p[1, 0])
    return law.xp.where(s > 0, 1.0, length - law.mu * p[2, 0]) > 0
