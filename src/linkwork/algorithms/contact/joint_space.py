"""Many ports on few joints: the system of link_contacts.py over the velocities of joints instead.

With the rows J of ports, y = J v and Omega = J N J^T (mobility.py), laws that change impulses by b - E du lead to

    (H + J^T B^T E B J) dv = J^T B^T b,      dy = J dv

where H is the matrix of mobility.py, M with the rows of loops between its own. What a contact with the ground adds is
between joints that carry one link, so the tree's pattern stays; a pair of links joins two branches. LU in the order of
LTL, from the tips to the base, without fill in a tree: O(n d^2), and O(d^2) for each port, whatever their number.

Impulses move ports through the joints, too, without Omega: with H = L^T D L, Y = L^-T J^T and w = Y B^T p it is
y = Y^T D^-1 w, and w follows when one impulse changes: a sweep is O(m d) instead of O(m^2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwork.algorithms.contact.link_contacts import Port, Ports
from linkwork.algorithms.contact.mobility import Mobility, Pairs
from linkwork.algorithms.delassus.ltl import Columns, scaled, through
from linkwork.algorithms.tree.ltl import elimination_parents
from linkwork.backends.ops import Array
from linkwork.lazy import cached_property

FEWER = 2.0
"""Rows of ports for each joint velocity, from which on a system over joints takes fewer operations."""

FEWER_BETWEEN = 0.9
"""The same where bodies touch each other: a stack of cubes has one, and takes a third of the operations over joints if
they are ten, and as many if they are three. Over joints Newton's method solves more of their states, too."""

Changes = tuple[list[Array], list[Array]]
"""dp and du of all laws."""


def ports_on(mobility: Mobility, ports: Sequence[Port], J: Sequence[Columns]) -> Ports:
    """The ports with rows J, by Omega or by joints, whichever is less work."""
    sizes = [port.rows for port in ports]
    if over_joints(sum(sizes), len(mobility.parent), any(port.between for port in ports)):
        return JointPorts(ports, mobility, J)
    return Ports(ports, mobility.gram(J, sizes), mobility.xp)


def over_joints(rows: int, joints: int, between: bool) -> bool:
    """Whether ports with so many rows, some of them `between` bodies, are moved through joints."""
    return rows > (FEWER_BETWEEN if between else FEWER) * joints


