"""Programs that end in products of matrices: a start, then small loops over blocks of registers.

    start:      inputs -> outputs, matrices
    products:   C = A B  or  C += A B,   one after another, for rows of these matrices and of further ones

and entries of symmetric matrices that are copied instead of computed.

Derivatives by a hundred columns are mostly products. As straight-line code these take megabytes, and every operand is
read again for every operation; as loops they take a few hundred bytes, and some 24 sums stay in registers, so that an
operand that is read serves several of them. In a batch the numbers of a matrix are vectors over states; for one state,
vectors hold columns.

The rows of B and C, and the rows and columns of A, may be any, in any order: which they are is in tables of offsets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwork.kernels.lower import ATTRIBUTES, Shape
from linkwork.kernels.program import Array, Port, Program, broadcast
from linkwork.kernels.schedule import Layout
from linkwork.kernels.simplify import finished
from linkwork.kernels.values import ZERO, Values
from linkwork.lazy import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


class Mirror(NamedTuple):
    """Entries (i, j) of a matrix become its entries (j, i)."""

    matrix: str
    entries: tuple[tuple[int, int], ...]

    @property
    def matrices(self) -> tuple[str, ...]:
        """The matrix."""
        return (self.matrix,)

    @property
    def operations(self) -> int:
        """None."""
        return 0


class Part(NamedTuple):
    """Products, and the outputs, by number, that are complete after them."""

    products: Sequence[Product | Mirror]
    done: tuple[int, ...]


class ProductProgram:
    """A start, and products of its matrices; see the module's text.

    `further` are the matrices that only products write; `outputs` are of either kind, in the order that users see.
    """

    rarely = False  # its products are always needed

    def __init__(
        self, start: Program, products: Sequence[Product | Mirror], further: Sequence[Port], outputs: Sequence[str]
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
        """A name for the content."""
        parts = [self.start.digest, repr((self.products, self.further, self.outputs))]
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
            if isinstance(p, Mirror):
                assert all(max(at) < min(_shape(self.matrices[p.matrix])) for at in p.entries), "no such entry"
                continue
            assert (len(p.A.rows), len(p.A.columns)) == (len(p.C.rows), len(p.B.rows)), "factors that do not fit"
            rows, columns = _shape(self.matrices[p.A.matrix])[:: -1 if p.A.transposed else 1]
            assert {*p.A.rows} <= {*range(rows)}, "a row of A that is not there"
            assert {*p.A.columns} <= {*range(columns)}, "a column of A that is not there"
            for part in (p.B, p.C):
                for name, row in part.rows:
                    rows, columns = _shape(self.matrices[name])
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
        """For each matrix of the start, the elements (flat) that nobody reads before products write them."""
        read, written = ({n: np.zeros(_shape(p), bool) for n, p in self.matrices.items()} for _ in range(2))

        def reads(name: str, rows: Any, columns: Any) -> None:
            read[name][rows, columns] |= ~written[name][rows, columns]

        for p in self.products:
            if isinstance(p, Mirror):
                for i, j in p.entries:
                    reads(p.matrix, j, i)
                    written[p.matrix][i, j] = True
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
        flat = {n: x.reshape(states, *_shape(self.matrices[n])).copy() for n, x in known.items()}
        for p in self.products:
            if isinstance(p, Mirror):
                for i, j in p.entries:
                    flat[p.matrix][:, i, j] = flat[p.matrix][:, j, i]
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

    def unrolled(self) -> Program:
        """The same function as straight-line code."""
        values = Values()
        signed = values.replay(self.start.nodes, lambda node: 2 * values.number(node))
        known = {p.name: [signed[v] for v in r] for p, r in zip(self.start.outputs, self.start.results, strict=True)}
        known |= {p.name: [ZERO] * p.size for p in self.further}
        wide = {n: _shape(p)[1] for n, p in self.matrices.items()}
        for p in self.products:
            if isinstance(p, Mirror):
                whole = known[p.matrix]
                for i, j in p.entries:
                    whole[i * wide[p.matrix] + j] = whole[j * wide[p.matrix] + i]
                continue
            for i, (n, row) in enumerate(p.C.rows):
                for j in range(p.width):
                    at = row * wide[n] + p.C.first + j
                    total = known[n][at] if p.add else ZERO
                    for k, (other, below) in enumerate(p.B.rows):
                        r, c = p.A.entry(i, k)
                        x, y = (
                            known[p.A.matrix][r * wide[p.A.matrix] + c],
                            known[other][below * wide[other] + p.B.first + j],
                        )
                        total = values.add(total, values.mul(x, y))
                    known[n][at] = total
        empty = Program(self.inputs, self.outputs, (), [()] * len(self.outputs), self.name)
        return finished(empty, values, [known[port.name] for port in self.outputs])


def _shape(port: Port) -> tuple[int, int]:
    """Rows and columns; a column has one."""
    return port.shape if len(port.shape) == 2 else (port.shape[0], 1)


class Tile(NamedTuple):
    """How products are computed: the shape of a matrix's numbers and of registers, and a block of sums."""

    number: Shape
    register: Shape
    rows: int
    columns: int

    @staticmethod
    def of(number: Shape, lanes: int, registers: int) -> Tile:
        """For numbers of this shape on a processor with `registers` registers of `lanes` numbers."""
        many = registers >= 32
        if number.lanes > 1:
            return Tile(number, number, *((4, 6) if many else (3, 3)))
        return Tile(number, Shape(number.scalar, lanes), *((8, 3) if many else (4, 2)))

    @property
    def columns_each(self) -> int:
        """Columns in a register."""
        return self.register.lanes // self.number.lanes


