"""The columns of derivatives by trunk and limbs, as products of matrices.

With S = [f; N^T b - r], a column of [x_t; lam] is B S, where B is symmetric but for the roots s of weights:

    B = [A^-1 + Q s B_rt,  Q B_rr;  B_rr s Q^T,  B_rr],     B_rr = -s W

where W = E for independent and soft rows, else V (2 - D V) with V = E + X (E + X (E + X (6 X E - 9 E))), X = E R
(algorithms/derivatives/limb_solution.py and rows_inverse.py have the equations). For every column, which the joints of
a limb have in common, or those of the trunk:

    S = [b_t; -r] + [P^T; s N^T] b_l,      [x_t; lam] = B S,      x_l = M_l^-1 b_l + [P, N] [x_t; lam]

S and b have only the limbs and rows in which their columns are not zero. For derivatives by joint forces b is the unit
matrix, and they are symmetric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import NamedTuple

from linkwork.algorithms.derivatives.limb_solution import LimbSolution, put
from linkwork.algorithms.derivatives.rows_inverse import POWERS
from linkwork.backends import Array
from linkwork.kernels.programs.matrices import Matrix
from linkwork.kernels.programs.products import Factor, Product, Rows, Transfer, mirror, shape_of, unroll
from linkwork.kernels.programs.program import Port
from linkwork.kernels.programs.value_numbering import ZERO


class Side(NamedTuple):
    """Right-hand sides b (nv x k) and r (m x k).

    `known` is a part of x besides what they give, if there is one.
    """

    b: Array
    r: Array
    known: Array | None = None

    def times(self, P: Array) -> Side:
        """The columns of products with P."""
        return Side(self.b @ P, self.r @ P, None if self.known is None else self.known @ P)


class Columns(NamedTuple):
    """Matrices that the start gives, products of them, and what these fill."""

    given: dict[str, Matrix]
    products: list[Product | Transfer]
    further: list[Port]

    def straight(self) -> dict[str, Matrix]:
        """All of these matrices after the products, as straight-line code."""
        values = next(x.values for x in self.given.values())
        known = {n: list(x.refs) for n, x in self.given.items()}
        known |= {port.name: [ZERO] * port.size for port in self.further}
        ports = {n: Port(n, x.shape) for n, x in self.given.items()} | {port.name: port for port in self.further}
        unroll(values, known, ports, self.products)
        return {n: Matrix(values, shape_of(ports[n]), refs) for n, refs in known.items()}


class Group(NamedTuple):
    """Columns from `start` to `stop` in which the same limbs are not zero (`used`).

    Their S has these rows of the trunk and of constraints.
    """

    start: int
    stop: int
    used: tuple[int, ...]
    trunk: tuple[int, ...]
    rows: tuple[int, ...]


BAND = 6
"""Rows of symmetric matrices that are computed together, up to the diagonal of the last one."""


def limb_columns(solved: LimbSolution, sides: Mapping[str, Side], first: str, second: str) -> Columns:
    """The derivatives d{first}_d{w} and d{second}_d{w}, for the right-hand sides of each w."""
    made = _Columns(solved)
    made.inverse()
    for w, (b, r, known) in sides.items():
        names = f"d{first}_d{w}", f"d{second}_d{w}"
        if w == "tau":
            made.invert(*names)
        else:
            made.solve(w, b, r, names)
        if known is not None:
            made.add(known, f"known_{w}", names[0])
    return Columns({n: x for n, x in made.given.items() if x.refs}, made.products, made.further)


class _Columns:
    def __init__(self, solved: LimbSolution) -> None:
        self.solved, self.xp = solved, solved.xp
        self.given: dict[str, Matrix] = {}
        self.products: list[Product | Transfer] = []
        self.further: list[Port] = []
        self.t, self.m = len(solved.trunk), solved.W.m
        weighed = any(r != s for r, s in zip(solved.roots.refs, (0 * solved.roots + 1).refs, strict=True))
        for k, l in enumerate(solved.limbs):
            self.given[f"back{k}"] = self.xp.vstack([l.inverse, l.PT, l.NT])
            if weighed:
                roots = solved.roots[list(l.limb.rows), :]
                self.given[f"reduce{k}"] = self.xp.vstack([l.PT, roots * l.NT])
        self.weighed = weighed

    def inverse(self) -> None:
        """B."""
        xp, s, t, m = self.xp, self.solved, self.t, self.m
        trunk, rows, roots = range(t), range(t, t + m), s.roots
        own = -(roots * s.W.E) if s.W.is_plain else xp.zeros(m, m)
        self.given["B"] = xp.vstack([xp.hstack([s.A, xp.zeros(t, m)]), xp.hstack([xp.zeros(m, t), own])])
        if not m:
            return
        self.given |= {"Q": s.Q, "sQT": roots * s.Q.T}
        if not s.W.is_plain:
            self._redundant()
        if t:
            across = Factor("B", tuple(rows), tuple(rows))
            self.product(Rows(_rows("B", rows)), across, Rows(_rows("sQT", range(m))), t)
            if self.weighed:
                self.product(Rows(_rows("B", trunk), t), Factor("Q", *_all(t, m)), Rows(_rows("B", rows), t), m)
            else:
                self.products.append(mirror("B", ((i, j) for i in trunk for j in rows)))
            self.product(Rows(_rows("B", trunk)), Factor("Q", *_all(t, m)), Rows(_rows("B", rows)), t, add=True)

    def _redundant(self) -> None:
        """B_rr of rows that may be redundant."""
        s, m, at = self.solved, self.m, range(self.t, self.t + self.m)
        E, square = s.W.E, _all(m, m)
        *others, highest = POWERS
        X, inner = E * s.W.R.T, [f"V{k}" for k in range(1, len(others))]
        self.given |= {"E": E, "least": highest * X, "X": X, "D": s.W.D, "left": -2 * self.xp.eye(m)}
        for n, (to, of) in enumerate(pairwise(["E", *inner, "V"])):
            self.given[of] = others[-1 - n] * E
            self.symmetric(of, 0, Factor("X" if n else "least", *square), to, add=True)
        self.product(Rows(_rows("left", range(m))), Factor("D", *square), Rows(_rows("V", range(m))), m, add=True)
        if self.weighed:
            self.given |= {"sV": s.roots * E, "sX": s.roots * X}
            last = Rows(_rows(inner[-1], range(m)))
            self.product(Rows(_rows("sV", range(m))), Factor("sX", *square), last, m, add=True)
            self.product(Rows(_rows("B", at), self.t), Factor("sV", *square), Rows(_rows("left", range(m))), m)
        else:
            self.symmetric("B", self.t, Factor("V", *square), "left")

    def solve(self, w: str, b: Matrix, r: Matrix, names: tuple[str, str]) -> None:
        """The columns of one input."""
        self.further += [Port(names[0], b.shape), Port(names[1], r.shape)]
        self.given[f"b_{w}"] = b
        groups = self._groups(b, r)
        for _, run in groupby(groups, lambda g: (g.trunk, g.rows)):
            self._joined(w, list(run), b, r, names)
        for k in range(len(self.solved.limbs)):
            for (own, moving), run in groupby(groups, partial(_reached, k)):
                parts = list(run)
                self._back(k, names, parts[0].start, parts[-1].stop, f"b_{w}" if own else None, moving)

    def add(self, x: Matrix, name: str, to: str) -> None:
        """Add the entries of x that are not zero to a matrix of its shape."""
        filled = [k for k, ref in enumerate(x.refs) if ref != ZERO]
        if filled:
            self.given[name] = Matrix(x.values, (len(filled), 1), [x.refs[k] for k in filled])
            at = (divmod(k, x.shape[1]) for k in filled)
            self.products.append(Transfer(to, name, tuple((*ij, n, 0) for n, ij in enumerate(at)), add=True))

    def symmetric(self, C: str, first: int, A: Factor, B: str, add: bool = False) -> None:
        """A symmetric product A B in C, from row and column `first` on."""
        m = len(A.rows)
        for begin in range(0, m, BAND):
            band = range(begin, min(begin + BAND, m))
            part = Factor(A.matrix, tuple(band), A.columns)
            self.product(
                Rows(_rows(C, [first + k for k in band]), first), part, Rows(_rows(B, range(m))), band.stop, add
            )
        above = tuple((first + i, first + j) for i in range(m) for j in range(i // BAND * BAND + BAND, m))
        if above:
            self.products.append(mirror(C, above))

    def invert(self, first: str, second: str) -> None:
        """The columns of joint forces: b is the unit matrix, and what it becomes is symmetric."""
        s, xp, n, t = self.solved, self.xp, sum(len(l.limb.dofs) for l in self.solved.limbs) + self.t, self.t
        self.given[first] = sum((put(l.inverse, l.limb.dofs, l.limb.dofs, (n, n), xp) for l in s.limbs), xp.zeros(n, n))
        self.further.append(Port(second, (self.m, n)))
        above = []
        joined = (*_rows(first, s.trunk), *_rows(second, range(self.m)))
        for k, l in enumerate(s.limbs):
            across = (*l.limb.carriers, *(t + c for c in l.limb.rows))
            for begin, end in _runs(l.limb.dofs):
                to, count = l.limb.dofs[begin], end - begin
                name, rows = self._reducing(k)
                S = Rows(_rows(name, rows), begin)
                self.product(Rows(joined, to), Factor("B", tuple(range(t + self.m)), across), S, count)
                for other in range(k, len(s.limbs)):
                    self._back(other, (first, second), to, to + count, add=other == k)
            above += [(i, j) for o in s.limbs[k + 1 :] for i in l.limb.dofs for j in o.limb.dofs]
            above += [(i, j) for i in l.limb.dofs for j in s.trunk]
        own = tuple((i, j, row, column) for row, i in enumerate(s.trunk) for column, j in enumerate(s.trunk))
        held = tuple((k, j, t + k, column) for k in range(self.m) for column, j in enumerate(s.trunk))
        self.products += [Transfer(to, "B", entries) for to, entries in ((first, own), (second, held)) if entries]
        if above:
            self.products.append(mirror(first, above))

    def _reducing(self, k: int) -> tuple[str, range]:
        """The matrix and its rows that have [P^T; s N^T] of a limb."""
        limb = self.solved.limbs[k].limb
        n, seen = len(limb.dofs), len(limb.carriers) + len(limb.rows)
        return (f"reduce{k}", range(seen)) if self.weighed else (f"back{k}", range(n, n + seen))

    def _back(
        self,
        k: int,
        names: tuple[str, str],
        start: int,
        stop: int,
        own: str | None = None,
        moving: bool = True,
        add: bool = False,
    ) -> None:
        """x_l of one limb in some columns.

        From b_l in the matrix `own`, and from [x_t; lam] unless that is zero.
        """
        limb = self.solved.limbs[k].limb
        felt = () if own is None else _rows(own, limb.dofs)
        held = (*_rows(names[0], [self.solved.trunk[c] for c in limb.carriers]), *_rows(names[1], limb.rows))
        n, inner = len(limb.dofs), (*felt, *(held if moving else ()))
        A = Factor(
            f"back{k}", tuple(range(n)), tuple(range(n - len(felt), n - len(felt) + len(inner))), transposed=True
        )
        self.product(Rows(_rows(names[0], limb.dofs), start), A, Rows(inner, start), stop - start, add)

    def _groups(self, b: Matrix, r: Matrix) -> list[Group]:
        """All columns, in order."""
        s, found, start = self.solved, list[Group](), 0
        for (used, _), run in groupby(range(b.shape[1]), lambda c: self._used(b, r, c)):
            stop = start + len(list(run))
            b_t, r_t = b[list(s.trunk), start:stop], r[:, start:stop]
            filled = {k for l in used for k in s.limbs[l].limb.carriers}
            held = {k for l in used for k in s.limbs[l].limb.rows}
            trunk = tuple(k for k in range(self.t) if k in filled or not self.xp.is_zero(b_t[k : k + 1, :]))
            rows = tuple(k for k in range(self.m) if k in held or not self.xp.is_zero(r_t[k : k + 1, :]))
            found.append(Group(start, stop, used, trunk, rows))
            start = stop
        return found

    def _used(self, b: Matrix, r: Matrix, c: int) -> tuple[tuple[int, ...], bool]:
        """The limbs in which a column is not zero, and whether all of it is."""
        used = tuple(k for k, l in enumerate(self.solved.limbs) if not self.xp.is_zero(b[list(l.limb.dofs), c : c + 1]))
        return used, self.xp.is_zero(b[:, c : c + 1]) and self.xp.is_zero(r[:, c : c + 1])

    def _joined(self, w: str, groups: Sequence[Group], b: Matrix, r: Matrix, names: tuple[str, str]) -> None:
        """[x_t; lam] of groups whose S has the same rows, side by side."""
        s, (start, *_), (_, stop, _, trunk, rows) = self.solved, groups[0], groups[-1]
        S = f"S_{w}{start}"
        self.given[S] = self.xp.vstack([b[[s.trunk[k] for k in trunk], start:stop], -r[list(rows), start:stop]])
        for g in groups:
            for k in g.used:
                l, (name, down) = s.limbs[k].limb, self._reducing(k)
                place = [trunk.index(c) for c in l.carriers] + [len(trunk) + rows.index(c) for c in l.rows]
                A = Factor(name, tuple(down), tuple(range(len(l.dofs))))
                felt = Rows(_rows(f"b_{w}", l.dofs), g.start)
                self.product(Rows(_rows(S, place), g.start - start), A, felt, g.stop - g.start, add=True)
        joined = Rows((*_rows(names[0], s.trunk), *_rows(names[1], range(self.m))), start)
        A = Factor("B", tuple(range(self.t + self.m)), (*trunk, *(self.t + k for k in rows)))
        self.product(joined, A, Rows(_rows(S, range(len(A.columns)))), stop - start)

    def product(self, C: Rows, A: Factor, B: Rows, width: int, add: bool = False) -> None:
        """Note a product, unless nothing comes of it."""
        if C.rows and width and (B.rows or not add):
            self.products.append(Product(C, A, B, width, add))


def _reached(k: int, group: Group) -> tuple[bool, bool]:
    """Whether the columns of a group have entries in limb k, and in [x_t; lam]."""
    return k in group.used, bool(group.trunk or group.rows)


def _rows(name: str, rows: Sequence[int]) -> tuple[tuple[str, int], ...]:
    return tuple((name, k) for k in rows)


def _all(rows: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(range(rows)), tuple(range(columns))


def _runs(dofs: Sequence[int]) -> list[tuple[int, int]]:
    """Where consecutive numbers begin and end."""
    ends = [k for k in range(1, len(dofs)) if dofs[k] != dofs[k - 1] + 1]
    return list(pairwise([0, *ends, len(dofs)])) if dofs else []