class JointPorts(Ports):
    """Ports that are moved through joints."""

    def __init__(self, ports: Sequence[Port], mobility: Mobility, J: Sequence[Columns]) -> None:
        super().__init__(ports, {}, mobility.xp)
        self.mobility, self.J = mobility, J
        self.columns = [{mobility.joints[j]: c for j, c in columns.items()} for columns in J]
        self.Y = [through(mobility.factor, columns) for columns in self.columns]
        self.DY = scaled(mobility.factor.pivots, self.Y)

    def among(self, count: int) -> Ports:
        """Those that move the first `count` laws, which are the first ones."""
        ports = [port for port in self.ports if port.laws[0][0] < count]
        return ports_on(self.mobility, ports, self.J[: len(ports)])

    def pairs(self) -> Pairs:
        """G, by blocks: for methods that need it."""
        return Ports(self.ports, self.mobility.gram(self.J, self.sizes), self.xp).pairs()

    def own(self, i: int) -> Array:
        """G_ii."""
        n, lever = self.place[i]
        return self.xp.symmetric(self._rows(self._rows(self._diagonal[n], lever).T, lever).T)

    @cached_property
    def _diagonal(self) -> list[Array]:
        """The diagonal blocks of Omega."""
        xp, both = self.xp, zip(self.Y, self.DY, strict=True)
        return [xp.symmetric(xp.vstack([*dy.values()]).T @ xp.vstack([*y.values()])) for y, dy in both]

    def moved(self, p: Sequence[Array]) -> Array:
        """y of impulses p."""
        w = self.carried(p)
        return self.xp.vstack([self._port(n, w) for n in range(len(self.ports))])

    def carried(self, p: Sequence[Array]) -> Columns:
        """w of impulses p."""
        w, total = Columns(), self.wrenches(p)
        for n, y in enumerate(self.Y):
            wrench = total[self.first[n] : self.first[n] + self.sizes[n], :]
            for j, c in y.items():
                w[j] = w[j] + c @ wrench if j in w else c @ wrench
        return w

    def changed(self, w: Columns, i: int, dp: Array) -> None:
        """Add a change of one impulse to w."""
        n, lever = self.place[i]
        wrench = dp if lever is None else self.xp.vstack([dp, self.xp.cross(lever, dp)])
        for j, c in self.Y[n].items():
            w[j] = w[j] + c @ wrench

    def seen(self, w: Columns, i: int) -> Array:
        """B_i y, for w."""
        n, lever = self.place[i]
        return self._rows(self._port(n, w), lever)

    def solve(self, E: Sequence[Array], b: Sequence[Array], symmetric: bool = False) -> tuple[list[Array], list[Array]]:
        """The dp of the equations above, and du = B dy; `symmetric` if all E are."""
        return self.stiffened(E, symmetric)(b)

    def stiffened(self, E: Sequence[Array], symmetric: bool = False) -> Callable[[Sequence[Array]], Changes]:
        """What `solve` does with these E, as a function of b: for more than one of them."""
        A = [{j: self.mobility.H[i][j] for j in (i, *ancestors)} for i, ancestors in enumerate(self.ancestors)]
        above = [{j: A[i][j] for j in ancestors} for i, ancestors in enumerate(self.ancestors)]  # A_ji
        for n, columns in enumerate(self.columns):
            stiff = self._summed(n, E)
            for k, c in columns.items():
                left = c @ stiff
                for j, other in columns.items():
                    if j <= k:
                        A[k][j] = A[k][j] + (left @ other.T)[0, 0]
                    elif not symmetric:
                        above[j][k] = above[j][k] + (left @ other.T)[0, 0]
        factor = LU(A, A if symmetric else above, self.ancestors)

        def solved(b: Sequence[Array]) -> Changes:
            total, f = self.wrenches(b), [self.xp.zeros(1)[0, 0]] * len(self.ancestors)
            for n, columns in enumerate(self.columns):
                wrench = total[self.first[n] : self.first[n] + self.sizes[n], :]
                for k, c in columns.items():
                    f[k] = f[k] + (c @ wrench)[0, 0]
            dv = factor.solve(f)
            parts = [sum((c.T * dv[j] for j, c in columns.items()), start=0.0) for columns in self.columns]
            dy = self.xp.vstack(parts)
            du = [self.at(i, dy) for i in range(len(b))]
            return [a - stiff @ u for a, stiff, u in zip(b, E, du, strict=True)], du

        return solved

    @cached_property
    def ancestors(self) -> list[list[int]]:
        """Of each row of H, with the pattern of these ports."""
        out = list[list[int]]()
        for p in elimination_parents(self.mobility.parent, self.columns):
            out.append([p, *out[p]] if p >= 0 else [])
        return out

    def _port(self, n: int, w: Columns) -> Array:
        """y of one port."""
        return sum((c.T * w[j][0, 0] for j, c in self.DY[n].items()), start=0.0)

    def _summed(self, n: int, E: Sequence[Array]) -> Array:
        """B^T E B of all laws of a port."""
        return sum((self._stiffness(E[i], lever) for i, lever in self.ports[n].laws), start=0.0)


class LU:
    """A matrix with the pattern of a tree, factorised without pivots from the tips to the base.

    `A[i][j]` are the diagonal and what is left of it, `above[i][j]` is A_ji: the same object if A is symmetric.
    """

    def __init__(self, A: list[Columns], above: list[Columns], ancestors: list[list[int]]) -> None:
        self.ancestors, self.A, symmetric = ancestors, A, A is above
        self.L = list[Columns]([{} for _ in A])
        for k in reversed(range(len(A))):
            pivot = 1.0 / A[k][k]
            for i in ancestors[k]:
                l = self.L[k][i] = above[k][i] * pivot
                for j in ancestors[k]:
                    if j <= i:
                        A[i][j] = A[i][j] - l * A[k][j]
                    elif not symmetric:
                        above[j][i] = above[j][i] - l * A[k][j]
            A[k][k] = pivot

    def solve(self, b: Sequence[Array]) -> list[Array]:
        """A^-1 b."""
        x = list(b)
        for k in reversed(range(len(x))):
            for i in self.ancestors[k]:
                x[i] = x[i] - self.L[k][i] * x[k]
        for k, ancestors in enumerate(self.ancestors):
            for j in ancestors:
                x[k] = x[k] - self.A[k][j] * x[j]
            x[k] = x[k] * self.A[k][k]
        return x
