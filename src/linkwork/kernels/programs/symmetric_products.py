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

from collections.abc import Sequence
from typing import NamedTuple

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
