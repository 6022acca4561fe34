"""Symmetric products of sparse matrices for one state: registers hold columns.

    C = A B^T,    A = B D,    an output of a program

The inverse of a mass matrix ends in such a product, with half of its operations. In a batch lanes are states, and an
entry is scalar code like everything else. For one state that is one instruction for every product, and most of the
time goes into fetching these. Here a register holds w entries of a row of C: blocks of w x w on and below the diagonal
are sums over the columns k in which both factors have entries, and are stored twice, as they are and transposed, in
the user's memory. The last block overlaps the one before, so that all are full.

A start in straight-line code computes the entries of A and B. An element of the output that is not the product, because
a guard was added to it, is computed there, too: the `rest`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from linkwork.kernels.codegen.lower import ATTRIBUTES, STRAIGHT, Shape, exchanged
from linkwork.kernels.programs.matrices import Square
from linkwork.kernels.programs.program import Node, Port, Program
from linkwork.kernels.programs.simplify import finished
from linkwork.kernels.programs.value_numbering import Values

LEFT, RIGHT, REST = "left factor", "right factor", "rest"
"""The last outputs of a start; those before are the outputs of its program that are no product."""

FEWEST = 50
"""Products from which this takes less time: 0.96 of that of scalar code with 56 (an arm of six joints), 0.85 with 364
(a chain of twelve), 0.73 with 816 (a quadruped), 0.83 with 3964 (a humanoid), and as much with 35."""

GUARDED = 4
"""How many elements may be the rest."""


class Squared(NamedTuple):
    """A program whose output `port` is a product.

    Row i of A and B has entries in the columns `pattern[i]`; the start gives them row by row.
    """

    start: Program
    port: int
    pattern: tuple[tuple[int, ...], ...]
    rest: tuple[int, ...]

    def fills(self, width: int) -> bool:
        """Whether there are as many rows as a register has lanes, and that is several."""
        return 1 < width <= len(self.pattern)

    @property
    def products(self) -> int:
        """Those of entries on and below the diagonal."""
        found = [set(row) for row in self.pattern]
        return sum(len(a & b) for i, a in enumerate(found) for b in found[: i + 1])

    def packed(self, width: int) -> tuple[Program, dict[tuple[int, int], int]]:
        """The start with B as vectors of `width` rows, and where each is, by the first row of its block and k."""
        nodes: list[Node] = [*self.start.nodes, ("const", 0.0)]
        *others, left, right, rest = self.start.results
        at = dict(zip(((i, k) for i, row in enumerate(self.pattern) for k in row), right, strict=True))
        vectors: list[int] = []
        places: dict[tuple[int, int], int] = {}
        for first in blocks(len(self.pattern), width):
            rows = range(first, first + width)
            for k in sorted({k for i in rows for k in self.pattern[i]}):
                places[first, k] = len(vectors)
                vectors += [at.get((i, k), len(nodes) - 1) for i in rows]
        ports = [Port(p.name, (len(vectors),)) if p.name == RIGHT else p for p in self.start.outputs]
        return Program(self.start.inputs, ports, nodes, [*others, left, vectors, rest], self.start.name), places


def squared(
    program: Program, values: Values, results: Sequence[Sequence[int]], known: Sequence[Square]
) -> Squared | None:
    """A program with these results, by the first of the `known` products that is one of them, if large."""
    for square in known:
        for port, refs in enumerate(results):
            if len(refs) != len(square.refs):
                continue
            rest = tuple(e for e, (x, y) in enumerate(zip(refs, square.refs, strict=True)) if x != y)
            if len(rest) > GUARDED:
                continue
            pattern = tuple(tuple(sorted(row)) for row in square.left)
            left, right = _signed(square, pattern)
            parts = {LEFT: left, RIGHT: right, REST: [refs[e] for e in rest]}
            others = [k for k in range(len(results)) if k != port]
            ports = [*(program.outputs[k] for k in others), *(Port(n, (len(x),)) for n, x in parts.items())]
            made = Squared(Program(program.inputs, ports, (), [()] * len(ports), program.name), port, pattern, rest)
            if made.products >= FEWEST:
                start = finished(made.start, values, [*(results[k] for k in others), *parts.values()])
                return made._replace(start=start)
    return None


def _signed(square: Square, pattern: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """The references of both factors, columns negated in both where that leaves fewer to negate."""
    negative: dict[int, int] = {}
    for row in square.left:
        for k, x in row.items():
            negative[k] = negative.get(k, 0) + (1 if x & 1 else -1)
    left, right = (
        [part[i][k] ^ (negative[k] > 0) for i, row in enumerate(pattern) for k in row]
        for part in (square.left, square.right)
    )
    return left, right


def blocks(count: int, width: int) -> list[int]:
    """Where blocks of rows begin: the last one ends with the last row."""
    return sorted({min(first, count - width) for first in range(0, count, width)})


def square_module(
    square: Squared, slots: Mapping[str, int], places: Mapping[tuple[int, int], int], shape: Shape, across: int
) -> str:
    """IR of ``square(C, workspace)``, which returns whether any element is not a number.

    The factors begin at these slots; so many blocks side by side are computed together.
    """
    return STRAIGHT + _Blocks(square, slots, places, shape).module(across)


class _Blocks:
    def __init__(
        self, square: Squared, slots: Mapping[str, int], places: Mapping[tuple[int, int], int], shape: Shape
    ) -> None:
        self.slots, self.places, self.shape, self.rest = slots, places, shape, square.rest
        self.pattern, self.n, self.w = [set(row) for row in square.pattern], len(square.pattern), shape.lanes
        entries = ((i, k) for i, row in enumerate(square.pattern) for k in row)
        self.left = {entry: slots[LEFT] + e for e, entry in enumerate(entries)}
        self.lines: list[str] = []
        self.checks = ["zeroinitializer"] * self.w  # sums of zero times all elements
        self.fresh = 0

    def module(self, across: int) -> str:
        firsts = blocks(self.n, self.w)
        for b, row in enumerate(firsts):
            for begin in range(0, b + 1, across):
                self.sums(row, firsts[begin : min(begin + across, b + 1)])
        for e, place in enumerate(self.rest):
            x = self.load(self.shape.scalar, self.slots[REST] + e)
            self.store(self.shape.scalar, x, place)
            self.check(0, self.spread(x))
        v, suffix, total = self.shape.vector, self.shape.suffix, self.checks[0]
        for check in self.checks[1:]:
            total = self.emit(f"fadd {v} {total}, {check}")
        which = self.emit(f"fcmp uno {v} {total}, {total}")
        found = self.emit(f"call i1 @llvm.vector.reduce.or.v{self.w}i1({self.shape.mask} {which})")
        body = "\n".join(self.lines)
        return f"""
