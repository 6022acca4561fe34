"""Products of matrices as machine code: small loops over blocks of registers.

Some 24 sums of a product stay in registers, so that an operand that is read serves several of them; as straight-line
code every operand is read again for every operation. In a batch the numbers of a matrix are vectors over states; for
one state, vectors hold columns. Which rows and columns are meant is in tables of offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from linkwork.kernels.codegen.lower import ATTRIBUTES, Shape
from linkwork.kernels.programs.products import Product, Rows, Transfer, shape_of
from linkwork.kernels.programs.program import Port

AVX512 = 64
"""Bytes of a register."""


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

    def holding(self, columns: int) -> Shape:
        """The register for the last so many columns (0: as many as it has): half of one, if that is enough.

        Zen 4 does the two halves of an AVX-512 register one after the other: half of one takes half the time.
        """
        r = self.register
        return Shape(r.scalar, r.lanes // 2) if 0 < columns <= r.lanes // 2 and r.bytes == AVX512 else r

    @property
    def columns_each(self) -> int:
        """Columns in a register."""
        return self.register.lanes // self.number.lanes


def product_module(
    products: Sequence[Product | Transfer],
    matrices: Mapping[str, Port],
    slots: Mapping[str, int],
    tile: Tile,
    name: str = "products",
) -> str:
    """IR of ``products(workspace, workspace)``: all products, for matrices that begin at these slots."""
    size, tables, kinds, calls = tile.number.bytes, _Tables(), dict[_Kind, str](), list[str]()
    wide = {n: shape_of(p)[1] for n, p in matrices.items()}

    def rows(part: Rows) -> list[int]:
        return [size * (slots[n] + row * wide[n] + part.first) for n, row in part.rows]

    for p in products:
        if isinstance(p, Transfer):
            pairs = [
                size * (slots[n] + i * wide[n] + j)
                for to_i, to_j, from_i, from_j in p.entries
                for n, i, j in ((p.target, to_i, to_j), (p.source, from_i, from_j))
            ]
            table = f"ptr getelementptr (i64, ptr @offsets, i64 {tables.place(pairs)})"
            loop = "@add" if p.add else "@copy"
            calls += [f"  call void {loop}(ptr %ws, {table}, i64 {len(p.entries)})"] if p.entries else []
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
    numbers = tables.numbers or [0]
    return f"""
@offsets = internal constant [{len(numbers)} x i64] [{", ".join(f"i64 {x}" for x in numbers)}], align 64
{"".join(_declared(r) for r in dict.fromkeys((tile.register, tile.holding(1))))}
{functions}
{_transfer(tile, add=False)}
{_transfer(tile, add=True)}
define void @{name}(ptr %ws, ptr %again) #0 {{
entry:
{chr(10).join(calls)}
  ret void
}}
{ATTRIBUTES}"""


def _declared(r: Shape) -> str:
    """The operations on registers of this shape."""
    return f"""
declare {r.vector} @llvm.fmuladd.{r.suffix}({r.vector}, {r.vector}, {r.vector})
declare {r.vector} @llvm.masked.load.{r.suffix}.p0(ptr, i32, {r.mask}, {r.vector})
declare void @llvm.masked.store.{r.suffix}.p0({r.vector}, ptr, i32, {r.mask})"""


def _transfer(tile: Tile, add: bool) -> str:
    """A function that copies or adds numbers, by a table of where to and where from."""
    v, n = tile.number.vector, tile.number.bytes
    added = (
        f"""  %old = load {v}, ptr %target, align {n}
  %y = fadd {v} %old, %x"""
        if add
        else ""
    )
    return f"""
