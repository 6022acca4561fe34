"""The columns of derivatives by trunk and limbs, as products of matrices.

With S = [f; N^T b - r], a column of [x_t; lam] is B S, where B is symmetric but for the roots s of weights:

    B = [A^-1 + Q s B_rt,  Q B_rr;  B_rr s Q^T,  B_rr],     B_rr = -s W,    W = E + E R E - 2 E R E R E

(algorithms/derivatives/limb_solution.py has the equations). For every column, which the joints of one limb have in
common, or those of the trunk:

    S = [b_t; -r] + [P^T; s N^T] b_l,      [x_t; lam] = B S,      x_l = M_l^-1 b_l + [P, N] [x_t; lam]

S and b have only the limbs and rows in which their columns are not zero. For derivatives by joint forces b is the unit
matrix, and they are symmetric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from linkwork.algorithms.derivatives.limb_solution import LimbSolution, put
from linkwork.backends import Array
from linkwork.kernels.matrices import Matrix
from linkwork.kernels.products import Factor, Mirror, Product, Rows
from linkwork.kernels.program import Port


class Columns(NamedTuple):
    """Matrices that the start gives, products of them, and what these fill."""

    given: dict[str, Matrix]
    products: list[Product | Mirror]
    further: list[Port]


BAND = 6
"""Rows of symmetric matrices that are computed together, up to the diagonal of the last one."""


def limb_columns(solved: LimbSolution, sides: Mapping[str, tuple[Array, Array]], first: str, second: str) -> Columns:
    """The derivatives d{first}_d{w} and d{second}_d{w}, for right-hand sides b and r of each w."""
    made = _Columns(solved)
    made.inverse()
    for w, (b, r) in sides.items():
        names = f"d{first}_d{w}", f"d{second}_d{w}"
        if w == "tau":
            made.invert(*names)
        else:
            made.solve(w, b, r, names)
    return Columns({n: x for n, x in made.given.items() if x.refs}, made.products, made.further)


class _Columns:
    def __init__(self, solved: LimbSolution) -> None:
        self.solved, self.xp = solved, solved.xp
        self.given: dict[str, Matrix] = {}
        self.products: list[Product | Mirror] = []
        self.further: list[Port] = []
        self.t, self.m = len(solved.trunk), solved.R.shape[0]
        weighed = any(r != s for r, s in zip(solved.roots.refs, (0 * solved.roots + 1).refs, strict=True))
        for k, l in enumerate(solved.limbs):
            self.given[f"back{k}"] = self.xp.vstack([l.PT, l.NT])
            self.given[f"inverse{k}"] = l.inverse
            if weighed:
                roots = solved.roots[list(l.limb.rows), :]
                self.given[f"reduce{k}"] = self.xp.vstack([l.PT, roots * l.NT])
        self.weighed, self.reduce = weighed, "reduce" if weighed else "back"

    def inverse(self) -> None:
        """B."""
        xp, s, t, m = self.xp, self.solved, self.t, self.m
        trunk, rows, roots = range(t), range(t, t + m), s.roots
        self.given["B"] = xp.vstack([xp.hstack([s.A, xp.zeros(t, m)]), xp.hstack([xp.zeros(m, t), -(roots * s.E)])])
        if not m:
            return
        self.given |= {"Q": s.Q, "sQT": roots * s.Q.T}
        if not s.soft:
            ER = s.E * s.R.T
            self.given |= {"E": s.E, "ER": ER, "twice": roots * (ER + ER - xp.eye(m))}
            self.further.append(Port("square", (m, m)))
            self.symmetric("square", 0, Factor("ER", *_all(m, m)), "E")
            if self.weighed:
                square = Rows(_rows("square", range(m)))
                self.product(Rows(_rows("B", rows), t), Factor("twice", *_all(m, m)), square, m, add=True)
            else:
                self.symmetric("B", t, Factor("twice", *_all(m, m)), "square", add=True)
        if t:
            across = Factor("B", tuple(rows), tuple(rows))
            self.product(Rows(_rows("B", rows)), across, Rows(_rows("sQT", range(m))), t)
            self.product(Rows(_rows("B", trunk), t), Factor("Q", *_all(t, m)), Rows(_rows("B", rows), t), m)
            self.product(Rows(_rows("B", trunk)), Factor("Q", *_all(t, m)), Rows(_rows("B", rows)), t, add=True)

    def solve(self, w: str, b: Matrix, r: Matrix, names: tuple[str, str]) -> None:
        """The columns of one input."""
        first, second = names
        self.further += [Port(first, b.shape), Port(second, r.shape)]
        start = 0
        for key, run in groupby(range(b.shape[1]), lambda c: self._held(b, r, c)):
            width = len(list(run))
            self._group(f"{w}{start}", key, b[:, start : start + width], r[:, start : start + width], names, start)
            start += width

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
            self.products.append(Mirror(C, above))

    def invert(self, first: str, second: str) -> None:
        """The columns of joint forces: b is the unit matrix, and what it becomes is symmetric."""
        s, xp, n, t = self.solved, self.xp, sum(len(l.limb.dofs) for l in self.solved.limbs) + self.t, self.t
        self.given[first] = sum((put(l.inverse, l.limb.dofs, l.limb.dofs, (n, n), xp) for l in s.limbs), xp.zeros(n, n))
        self.further.append(Port(second, (self.m, n)))
        above = []
        joined = (*_rows(first, s.trunk), *_rows(second, range(self.m)))
        for k, l in enumerate(s.limbs):
            seen = len(l.limb.carriers) + len(l.limb.rows)
            across = (*l.limb.carriers, *(t + c for c in l.limb.rows))
            for begin, end in _runs(l.limb.dofs):
                to, count = l.limb.dofs[begin], end - begin
                S = Rows(_rows(f"{self.reduce}{k}", range(seen)), begin)
                self.product(Rows(joined, to), Factor("B", tuple(range(t + self.m)), across), S, count)
                for other in range(k, len(s.limbs)):
                    self._back(other, (first, second), to, count, add=other == k)
            above += [(i, j) for o in s.limbs[k + 1 :] for i in l.limb.dofs for j in o.limb.dofs]
            above += [(i, j) for i in l.limb.dofs for j in s.trunk]
        self.given["unit"] = xp.eye(t)
        for begin, end in _runs(s.trunk):
            unit = Rows(_rows("unit", range(t)), begin)
            here = Rows(joined, s.trunk[begin])
            self.product(here, Factor("B", *_all(t + self.m, t)), unit, end - begin)
        if above:
            self.products.append(Mirror(first, tuple(above)))

    def _back(self, k: int, names: tuple[str, str], start: int, width: int, add: bool) -> None:
        """x_l of one limb, with or without its own part there."""
        limb = self.solved.limbs[k].limb
        n, seen = len(limb.dofs), len(limb.carriers) + len(limb.rows)
        held = (*_rows(names[0], [self.solved.trunk[c] for c in limb.carriers]), *_rows(names[1], limb.rows))
        A = Factor(f"back{k}" if seen else f"inverse{k}", *_all(n, seen), transposed=True)
        self.product(Rows(_rows(names[0], limb.dofs), start), A, Rows(held, start), width, add)

    def _held(self, b: Matrix, r: Matrix, c: int) -> tuple[int, ...] | None:
        """The limbs in which a column is not zero; None if all of it is."""
        used = tuple(k for k, l in enumerate(self.solved.limbs) if not self.xp.is_zero(b[list(l.limb.dofs), c : c + 1]))
        if used or not self.xp.is_zero(b[:, c : c + 1]) or not self.xp.is_zero(r[:, c : c + 1]):
            return used
        return None

    def _group(
        self, name: str, used: tuple[int, ...] | None, b: Matrix, r: Matrix, names: tuple[str, str], start: int
    ) -> None:
        """Columns in which the same limbs are not zero, from column `start` on."""
        s, width = self.solved, b.shape[1]
        parts = [(k, l.limb) for k, l in enumerate(s.limbs) if used is not None and k in used]
        # the entries of S
        b_t, filled = b[list(s.trunk), :], {k for _, l in parts for k in l.carriers}
        trunk = [k for k in range(self.t) if k in filled or not self.xp.is_zero(b_t[k : k + 1, :])]
        held = {k for _, l in parts for k in l.rows}
        rows = [k for k in range(self.m) if k in held or not self.xp.is_zero(r[k : k + 1, :])]
        S = f"S_{name}"
        self.given[S] = self.xp.vstack([b_t[trunk, :], -r[rows, :]])
        for k, l in parts:
            own = f"b_{name}_{k}"
            self.given[own] = b[list(l.dofs), :]
            n, seen = len(l.dofs), len(l.carriers) + len(l.rows)
            place = [trunk.index(c) for c in l.carriers] + [len(trunk) + rows.index(c) for c in l.rows]
            self.product(
                Rows(_rows(S, place)),
                Factor(f"{self.reduce}{k}", *_all(seen, n)),
                Rows(_rows(own, range(n))),
                width,
                add=True,
            )
            self.product(
                Rows(_rows(names[0], l.dofs), start),
                Factor(f"inverse{k}", *_all(n, n)),
                Rows(_rows(own, range(n))),
                width,
            )
        joined = Rows((*_rows(names[0], s.trunk), *_rows(names[1], range(self.m))), start)
        across = (*trunk, *(self.t + k for k in rows))
        self.product(
            joined, Factor("B", tuple(range(self.t + self.m)), across), Rows(_rows(S, range(len(across)))), width
        )
        for k in range(len(s.limbs)):
            if used is not None:
                self._back(k, names, start, width, add=k in used)
            else:
                zero = Factor(f"inverse{k}", tuple(range(len(s.limbs[k].limb.dofs))), ())
                self.product(Rows(_rows(names[0], s.limbs[k].limb.dofs), start), zero, Rows(()), width)

    def product(self, C: Rows, A: Factor, B: Rows, width: int, add: bool = False) -> None:
        """Note a product, unless nothing comes of it."""
        if C.rows and width and (B.rows or not add):
            self.products.append(Product(C, A, B, width, add))


def _rows(name: str, rows: Sequence[int]) -> tuple[tuple[str, int], ...]:
    return tuple((name, k) for k in rows)


def _all(rows: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(range(rows)), tuple(range(columns))


def _runs(dofs: Sequence[int]) -> list[tuple[int, int]]:
    """Where consecutive numbers begin and end."""
    ends = [k for k in range(1, len(dofs)) if dofs[k] != dofs[k - 1] + 1]
    return list(pairwise([0, *ends, len(dofs)])) if dofs else []
