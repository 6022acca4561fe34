"""Rows to lanes and back, as LLVM IR.

``take_in(port, stride, tile, n, row, end)`` reads W rows of n elements from a port of the user's and stores n vectors
of W lanes, one after another; ``take_out`` is its inverse, and returns whether any output is not a number. Whole tiles
are transposed in registers, W x W elements at a time, the last block of a row overlapping the one before; the last,
incomplete tile is moved element by element.

Outputs of straight programs are stored by their chunks (:mod:`linkwork.kernels.programs.output_stores`):
``find_rows(port, stride, rows, row, end)`` finds the rows of a tile, and ``blank`` writes their blocks of zeros.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from linkwork.kernels.codegen.lower import ATTRIBUTES, Shape, exchanged, watched
from linkwork.kernels.programs.output_stores import POINTER

WATCHES = 4
"""Independent sums that detect NaN: as many as multiply-adds are in flight at a time."""

_PARAMETERS = "ptr %port, i64 %stride, ptr %tile, i64 %n, i64 %row, i64 %end"
ROWS = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def transposition(shape: Shape) -> str:
    """What drivers call: ``take_in`` and ``take_out``; with one lane, ``odd``.

    W rows of n elements to n vectors of W lanes, and back.
    """
    if shape.lanes == 1:
        return f"{ROWS}declare i1 @odd(ptr, i64)\n"
    types = "ptr, i64, ptr, i64, i64, i64"
    return f"declare void @take_in({types})\ndeclare i1 @take_out({types})\n{_masked(shape)}"


def transposition_module(shape: Shape) -> str:
    """These functions themselves: the same for all kernels of a shape, so that they are compiled once."""
    if shape.lanes == 1:
        return _odd(shape) + ATTRIBUTES
    moves = _take_in(shape) + _take_out(shape) + _slow(shape, True) + _slow(shape, False)
    return moves + _masked(shape) + ATTRIBUTES


def _masked(shape: Shape) -> str:
    v, m, a = shape.vector, shape.mask, shape.suffix
    return f"""
declare {v} @llvm.masked.load.{a}.p0(ptr, i32, {m}, {v})
declare void @llvm.masked.store.{a}.p0({v}, ptr, i32, {m})
declare {v} @llvm.fmuladd.{a}({v}, {v}, {v})
declare i1 @llvm.vector.reduce.or.v{shape.lanes}i1({m})
"""


def _odd(shape: Shape) -> str:
    """``odd(x, n)``: whether any of n numbers in a row is NaN or infinite.

    Their exponent is all ones: adding one in its last place overflows into the sign.
    """
    size, n = shape.size, 128 // shape.size
    bits, fraction = (f"i{8 * size}", 52 if size == 8 else 23)
    one = 1 << fraction
    exponent = (1 << (8 * size - 1)) - one
    v = f"<{n} x {bits}>"
    return f"""
declare {bits} @llvm.vector.reduce.or.v{n}{bits}({v})

define i1 @odd(ptr %x, i64 %n) #0 {{
entry:
  %few = icmp ult i64 %n, {n}
  %last = sub i64 %n, {n}
  br i1 %few, label %singly, label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  %all = phi {v} [zeroinitializer, %entry], [%all1, %loop]
  %place = getelementptr {shape.scalar}, ptr %x, i64 %k
  %word = load {v}, ptr %place, align {size}
  %part = and {v} %word, splat ({bits} {exponent})
  %over = add {v} %part, splat ({bits} {one})
  %all1 = or {v} %all, %over
  %k1 = add i64 %k, {n}
  %beyond = icmp ugt i64 %k1, %last
  %next = select i1 %beyond, i64 %last, i64 %k1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %loop, label %joined
joined:
  %any = call {bits} @llvm.vector.reduce.or.v{n}{bits}({v} %all1)
  %odd = icmp slt {bits} %any, 0
  ret i1 %odd
singly:
  %s = phi i64 [0, %entry], [%s1, %singly]
  %sum = phi {bits} [0, %entry], [%sum1, %singly]
  %at = getelementptr {shape.scalar}, ptr %x, i64 %s
  %w = load {bits}, ptr %at, align {size}
  %e = and {bits} %w, {exponent}
  %o = add {bits} %e, {one}
  %sum1 = or {bits} %sum, %o
  %s1 = add i64 %s, 1
  %further = icmp ult i64 %s1, %n
  br i1 %further, label %singly, label %told