define internal void @{"add" if add else "copy"}(ptr %ws, ptr %table, i64 %count) noinline #0 {{
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
{added}
  store {v} {"%y" if add else "%x"}, ptr %target, align {n}
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
    number, register = tile.number, tile.register
    rows, columns = range(kind.rows), range(kind.columns)
    sums = [(i, j) for i in rows for j in columns]
    spread = register.lanes > number.lanes
    across = [register] * (kind.columns - 1) + [tile.holding(kind.last)]
    mask = ", ".join(f"i1 {'true' if lane < kind.last else 'false'}" for lane in range(across[-1].lanes))

    def masked(j: int) -> bool:
        return j == kind.columns - 1 and 0 < kind.last < across[j].lanes

    def load(to: str, place: str, j: int) -> str:
        r = across[j]
        if masked(j):
            arguments = f"ptr {place}, i32 {number.size}, {r.mask} <{mask}>, {r.vector} zeroinitializer"
            return f"  {to} = call {r.vector} @llvm.masked.load.{r.suffix}.p0({arguments})"
        return f"  {to} = load {r.vector}, ptr {place}, align {number.bytes}"

    def store(x: str, place: str, j: int) -> str:
        r = across[j]
        if masked(j):
            arguments = f"{r.vector} {x}, ptr {place}, i32 {number.size}, {r.mask} <{mask}>"
            return f"  call void @llvm.masked.store.{r.suffix}.p0({arguments})"
        return f"  store {r.vector} {x}, ptr {place}, align {number.bytes}"

    before, inside, after = list[str](), list[str](), list[str]()
    for i in rows:
        before += [
            f"  %rc{i} = getelementptr i64, ptr %cs, i64 {i}", f"  %oc{i} = load i64, ptr %rc{i}, align 8",
            f"  %c{i} = getelementptr i8, ptr %from, i64 %oc{i}",
            f"  %ra{i} = getelementptr i64, ptr %as, i64 {i}", f"  %oa{i} = load i64, ptr %ra{i}, align 8",
            f"  %a{i} = getelementptr i8, ptr %ws, i64 %oa{i}",
        ]  # fmt: skip
        inside.append(f"  %pa{i} = getelementptr i8, ptr %a{i}, i64 %ok")
        if not spread:
            inside.append(f"  %xa{i}_{number.lanes} = load {number.vector}, ptr %pa{i}, align {number.bytes}")
            continue
        inside.append(f"  %na{i} = load {number.scalar}, ptr %pa{i}, align {number.size}")
        for r in dict.fromkeys(across):
            v, one = r.vector, f"%ia{i}_{r.lanes}"
            inside += [
                f"  {one} = insertelement {v} poison, {number.scalar} %na{i}, i32 0",
                f"  %xa{i}_{r.lanes} = shufflevector {v} {one}, {v} poison, <{r.lanes} x i32> zeroinitializer",
            ]
    for j in columns:
        inside += [f"  %pb{j} = getelementptr i8, ptr %b, i64 {j * register.bytes}", load(f"%xb{j}", f"%pb{j}", j)]
        v, fma = across[j].vector, f"@llvm.fmuladd.{across[j].suffix}"
        inside += [
            f"  %y{i}_{j} = call {v} {fma}({v} %xa{i}_{across[j].lanes}, {v} %xb{j}, {v} %s{i}_{j})" for i in rows
        ]
    for i, j in sums:
        before.append(f"  %pc{i}_{j} = getelementptr i8, ptr %c{i}, i64 {j * register.bytes}")
        if kind.add:
            before.append(load(f"%z{i}_{j}", f"%pc{i}_{j}", j))
        after.append(store(f"%e{i}_{j}", f"%pc{i}_{j}", j))
    zero = {(i, j): f"%z{i}_{j}" if kind.add else "zeroinitializer" for i, j in sums}
    phi = {(i, j): f"phi {across[j].vector} [{zero[i, j]}, %rows], [%y{i}_{j}, %loop]" for i, j in sums}
    heads = [f"  %s{i}_{j} = {phi[i, j]}" for i, j in sums]
    ends = [f"  %e{i}_{j} = {phi[i, j]}" for i, j in sums]
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
