"""Programs that end in products of matrices.

    start:      inputs -> outputs, matrices
    products:   C = A B  or  C += A B,   one after another, for rows of these matrices and of further ones

and entries of matrices that are copied instead of computed, or added.

Derivatives by a hundred columns are mostly products. As straight-line code these take megabytes; as loops they take a
few hundred bytes (kernels/codegen/product_code.py). This is what such a program says, interpreted by NumPy, and what it
would be as straight-line code. The rows of B and C, and the rows and columns of A, may be any, in any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwork.kernels.programs.program import Array, Port, Program, broadcast
from linkwork.kernels.programs.schedule import Layout
from linkwork.kernels.programs.simplify import finished
from linkwork.kernels.programs.value_numbering import ZERO, Values
from linkwork.lazy import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable

    import casadi as ca


class Rows(NamedTuple):
    """Rows of matrices, each named by its matrix and number, from column `first` on."""

    rows: tuple[tuple[str, int], ...]
    first: int = 0


class Factor(NamedTuple):
    """The matrix A: entries of a matrix, or of its transpose, in these rows and columns."""

    matrix: str
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    transposed: bool = False

    def entry(self, i: int, k: int) -> tuple[int, int]:
        """The place of A[i, k] in the matrix."""
        return (self.columns[k], self.rows[i]) if self.transposed else (self.rows[i], self.columns[k])


class Product(NamedTuple):
    """C = A B, or with `add` C += A B, in `width` columns. C shares no row with A and B."""

    C: Rows
    A: Factor
    B: Rows
    width: int
    add: bool = False

    @property
    def matrices(self) -> tuple[str, ...]:
        """The matrices that it reads or writes."""
        return (*(n for n, _ in self.C.rows), self.A.matrix, *(n for n, _ in self.B.rows))

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return max(2 * len(self.B.rows) - (not self.add), 0) * len(self.C.rows) * self.width


class Transfer(NamedTuple):
    """Entries of `source` become entries of `target`, or with `add` are added to them.

    Each is given by its row and column in the target, and those in the source.
    """

    target: str
    source: str
    entries: tuple[tuple[int, int, int, int], ...]
    add: bool = False

    @property
    def matrices(self) -> tuple[str, ...]:
        """The matrices that it reads or writes."""
        return (self.target, self.source)

    @property
    def operations(self) -> int:
        """Additions."""
        return len(self.entries) if self.add else 0


def mirror(matrix: str, entries: Iterable[tuple[int, int]]) -> Transfer:
    """Entries (j, i) of a matrix become its entries (i, j)."""
    return Transfer(matrix, matrix, tuple((i, j, j, i) for i, j in entries))


class Part(NamedTuple):
    """Products, and the outputs, by number, that are complete after them."""

    products: Sequence[Product | Transfer]
    done: tuple[int, ...]


STRAIGHT_BATCH, STRAIGHT_PRODUCT = 75_000, 180
"""Up to so many operations batches, and up to so many of a product in the mean one state, are faster in straight-line
code. Measured on a quadruped, no to four feet on the ground, and Cassie: in batches that takes 0.86 to 0.94 of the time
of loops (18 000 to 70 000 operations; Talos, 101 000, 0.97 to 1.04, and three times as long to compile); for one state
0.92 with 172 operations a product, 0.97 with 209, 1.07 with 347. On arms loops take 0.9 with 194."""


class ProductProgram:
    """A start, and products of its matrices; see the module's text.

    `further` are the matrices that only products write; `outputs` are of either kind, in the order that users see.
    """

    rarely = False  # its products are always needed

    def __init__(
        self, start: Program, products: Sequence[Product | Transfer], further: Sequence[Port], outputs: Sequence[str]
    ) -> None:
        self.start, self.products, self.further = start, tuple(products), tuple(further)
        self.matrices = {port.name: port for port in (*start.outputs, *further)}
        self.outputs = tuple(self.matrices[n] for n in outputs)
        self.inputs, self.name = start.inputs, start.name
        self.source: Callable[[], ca.Function] | None = None

    def __repr__(self) -> str:
        return f"ProductProgram({self.name}: {len(self.products)} products)"

    @property
    def digest(self) -> str:
        """A name for the content, and for what becomes loops of it."""
        loops = STRAIGHT_BATCH, STRAIGHT_PRODUCT
        parts = [self.start.digest, repr((self.products, self.further, self.outputs, loops))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def operations(self) -> int:
        """Arithmetic operations, those of the products counted."""
        return self.start.operations + sum(p.operations for p in self.products)

    def counts(self) -> dict[str, dict[str, int]]:
        """Operations by kind, of the start and of the products."""
        products = [p for p in self.products if isinstance(p, Product)]
        multiplied = sum(len(p.C.rows) * len(p.B.rows) * p.width for p in products)
        whole = sum(p.operations for p in self.products)
        return {"start": self.start.counts(), "products": {"mul": multiplied, "add": whole - multiplied}}

    def check(self) -> ProductProgram:
        """Check the start, and that products stay inside of their matrices."""
        self.start.check()
        for p in self.products:
            if isinstance(p, Transfer):
                for name, at in ((p.target, [e[:2] for e in p.entries]), (p.source, [e[2:] for e in p.entries])):
                    rows, columns = shape_of(self.matrices[name])
                    assert all(i < rows and j < columns for i, j in at), "no such entry"
                continue
            assert (len(p.A.rows), len(p.A.columns)) == (len(p.C.rows), len(p.B.rows)), "factors that do not fit"
            rows, columns = shape_of(self.matrices[p.A.matrix])[:: -1 if p.A.transposed else 1]
            assert {*p.A.rows} <= {*range(rows)}, "a row of A that is not there"
            assert {*p.A.columns} <= {*range(columns)}, "a column of A that is not there"
            for part in (p.B, p.C):
                for name, row in part.rows:
                    rows, columns = shape_of(self.matrices[name])
                    assert row < rows, "a row that is not there"
                    assert part.first + p.width <= columns, "columns that are not there"
        return self

    def parts(self, early: bool) -> list[Part]:
        """The products, cut where outputs are complete and, if `early`, can be moved out."""
        last = {n: i for i, p in enumerate(self.products) for n in p.matrices}
        ends = sorted({last[port.name] for port in self.outputs if port.name in last} if early else ())
        cuts = [0, *(i + 1 for i in ends if i + 1 < len(self.products)), len(self.products)]
        return [
            Part(
                self.products[a:b],
                tuple(k for k, port in enumerate(self.outputs) if early and a <= last.get(port.name, -1) < b),
            )
            for a, b in pairwise(cuts)
        ]

    @cached_property
    def unstored(self) -> list[frozenset[int]]:
        """For each matrix of the start, the elements (flat) that are not read before products write them."""
        read, written = ({n: np.zeros(shape_of(p), bool) for n, p in self.matrices.items()} for _ in range(2))

        def reads(name: str, rows: Any, columns: Any) -> None:
            read[name][rows, columns] |= ~written[name][rows, columns]

        for p in self.products:
            if isinstance(p, Transfer):
                for i, j, row, column in p.entries:
                    reads(p.source, row, column)
                    if p.add:
                        reads(p.target, i, j)
                    written[p.target][i, j] = True
                continue
            at = (p.A.columns, p.A.rows) if p.A.transposed else (p.A.rows, p.A.columns)
            reads(p.A.matrix, *np.ix_(*at))
            for part in (p.B, p.C) if p.add else (p.B,):
                for n, row in part.rows:
                    reads(n, row, slice(part.first, part.first + p.width))
            for n, row in p.C.rows:
                written[n][row, p.C.first : p.C.first + p.width] = True
        for port in self.outputs:
            reads(port.name, slice(None), slice(None))
        return [frozenset(np.flatnonzero(~read[p.name]).tolist()) for p in self.start.outputs]

    def places(self, layout: Layout, parts: Sequence[Part]) -> dict[str, int]:
        """The slot at which each matrix begins: those of the start are laid out already.

        Matrices that products write are where the start had its intermediate values, and where matrices of their size
        were that have been moved out.
        """
        known = {n: layout.named[n] for n in layout.named}
        sizes = {port.name: port.size for port in (*self.inputs, *self.matrices.values())}
        place = max((at + layout.padded(sizes[n]) for n, at in known.items()), default=0)
        free = dict[int, list[int]]()
        for part in parts:
            for n in dict.fromkeys(n for p in part.products for n in p.matrices):
                if n not in known:
                    size = layout.padded(sizes[n])
                    if not free.get(size):
                        free[size], place = [place], place + size
                    known[n] = free[size].pop()
            for k in part.done:
                if (port := self.outputs[k]) in self.further:
                    free.setdefault(layout.padded(port.size), []).append(known[port.name])
        for port in self.further:  # those that no product touches
            if port.name not in known:
                known[port.name], place = place, place + layout.padded(port.size)
        layout.size = max(layout.size, place)
        layout.named |= known
        return known

    def interpret(self, *arrays: ArrayLike, dtype: str = "float64") -> tuple[Array, ...]:
        """The products in NumPy: the definition of what every kernel of this program computes."""
        inputs, batch = broadcast(self.inputs, arrays, np.dtype(dtype))
        states = 1 if batch is None else batch
        given = [np.broadcast_to(x, (states, *x.shape[1:])) for x in inputs]
        known = dict(zip((p.name for p in self.start.outputs), self.start.interpret(*given, dtype=dtype), strict=True))
        known |= {p.name: np.zeros((states, *p.shape), dtype) for p in self.further}
        flat = {n: x.reshape(states, *shape_of(self.matrices[n])).copy() for n, x in known.items()}
        for p in self.products:
            if isinstance(p, Transfer):
                for i, j, row, column in p.entries:
                    x, moved = flat[p.target], flat[p.source][:, row, column]
                    x[:, i, j] = x[:, i, j] + moved if p.add else moved
                continue
            here = slice(p.C.first, p.C.first + p.width)
            there = slice(p.B.first, p.B.first + p.width)
            whole = flat[p.A.matrix]
            A = (whole.swapaxes(1, 2) if p.A.transposed else whole)[:, p.A.rows][:, :, p.A.columns]
            B = np.stack([flat[n][:, k, there] for n, k in p.B.rows], 1) if p.B.rows else np.zeros((states, 0, p.width))
            for i, (n, row) in enumerate(p.C.rows):
                found = (A[:, i : i + 1] @ B)[:, 0]
                flat[n][:, row, here] = flat[n][:, row, here] + found if p.add else found
        out = [flat[p.name].reshape(states, *p.shape) for p in self.outputs]
        return tuple(x[0] if batch is None else x for x in out)

    def is_faster_straight(self, lanes: int) -> bool:
        """Whether straight-line code takes less time, for one state or for a batch."""
        if lanes > 1:
            return self.operations <= STRAIGHT_BATCH
        counts = [p.operations for p in self.products if p.operations]
        return sum(counts) <= STRAIGHT_PRODUCT * len(counts)

    def unrolled(self) -> Program:
        """The same function as straight-line code."""
        values = Values()
        signed = values.replay(self.start.nodes, lambda node: 2 * values.number(node))
        known = {p.name: [signed[v] for v in r] for p, r in zip(self.start.outputs, self.start.results, strict=True)}
        known |= {p.name: [ZERO] * p.size for p in self.further}
        unroll(values, known, self.matrices, self.products)
        empty = Program(self.inputs, self.outputs, (), [()] * len(self.outputs), self.name)
        return finished(empty, values, [known[port.name] for port in self.outputs])


def unroll(
    values: Values, known: dict[str, list[int]], matrices: Mapping[str, Port], products: Sequence[Product | Transfer]
) -> None:
    """Products as straight-line code.

    `known` are the entries of all matrices, by name and row by row: those that products write are replaced.
    """
    wide = {n: shape_of(matrices[n])[1] for n in known}
    for p in products:
        if isinstance(p, Transfer):
            for i, j, row, column in p.entries:
                at, moved = i * wide[p.target] + j, known[p.source][row * wide[p.source] + column]
                known[p.target][at] = values.add(known[p.target][at], moved) if p.add else moved
            continue
        A, columns = known[p.A.matrix], wide[p.A.matrix]
        for i, (n, row) in enumerate(p.C.rows):
            for j in range(p.width):
                at = row * wide[n] + p.C.first + j
                total = known[n][at] if p.add else ZERO
                for k, (other, below) in enumerate(p.B.rows):
                    r, c = p.A.entry(i, k)
                    y = known[other][below * wide[other] + p.B.first + j]
                    total = values.add(total, values.mul(A[r * columns + c], y))
                known[n][at] = total


def shape_of(port: Port) -> tuple[int, int]:
    """Rows and columns; a column has one."""
    return port.shape if len(port.shape) == 2 else (port.shape[0], 1)
