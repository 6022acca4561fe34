"""Velocities of contacts by those of ports: six of bodies with many contacts, three of any other.

    u_i = B_i y + g_i,      y = Omega B^T p,      G = B Omega B^T

Four points under a foot have 12 rows, but the foot has six velocities: y are those of its origin, in the contact's
axes, and B_i = [1 -d_i x] with the lever d_i. Two blocks that touch have the six of one relative to the other. Newton's
method linearises laws: p_i changes by b_i - E_i du_i. Then

    (Omega^-1 + B^T E B) dy = B^T b,      dp_i = b_i - E_i B_i dy

is a system over ports, whatever the number of contacts. Not symmetric, because slipping is not: LU without pivots, for
the symmetric part is positive definite but for friction. O(k^3) for k rows of ports, and Omega^-1 once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.contact.mobility import Pairs
from linkwork.backends.ops import Array, Ops, threshold
from linkwork.constraints.contact import Surface, Touch
from linkwork.lazy import cached_property

MANY = 3
"""Contacts of a link from which on its own velocities are fewer numbers than theirs."""

DAMPING = 1e-11
"""Added to Omega before it is inverted, relative to its diagonal: a port may have velocities that no joint gives it."""


@dataclass(frozen=True)
class Port:
    """Rows over velocities of links, and the laws that they move: number and lever, None if u = y.

    `between` says whether they are those of two bodies that touch each other.
    """

    rows: int
    K: dict[int, Array]
    laws: tuple[tuple[int, Array | None], ...]
    between: bool = False


def ports_of(touches: Sequence[Touch], ground: Surface, xp: Ops) -> list[Port]:
    """One for each link, or two bodies, with many contacts in the same axes; one for every other contact."""
    alike: dict[object, list[int]] = {}
    for k, touch in enumerate(touches):
        if not (_on_ground(touch.of) and ground.curved):
            alike.setdefault(touch.of, []).append(k)
    out, done = [], set[int]()
    for of, members in alike.items():
        if len(members) >= MANY:
            levers = tuple((k, touches[k].lever) for k in members)
            out.append(Port(6, touches[members[0]].whole, levers, not _on_ground(of)))
            done.update(members)
    others = [(k, touch) for k, touch in enumerate(touches) if k not in done]
    return out + [Port(3, touch.K, ((k, None),), not _on_ground(touch.of)) for k, touch in others]


def port_rows(bodies: Sequence[object], ground: Surface) -> int:
    """How many rows the ports of contacts have: of these links with the ground, of these pairs of bodies."""
    curved = {body for body in bodies if _on_ground(body) and ground.curved}
    return sum(6 if n >= MANY and body not in curved else 3 * n for body, n in Counter(bodies).items())


def _on_ground(of: object) -> bool:
    """Whether a contact of these bodies is one with the ground: they are a link."""
    return isinstance(of, int)


class Ports:
    """Omega of some ports, by blocks, and what laws have to do with them."""

    def __init__(self, ports: Sequence[Port], Omega: Pairs, xp: Ops) -> None:
        self.ports, self.xp, self.sizes = ports, xp, [port.rows for port in ports]
        self.blocks, self.rows = Omega, sum(self.sizes)
        self.place = {k: (n, lever) for n, port in enumerate(ports) for k, lever in port.laws}
        self.first = [sum(self.sizes[:n]) for n in range(len(ports))]

    def among(self, count: int) -> Ports:
        """Those that move the first `count` laws, which are the first ones."""
        return Ports([port for port in self.ports if port.laws[0][0] < count], self.blocks, self.xp)

    @cached_property
    def Omega(self) -> Array:
        """All of it."""
        count = len(self.ports)
        own = {(a, b): block for (a, b), block in self.blocks.items() if a < count and b < count}
        return Blocks(self.sizes, own, self.xp).matrix()

    @cached_property
    def inverse(self) -> Array:
        """Omega^-1, damped."""
        xp, k = self.xp, self.rows
        damped = [[self.Omega[i, j] * (1 + threshold(xp, DAMPING) * (i == j)) for j in range(k)] for i in range(k)]
        for i in range(k):  # a mechanism in a plane has no velocity across it
            damped[i][i] = 1.0 if xp.is_zero(self.Omega[i : i + 1, i : i + 1]) else damped[i][i]
        return xp.symmetric(xp.factor_spd(xp.symmetric(xp.matrix(damped))).solve(xp.eye(k)))

    def pairs(self) -> Pairs:
        """G, by blocks."""
        laws = sorted(self.place)
        found = {(i, j): self.G(i, j) for i in laws for j in laws if i <= j}
        return {ij: block for ij, block in found.items() if block is not None}

    def G(self, i: int, j: int) -> Array | None:
        """B_i Omega B_j^T; None if it is zero."""
        (a, di), (b, dj) = self.place[i], self.place[j]
        if (min(a, b), max(a, b)) not in self.blocks:
            return None
        block = self.blocks[a, b] if a <= b else self.blocks[b, a].T
        out = self._rows(self._rows(block, di).T, dj).T
        return self.xp.symmetric(out) if i == j else out

    def own(self, i: int) -> Array:
        """G_ii."""
        block = self.G(i, i)
        assert block is not None
        return block

    def moved(self, p: Sequence[Array]) -> Array:
        """y of impulses p."""
        return self.Omega @ self.wrenches(p)

    def at(self, i: int, y: Array) -> Array:
        """B_i y."""
        n, lever = self.place[i]
        return self._rows(y[self.first[n] : self.first[n] + self.sizes[n], :], lever)

    def wrenches(self, p: Sequence[Array]) -> Array:
        """B^T p."""
        total = [self.xp.zeros(size) for size in self.sizes]
        for i, (n, lever) in self.place.items():
            one = p[i] if lever is None else self.xp.vstack([p[i], self.xp.cross(lever, p[i])])
            total[n] = total[n] + one
        return self.xp.vstack([self.xp.zeros(0), *total])

    def solve(self, E: Sequence[Array], b: Sequence[Array], symmetric: bool = False) -> tuple[list[Array], list[Array]]:
        """The dp of the two equations above, and du = B dy; `symmetric` if all E are."""
        xp, A = self.xp, [[self.inverse[i, j] for j in range(self.rows)] for i in range(self.rows)]
        for i, (n, lever) in self.place.items():
            stiff, start = self._stiffness(E[i], lever), self.first[n]
            for r in range(self.sizes[n]):
                for c in range(self.sizes[n]):
                    A[start + r][start + c] = A[start + r][start + c] + stiff[r, c]
        right = self.wrenches(b)
        dy = xp.matrix([[x] for x in eliminated(A, [right[k, 0] for k in range(self.rows)], symmetric)])
        du = [self.at(i, dy) for i in range(len(b))]
        return [a - stiff @ x for a, stiff, x in zip(b, E, du, strict=True)], du

    def _rows(self, y: Array, lever: Array | None) -> Array:
        """[1 -d x] y, for columns y of a port."""
        return y if lever is None else y[0:3, :] - self.xp.cross(lever, y[3:6, :])

    def _stiffness(self, E: Array, lever: Array | None) -> Array:
        """B_i^T E B_i."""
        if lever is None:
            return E
        xp = self.xp
        turned = xp.cross(lever, E.T).T  # E (d x)^T, that is -E d x
        return xp.vstack([xp.hstack([E, turned]), xp.hstack([xp.cross(lever, E), xp.cross(lever, turned)])])


def eliminated(A: list[list[Array]], b: list[Array], symmetric: bool = False) -> list[Array]:
    """A^-1 b by LU without pivots, of scalars; if A is symmetric, of the half above its diagonal."""
    n, x = len(b), list(b)
    A = [list(row) for row in A]
    for k in range(n):
        pivot = 1.0 / A[k][k]
        for i in range(k + 1, n):
            l = (A[k][i] if symmetric else A[i][k]) * pivot
            for j in range(i if symmetric else k + 1, n):
                A[i][j] = A[i][j] - l * A[k][j]
            x[i] = x[i] - l * x[k]
        A[k][k] = pivot
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - A[k][j] * x[j]
        x[k] = x[k] * A[k][k]
    return x