told:
  %strange = icmp slt {bits} %sum1, 0
  ret i1 %strange
}}
"""


def _block(shape: Shape, inward: bool, masked: bool) -> str:
    """W rows by W columns at column ``%c``: log2(W) rounds of shuffles."""
    w, v, scalar, tag = shape.lanes, shape.vector, shape.scalar, "m" if masked else "f"
    user, mine, code = [], [], [f"  %{tag}from = getelementptr {scalar}, ptr %first, i64 %{tag}c"]
    for k in range(w):
        row, vector, offset = f"%{tag}p{k}", f"%{tag}q{k}", f"%{tag}s{k}"
        code += [
            f"  {offset} = mul i64 %stride, {k}",
            f"  {row} = getelementptr {scalar}, ptr %{tag}from, i64 {offset}",
        ]
        code.append(f"  %{tag}c{k} = add i64 %{tag}c, {k}")
        code.append(f"  {vector} = getelementptr {v}, ptr %tile, i64 %{tag}c{k}")
        user.append(row)
        mine.append(vector)
    rows = [f"%{tag}r{k}_0" for k in range(w)]
    distances = [1 << k for k in reversed(range(w.bit_length() - 1))]
    if not masked:
        code += _load_halves(shape, user if inward else mine, rows)
        distances = distances[1:]
    for k in range(w if masked else 0):
        if inward:
            arguments = f"ptr {user[k]}, i32 {shape.size}, {shape.mask} %mask, {v} zeroinitializer"
            code.append(f"  {rows[k]} = call {v} @llvm.masked.load.{shape.suffix}.p0({arguments})")
        else:  # behind the last element is what others have left there, or nobody
            code += [
                f"  %behind{k} = load {v}, ptr {mine[k]}, align {shape.bytes}",
                f"  %within{k} = icmp ult i64 {k}, %n",
                f"  {rows[k]} = select i1 %within{k}, {v} %behind{k}, {v} zeroinitializer",
            ]
    if not inward:
        code += _watch(shape, rows, tag)
    fresh = count()

    def emit(shuffle: str) -> str:
        code.append(f"  %{tag}x{next(fresh)} = {shuffle}")
        return code[-1].split()[0]

    for distance in distances:
        rows = exchanged(shape, rows, distance, emit)
    for k in range(w):
        if not masked and not inward:
            code.append(f"  store {v} {rows[k]}, ptr {user[k]}, align {shape.size}")
        elif inward:
            code.append(f"  store {v} {rows[k]}, ptr {mine[k]}, align {shape.bytes}")
        else:
            arguments = f"{v} {rows[k]}, ptr {user[k]}, i32 {shape.size}, {shape.mask} %mask"
            code.append(f"  call void @llvm.masked.store.{shape.suffix}.p0({arguments})")
    return "\n".join(code)


def _load_halves(shape: Shape, user: list[str], rows: list[str]) -> list[str]:
    """The first round of shuffles at no cost: rows k and k + W/2 are loaded together, by halves."""
    half = shape.lanes // 2
    h, both = f"<{half} x {shape.scalar}>", ", ".join(f"i32 {k}" for k in range(shape.lanes))
    code = []
    for k in range(half):
        for side in range(2):
            for row in (k, k + half):
                place = f"%h{row}_{side}"
                code.append(f"  {place}p = getelementptr {shape.scalar}, ptr {user[row]}, i64 {side * half}")
                code.append(f"  {place} = load {h}, ptr {place}p, align {shape.size}")
            joined = f"shufflevector {h} %h{k}_{side}, {h} %h{k + half}_{side}, <{shape.lanes} x i32> <{both}>"
            code.append(f"  {rows[k + side * half]} = {joined}")
    return code


def _watch(shape: Shape, rows: list[str], tag: str) -> list[str]:
    """Products in sums that do not wait for each other: not finite where something is not a number."""
    v, code = shape.vector, []
    for k, (x, y) in enumerate(watched(shape, rows)):
        before = f"%{tag}z{k - WATCHES}" if k >= WATCHES else f"%sum{k}" if tag == "f" else shape.constant(0.0)
        code.append(f"  %{tag}z{k} = call {v} @llvm.fmuladd.{shape.suffix}({v} {x}, {v} {y}, {v} {before})")
    return code


def _watched(shape: Shape) -> tuple[str, str]:
    """The sums at the head of the loop, and the test of them after it."""
    v, count = shape.vector, len(watched(shape, [""] * shape.lanes))
    used = range(min(WATCHES, count))
    last = {j: max(k for k in range(count) if k % WATCHES == j) for j in used}
    head = "\n".join(f"  %sum{j} = phi {v} [zeroinitializer, %fast], [%fz{last[j]}, %loop]" for j in used)
    ends = [f"[%fz{last[j]}, %loop], [%mz{last[j]}, %few]" for j in used]
    end = [f"  %end{j} = phi {v} {ends[j]}" for j in used]
    total = "%end0"
    for j in used[1:]:
        end.append(f"  %total{j} = fadd {v} {total}, %end{j}")
        total = f"%total{j}"
    end += [
        f"  %still = fmul {v} {total}, {shape.constant(0.0)}",
        f"  %which = fcmp uno {v} %still, %still",
        f"  %odd = call i1 @llvm.vector.reduce.or.v{shape.lanes}i1({shape.mask} %which)",
        "  ret i1 %odd",
    ]
    return head, "\n".join(end)


def _take_in(shape: Shape) -> str:
    return f"""
