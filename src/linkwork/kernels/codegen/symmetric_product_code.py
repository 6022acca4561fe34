"""Symmetric products of sparse matrices for one state as LLVM IR: blocks of registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwork.kernels.codegen.lower import ATTRIBUTES, STRAIGHT, Shape, exchanged
from linkwork.kernels.programs.symmetric_products import LEFT, REST, RIGHT, Squared, blocks


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