def product_module(
    products: Sequence[Product | Mirror],
    matrices: Mapping[str, Port],
    slots: Mapping[str, int],
    tile: Tile,
    name: str = "products",
) -> str:
    """IR of ``products(workspace, workspace)``: all products, for matrices that begin at these slots."""
    size, tables, kinds, calls = tile.number.bytes, _Tables(), dict[_Kind, str](), list[str]()
    wide = {n: _shape(p)[1] for n, p in matrices.items()}

    def rows(part: Rows) -> list[int]:
        return [size * (slots[n] + row * wide[n] + part.first) for n, row in part.rows]

    for p in products:
        if isinstance(p, Mirror):
            pairs = [(i * wide[p.matrix] + j, j * wide[p.matrix] + i) for i, j in p.entries]
            at = tables.place([size * (slots[p.matrix] + k) for pair in pairs for k in pair])
            table = f"ptr getelementptr (i64, ptr @offsets, i64 {at})"
            calls += [f"  call void @mirror(ptr %ws, {table}, i64 {len(pairs)})"] if pairs else []
            continue
        down, across = (size * wide[p.A.matrix], size)[:: -1 if p.A.transposed else 1]
        start = size * slots[p.A.matrix]
        at_C, at_A = tables.place(rows(p.C)), tables.place([start + down * i for i in p.A.rows])
        at_k, at_B = tables.place([across * k for k in p.A.columns]), tables.place(rows(p.B))
        registers, left = -(-p.width // tile.columns_each), p.width % tile.columns_each
        for first, columns in _cut(registers, tile.columns):
            last = left if first + columns == registers else 0
            done = 0
            for count, blocks in _runs(len(p.C.rows), tile.rows):
                kind = _Kind(count, columns, last, p.add)
                block = kinds.setdefault(kind, f"@block{len(kinds)}")
                places = ", ".join(
                    f"ptr getelementptr (i64, ptr @offsets, i64 {k})" for k in (at_C + done, at_A + done, at_k, at_B)
                )
                calls.append(
                    f"  call void {block}(ptr %ws, {places}, i64 {blocks}, i64 {len(p.B.rows)}, "
                    f"i64 {first * tile.columns_each * size})"
                )
                done += count * blocks
    functions = "\n".join(_block(block, kind, tile) for kind, block in kinds.items())
    r, numbers = tile.register, tables.numbers or [0]
    return f"""
@offsets = internal constant [{len(numbers)} x i64] [{", ".join(f"i64 {x}" for x in numbers)}], align 64
declare {r.vector} @llvm.fmuladd.{r.suffix}({r.vector}, {r.vector}, {r.vector})
declare {r.vector} @llvm.masked.load.{r.suffix}.p0(ptr, i32, {r.mask}, {r.vector})
declare void @llvm.masked.store.{r.suffix}.p0({r.vector}, ptr, i32, {r.mask})
{functions}
{_mirror(tile)}
define void @{name}(ptr %ws, ptr %again) #0 {{
entry:
{chr(10).join(calls)}
  ret void
}}
{ATTRIBUTES}"""


def _mirror(tile: Tile) -> str:
    """A function that copies numbers, by a table of where to and where from."""
    v, n = tile.number.vector, tile.number.bytes
    return f"""
define internal void @mirror(ptr %ws, ptr %table, i64 %count) noinline #0 {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%k1, %loop]
  %pair = getelementptr [2 x i64], ptr %table, i64 %k
  %second = getelementptr i64, ptr %pair, i64 1
  %to = load i64, ptr %pair, align 8
  %from = load i64, ptr %second, align 8
  %source = getelementptr i8, ptr %ws, i64 %from
  %target = getelementptr i8, ptr %ws, i64 %to
  %x = load {v}, ptr %source, align {n}
  store {v} %x, ptr %target, align {n}
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}"""


class _Tables:
    """One list of numbers with all tables in it, equal ones once."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.known: dict[tuple[int, ...], int] = {}

    def place(self, table: Sequence[int]) -> int:
        key = tuple(table)
        if key not in self.known:
            self.known[key] = len(self.numbers)
            self.numbers += key
        return self.known[key]


class _Kind(NamedTuple):
    """A block of sums: rows, registers across, columns in the last one (0: all), whether it adds to C."""

    rows: int
    columns: int
    last: int
    add: bool


def _cut(count: int, most: int) -> list[tuple[int, int]]:
    """Parts of at most `most` as equal as possible: begin and size of each."""
    parts = -(-count // most)
    bounds = [count * k // parts for k in range(parts + 1)] if parts else []
    return [(a, b - a) for a, b in pairwise(bounds)]


def _runs(count: int, most: int) -> list[tuple[int, int]]:
    """The same as sizes and how many parts are of that size."""
    sizes = [size for _, size in _cut(count, most)]
    return [(size, sizes.count(size)) for size in sorted(set(sizes))]


def _block(name: str, kind: _Kind, tile: Tile) -> str:
    """A function that computes ``blocks`` blocks of rows, one after another.

    Tables ``c`` and ``a`` have the rows of C and A, ``k`` and ``b`` the columns of A and the rows of B.
    """
    number, register, v = tile.number, tile.register, tile.register.vector
    rows, columns = range(kind.rows), range(kind.columns)
    sums = [(i, j) for i in rows for j in columns]
    spread = register.lanes > number.lanes
    mask = ", ".join(f"i1 {'true' if lane < kind.last else 'false'}" for lane in range(register.lanes))

    def masked(j: int) -> bool:
        return bool(kind.last) and j == kind.columns - 1

    def load(to: str, place: str, j: int) -> str:
        if masked(j):
            arguments = f"ptr {place}, i32 {number.size}, {register.mask} <{mask}>, {v} zeroinitializer"
            return f"  {to} = call {v} @llvm.masked.load.{register.suffix}.p0({arguments})"
        return f"  {to} = load {v}, ptr {place}, align {number.bytes}"

    def store(x: str, place: str, j: int) -> str:
        if masked(j):
            arguments = f"{v} {x}, ptr {place}, i32 {number.size}, {register.mask} <{mask}>"
            return f"  call void @llvm.masked.store.{register.suffix}.p0({arguments})"
        return f"  store {v} {x}, ptr {place}, align {number.bytes}"

    before, inside, after = list[str](), list[str](), list[str]()
    for i in rows:
        before += [
            f"  %rc{i} = getelementptr i64, ptr %cs, i64 {i}", f"  %oc{i} = load i64, ptr %rc{i}, align 8",
            f"  %c{i} = getelementptr i8, ptr %from, i64 %oc{i}",
            f"  %ra{i} = getelementptr i64, ptr %as, i64 {i}", f"  %oa{i} = load i64, ptr %ra{i}, align 8",
            f"  %a{i} = getelementptr i8, ptr %ws, i64 %oa{i}",
        ]  # fmt: skip
        inside.append(f"  %pa{i} = getelementptr i8, ptr %a{i}, i64 %ok")
        if spread:
            inside += [
                f"  %na{i} = load {number.scalar}, ptr %pa{i}, align {number.size}",
                f"  %ia{i} = insertelement {v} poison, {number.scalar} %na{i}, i32 0",
                f"  %xa{i} = shufflevector {v} %ia{i}, {v} poison, <{register.lanes} x i32> zeroinitializer",
            ]
        else:
            inside.append(f"  %xa{i} = load {v}, ptr %pa{i}, align {number.bytes}")
    for j in columns:
        inside += [f"  %pb{j} = getelementptr i8, ptr %b, i64 {j * register.bytes}", load(f"%xb{j}", f"%pb{j}", j)]
        inside += [
            f"  %y{i}_{j} = call {v} @llvm.fmuladd.{register.suffix}({v} %xa{i}, {v} %xb{j}, {v} %s{i}_{j})"
            for i in rows
        ]
    for i, j in sums:
        before.append(f"  %pc{i}_{j} = getelementptr i8, ptr %c{i}, i64 {j * register.bytes}")
        if kind.add:
            before.append(load(f"%z{i}_{j}", f"%pc{i}_{j}", j))
        after.append(store(f"%e{i}_{j}", f"%pc{i}_{j}", j))
    zero = {(i, j): f"%z{i}_{j}" if kind.add else "zeroinitializer" for i, j in sums}
    heads = [f"  %s{i}_{j} = phi {v} [{zero[i, j]}, %rows], [%y{i}_{j}, %loop]" for i, j in sums]
    ends = [f"  %e{i}_{j} = phi {v} [{zero[i, j]}, %rows], [%y{i}_{j}, %loop]" for i, j in sums]
    line = "\n".join
    return f"""
define internal void {name}(ptr %ws, ptr %c, ptr %a, ptr %k, ptr %bs, i64 %blocks, i64 %inner, i64 %column)
    noinline #0 {{
entry:
  %from = getelementptr i8, ptr %ws, i64 %column
  %some = icmp ne i64 %inner, 0
  br label %rows
rows:
  %n = phi i64 [0, %entry], [%n1, %end]
  %first = mul i64 %n, {kind.rows}
  %cs = getelementptr i64, ptr %c, i64 %first
  %as = getelementptr i64, ptr %a, i64 %first
{line(before)}
  br i1 %some, label %loop, label %end
loop:
  %m = phi i64 [0, %rows], [%m1, %loop]
{line(heads)}
  %tk = getelementptr i64, ptr %k, i64 %m
  %ok = load i64, ptr %tk, align 8
  %tb = getelementptr i64, ptr %bs, i64 %m
  %ob = load i64, ptr %tb, align 8
  %b = getelementptr i8, ptr %from, i64 %ob
{line(inside)}
  %m1 = add i64 %m, 1
  %more = icmp ult i64 %m1, %inner
  br i1 %more, label %loop, label %end
end:
{line(ends)}
{line(after)}
  %n1 = add i64 %n, 1
  %again = icmp ult i64 %n1, %blocks
  br i1 %again, label %rows, label %exit
exit:
  ret void
}}"""