define void @take_in({_PARAMETERS}) noinline #0 {{
{_entry(shape, f"  call void @part_in({_PARAMETERS})", "  ret void")}
{_blocks(shape, True, "")}
exit:
  ret void
}}
"""


def _take_out(shape: Shape) -> str:
    head, end = _watched(shape)
    return f"""
define i1 @take_out({_PARAMETERS}) noinline #0 {{
{_entry(shape, f"  %partly = call i1 @part_out({_PARAMETERS})", "  ret i1 %partly")}
{_blocks(shape, False, head)}
exit:
{end}
}}
"""


def _blocks(shape: Shape, inward: bool, head: str) -> str:
    """Whole tiles: blocks of W columns, the last one up to the last column; rows of fewer under a mask."""
    return f"""  br i1 %narrow, label %few, label %loop
loop:
  %fc = phi i64 [0, %fast], [%fnext, %loop]
{head}
{_block(shape, inward, False)}
  %behind = add i64 %fc, {shape.lanes}
  %over = icmp ugt i64 %behind, %least
  %fnext = select i1 %over, i64 %least, i64 %behind
  %more = icmp ult i64 %behind, %n
  br i1 %more, label %loop, label %exit
{_few(shape, inward)}"""


def _entry(shape: Shape, part: str, left: str) -> str:
    """Whether the tile is whole and its rows have at least W elements."""
    return f"""entry:
  %after = add i64 %row, {shape.lanes}
  %whole = icmp ule i64 %after, %end
  br i1 %whole, label %fast, label %partial
partial:
{part}
{left}
fast:
  %offset = mul i64 %row, %stride
  %first = getelementptr {shape.scalar}, ptr %port, i64 %offset
  %least = sub i64 %n, {shape.lanes}
  %narrow = icmp ult i64 %n, {shape.lanes}"""


def _few(shape: Shape, inward: bool) -> str:
    """Rows of fewer than W elements, under a mask."""
    w = shape.lanes
    numbers = ", ".join(f"i64 {k}" for k in range(w))
    return f"""few:
  %mc = add i64 0, 0
  %l0 = insertelement <{w} x i64> poison, i64 %n, i32 0
  %ls = shufflevector <{w} x i64> %l0, <{w} x i64> poison, <{w} x i32> zeroinitializer
  %mask = icmp ult <{w} x i64> <{numbers}>, %ls
{_block(shape, inward, True)}
  br label %exit"""


def _slow(shape: Shape, inward: bool) -> str:
    """The incomplete tile, element by element; idle lanes read the last row and are never written back."""
    name, s = ("in" if inward else "out"), shape.scalar
    move = ("%user", "%mine") if inward else ("%mine", "%user")
    clamp = (
        "  %beyond = icmp uge i64 %r, %end\n  %last = sub i64 %end, 1\n  %at = select i1 %beyond, i64 %last, i64 %r"
        if inward
        else "  %at = add i64 %r, 0"
    )
    until = f"{shape.lanes}" if inward else "%valid"
    place = f"  %place = mul i64 %c, {shape.bytes}"
    kind, watch = ("void", "") if inward else ("i1", f"  %zero = fsub {s} %x, %x\n  %sum = fadd {s} %sum0, %zero")
    phis = (
        ["", "", "  ret void"]
        if inward
        else [
            f"  %sums = phi {s} [0.0, %entry], [%sum, %rows_next]",
            f"  %sum0 = phi {s} [%sums, %rows], [%sum, %columns]",
            f"  %total = phi {s} [0.0, %entry], [%sum, %rows_next]\n"
            f"  %odd = fcmp uno {s} %total, %total\n  ret i1 %odd",
        ]
    )
    return f"""