declare {v} @llvm.fmuladd.{suffix}({v}, {v}, {v})
define i1 @square(ptr noalias %to, ptr noalias readonly %from) #0 {{
{body}
  ret i1 {found}
}}
{ATTRIBUTES}"""

    def sums(self, row: int, columns: Sequence[int]) -> None:
        """The blocks of w rows that begin in these columns."""
        w = self.w
        sums = {(i, j): "zeroinitializer" for j in columns for i in range(w)}
        for k in sorted(set().union(*self.pattern[row : row + w])):
            right = {
                j: self.load(self.shape.vector, self.slots[RIGHT] + self.places[j, k])
                for j in columns
                if (j, k) in self.places
            }
            for i in range(w) if right else ():
                if k in self.pattern[row + i]:
                    a = self.spread(self.load(self.shape.scalar, self.left[row + i, k]))
                    for j, b in right.items():
                        sums[i, j] = self.fused(a, b, sums[i, j])
        for j in columns:
            self.put(row, j, [sums[i, j] for i in range(w)])

    def put(self, row: int, column: int, x: list[str]) -> None:
        """Store a block and its transpose; of one on the diagonal, what is on and below that."""
        v, w, turned = self.shape.vector, self.w, x
        for round_ in range(w.bit_length() - 1):
            turned = exchanged(self.shape, turned, 1 << round_, self.emit)
        for i in range(w):
            self.check(i, x[i])
            below = x[i]
            if row == column:
                lanes = ", ".join(f"i32 {j if j <= i else w + j}" for j in range(w))
                below = self.emit(f"shufflevector {v} {x[i]}, {v} {turned[i]}, <{w} x i32> <{lanes}>")
            self.store(v, below, (row + i) * self.n + column)
            if row != column:
                self.store(v, turned[i], (column + i) * self.n + row)

    def check(self, i: int, x: str) -> None:
        self.checks[i] = self.fused(x, "zeroinitializer", self.checks[i])

    def fused(self, a: str, b: str, c: str) -> str:
        v = self.shape.vector
        return self.emit(f"call {v} @llvm.fmuladd.{self.shape.suffix}({v} {a}, {v} {b}, {v} {c})")

    def load(self, kind: str, slot: int) -> str:
        place = self.emit(f"getelementptr {self.shape.scalar}, ptr %from, i64 {slot}")
        return self.emit(f"load {kind}, ptr {place}, align {self.shape.size}")

    def store(self, kind: str, x: str, element: int) -> None:
        place = self.emit(f"getelementptr {self.shape.scalar}, ptr %to, i64 {element}")
        self.lines.append(f"  store {kind} {x}, ptr {place}, align {self.shape.size}")

    def spread(self, number: str) -> str:
        """A number in all lanes."""
        v = self.shape.vector
        one = self.emit(f"insertelement {v} poison, {self.shape.scalar} {number}, i32 0")
        return self.emit(f"shufflevector {v} {one}, {v} poison, <{self.w} x i32> zeroinitializer")

    def emit(self, code: str) -> str:
        self.fresh += 1
        self.lines.append(f"  %v{self.fresh} = {code}")
        return f"%v{self.fresh}"