define internal {kind} @part_{name}({_PARAMETERS}) noinline #0 {{
entry:
  %valid = sub i64 %end, %row
  %something = icmp ne i64 %n, 0
  br i1 %something, label %rows, label %exit
rows:
  %l = phi i64 [0, %entry], [%l1, %rows_next]
{phis[0]}
  %r = add i64 %row, %l
{clamp}
  %offset = mul i64 %at, %stride
  %first = getelementptr {s}, ptr %port, i64 %offset
  %lane = getelementptr {s}, ptr %tile, i64 %l
  br label %columns
columns:
  %c = phi i64 [0, %rows], [%c1, %columns]
{phis[1]}
  %user = getelementptr {s}, ptr %first, i64 %c
{place}
  %mine = getelementptr i8, ptr %lane, i64 %place
  %x = load {s}, ptr {move[0]}, align {shape.size}
  store {s} %x, ptr {move[1]}, align {shape.size}
{watch}
  %c1 = add i64 %c, 1
  %more = icmp ult i64 %c1, %n
  br i1 %more, label %columns, label %rows_next
rows_next:
  %l1 = add i64 %l, 1
  %next = icmp ult i64 %l1, {until}
  br i1 %next, label %rows, label %exit
exit:
{phis[2]}
}}
"""


def rows_and_blanks(shape: Shape, widths: Iterable[int]) -> str:
    """``find_rows``: pointers to W rows, of idle lanes to the last; ``blank{C}``: zeros in C columns each."""
    w, numbers = shape.lanes, ", ".join(f"i64 {k}" for k in range(shape.lanes))
    v = f"<{w} x i64>"

    def spread(name: str) -> str:
        return f"""  %{name}0 = insertelement {v} poison, i64 %{name}, i32 0
  %{name}s = shufflevector {v} %{name}0, {v} poison, <{w} x i32> zeroinitializer"""

    found = f"""
declare {v} @llvm.umin.v{w}i64({v}, {v})

define internal void @find_rows(ptr %port, i64 %stride, ptr %places, i64 %row, i64 %end) noinline #0 {{
  %last = sub i64 %end, 1
{spread("row")}
{spread("last")}
{spread("stride")}
  %all = add {v} %rows, <{numbers}>
  %real = call {v} @llvm.umin.v{w}i64({v} %all, {v} %lasts)
  %offsets = mul {v} %real, %strides
  %pointers = getelementptr {shape.scalar}, ptr %port, {v} %offsets
  store <{w} x ptr> %pointers, ptr %places, align {POINTER}
  ret void
}}
"""
    return found + "".join(_blank(shape, width) for width in sorted({*widths}))


def _blank(shape: Shape, width: int) -> str:
    rows, stores = [], []
    for k in range(shape.lanes):
        rows += [
            f"  %at{k} = getelementptr ptr, ptr %rows, i64 {k}",
            f"  %row{k} = load ptr, ptr %at{k}, align {POINTER}",
        ]
        stores += [
            f"  %place{k} = getelementptr {shape.scalar}, ptr %row{k}, i64 %column",
            f"  store <{width} x {shape.scalar}> zeroinitializer, ptr %place{k}, align {shape.size}",
        ]
    newline = "\n"
    return f"""
define internal void @blank{width}(ptr %rows, ptr %columns, i64 %count) noinline #0 {{
entry:
{newline.join(rows)}
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%k1, %loop]
  %at = getelementptr i64, ptr %columns, i64 %k
  %column = load i64, ptr %at, align 8
{newline.join(stores)}
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""
