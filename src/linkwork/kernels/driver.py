"""The function around the chunks, as LLVM IR: rows of the user's arrays in, steps on tiles, rows out.

``run(table, begin, end, workspace)`` works on rows ``begin`` to ``end`` of a batch. ``table`` holds for every input
and then every output a pointer and a distance between rows (in elements; 0 repeats one row for all). Rows are
transposed in registers, W x W elements at a time, because lanes are states and arrays are batch-first. The last,
incomplete tile repeats the last row in its idle lanes, which never changes what the others compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from linkwork.kernels.lower import ATTRIBUTES, Shape
from linkwork.kernels.program import Port
from linkwork.kernels.schedule import Code, Schedule, Sincos
from linkwork.kernels.vector_math import literal

STACK_LIMIT = 256 * 1024
"""Workspaces up to this size (in bytes) live on the stack when one state is evaluated."""


@dataclass(frozen=True)
class Frame:
    """What a driver works on: ports with their places in the workspace, tiles of ``stride`` bytes."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    slots: tuple[int, ...]  # of the inputs, then of the outputs
    shape: Shape
    tiles: int
    stride: int


def driver_module(frame: Frame, steps: Sequence[str], chunks: Sequence[str], constants: Iterable[float]) -> str:
    """IR of ``run`` around these steps, which call these chunks (see :func:`step_calls`)."""
    numbers = ", ".join(f"{frame.shape.scalar} {literal(value, frame.shape.scalar)}" for value in constants)
    table = f"[{numbers.count(',') + 1} x {frame.shape.scalar}] [{numbers}]" if numbers else "[0 x i8] []"
    shape, tiles, stride = frame.shape, frame.tiles, frame.stride
    count = len(frame.inputs)
    ports_in = list(zip(frame.inputs, frame.slots[:count], strict=True))
    ports_out = list(zip(frame.outputs, frame.slots[count:], strict=True))
    lines = []
    for k in range(len(ports_in) + len(ports_out)):
        lines += [
            f"  %pp{k} = getelementptr i8, ptr %table, i64 {16 * k}",
            f"  %port{k} = load ptr, ptr %pp{k}, align 8",
            f"  %sp{k} = getelementptr i8, ptr %table, i64 {16 * k + 8}",
            f"  %stride{k} = load i64, ptr %sp{k}, align 8",
        ]

    def moves(function: str, ports: list[tuple[Port, int]], first: int) -> str:
        return "\n".join(
            _move(shape, function, k, port.size, slot) for k, (port, slot) in enumerate(ports, first) if port.size
        )

    def tile_loop(label: str, body: str, following: str) -> str:
        return f"""
{label}:
  %{label}_t = phi i64 [0, %{label}_from], [%{label}_t1, %{label}]
  %{label}_offset = mul i64 %{label}_t, {stride}
  %{label}_tile = getelementptr i8, ptr %ws, i64 %{label}_offset
  %{label}_lane = mul i64 %{label}_t, {shape.lanes}
  %{label}_row = add i64 %row, %{label}_lane
{body}
  %{label}_t1 = add i64 %{label}_t, 1
  %{label}_more = icmp ult i64 %{label}_t1, %tiles
  br i1 %{label}_more, label %{label}, label %{following}
"""

    newline = "\n"
    declared = "\n".join(f"declare void @{name}(ptr, ptr, ptr)" for name in chunks)
    return f"""
@constants = internal constant {table}, align 64
{transposition(shape)}
{declared}
declare void @sincos_array(ptr, ptr, ptr, i64)
declare i1 @llvm.vector.reduce.or.v{max(shape.lanes, 2)}i1(<{max(shape.lanes, 2)} x i1>)

define void @run(ptr %table, i64 %begin, i64 %end, ptr %ws) #0 {{
entry:
{newline.join(lines)}
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %group, label %exit
group:
  %row = phi i64 [%begin, %entry], [%row1, %take_out_done]
  %left = sub i64 %end, %row
  %padded = add i64 %left, {shape.lanes - 1}
  %wanted = udiv i64 %padded, {shape.lanes}
  %few = icmp ult i64 %wanted, {tiles}
  %tiles = select i1 %few, i64 %wanted, i64 {tiles}
  br label %take_in_from
take_in_from:
  br label %take_in
{tile_loop("take_in", moves("take_in", ports_in, 0), "steps")}
steps:
{newline.join(steps)}
  br label %take_out_from
take_out_from:
  br label %take_out
{tile_loop("take_out", moves("take_out", ports_out, len(ports_in)), "take_out_done")}
take_out_done:
  %row1 = add i64 %row, {tiles * shape.lanes}
  %more = icmp ult i64 %row1, %end
  br i1 %more, label %group, label %exit
exit:
  ret void
}}
{_entries(frame)}
{ATTRIBUTES}"""


def _entries(frame: Frame) -> str:
    """Two more ways in. ``run_bound(context)``: begin, end, workspace and table in one block of memory.

    ``run_arrays(types, objects...)``: one state straight from NumPy array objects, which it checks first: exact
    type, dtype, shape, contiguous and aligned. It returns 0, or 1 with nothing done when an input is otherwise and
    has to be looked at in Python. (An array object starts with: header, data, nd, dimensions, strides, base,
    descr, flags; :mod:`linkwork.kernels.arrays` tests that this is so.)
    """
    ports, workspace = [*frame.inputs, *frame.outputs], frame.tiles * frame.stride
    objects = ", ".join(f"ptr %o{k}" for k in range(len(ports)))
    code: list[str] = ["  %expected_type = load ptr, ptr %types, align 8", *_field("%expected_descr", "%types", 8)]
    checks: list[str] = []

    def check(left: str, right: str, kind: str) -> None:
        checks.append(f"%c{len(checks)}")
        code.append(f"  {checks[-1]} = icmp eq {kind} {left}, {right}")

    for k, port in enumerate(ports):
        code += _field(f"%data{k}", f"%o{k}", 16)
        if k < len(frame.inputs):
            code += [*_field(f"%type{k}", f"%o{k}", 8), *_field(f"%descr{k}", f"%o{k}", 56)]
            code += [*_field(f"%nd{k}", f"%o{k}", 24, "i32"), *_field(f"%flags{k}", f"%o{k}", 64, "i32")]
            check(f"%type{k}", "%expected_type", "ptr")
            check(f"%descr{k}", "%expected_descr", "ptr")
            check(f"%nd{k}", str(len(port.shape)), "i32")
            code.append(f"  %bits{k} = and i32 %flags{k}, 257")
            check(f"%bits{k}", "257", "i32")
    code.append("  %good0 = and i1 true, true")
    code += [f"  %good{n + 1} = and i1 %good{n}, {c}" for n, c in enumerate(checks)]
    code.append(f"  br i1 %good{len(checks)}, label %shapes, label %refuse\nshapes:")
    first = len(checks)
    for k, port in enumerate(frame.inputs):
        code += _field(f"%dims{k}", f"%o{k}", 32)
        for axis, n in enumerate(port.shape):
            code += _field(f"%dim{k}_{axis}", f"%dims{k}", 8 * axis, "i64")
            check(f"%dim{k}_{axis}", str(n), "i64")
    code.append("  %fits0 = and i1 true, true")
    code += [f"  %fits{n + 1} = and i1 %fits{n}, {c}" for n, c in enumerate(checks[first:])]
    fills = "\n".join(
        f"  %t{k} = getelementptr i8, ptr %table, i64 {16 * k}\n  store ptr %data{k}, ptr %t{k}, align 8\n"
        f"  %z{k} = getelementptr i8, ptr %table, i64 {16 * k + 8}\n  store i64 0, ptr %z{k}, align 8"
        for k in range(len(ports))
    )
    newline = "\n"
    arrays = f"""
define i32 @run_arrays(ptr %types, {objects}) #0 {{
entry:
  %table = alloca [{16 * len(ports)} x i8], align 16
  %ws = alloca [{workspace} x i8], align 64
{newline.join(code)}
  br i1 %fits{len(checks) - first}, label %good, label %refuse
good:
{fills}
  call void @run(ptr %table, i64 0, i64 1, ptr %ws)
  ret i32 0
refuse:
  ret i32 1
}}
"""
    return f"""
define void @run_bound(ptr %context) #0 {{
{newline.join(_field("%begin", "%context", 0, "i64") + _field("%end", "%context", 8, "i64"))}
{newline.join(_field("%ws", "%context", 16))}
  %table = getelementptr i8, ptr %context, i64 24
  call void @run(ptr %table, i64 %begin, i64 %end, ptr %ws)
  ret void
}}
{arrays if workspace <= STACK_LIMIT and frame.shape.lanes == 1 and ports else ""}"""


def _field(name: str, base: str, offset: int, kind: str = "ptr") -> list[str]:
    place = f"%at_{name[1:]}"
    return [
        f"  {place} = getelementptr i8, ptr {base}, i64 {offset}",
        f"  {name} = load {kind}, ptr {place}, align {4 if kind == 'i32' else 8}",
    ]


def _move(shape: Shape, function: str, k: int, size: int, slot: int) -> str:
    """The code that takes port ``k`` in or out of the current tile; with one lane, a row is copied as it is."""
    tile = f"  %w{k} = getelementptr i8, ptr %{function}_tile, i64 {slot * shape.bytes}\n"
    if shape.lanes > 1:
        arguments = f"ptr %port{k}, i64 %stride{k}, ptr %w{k}, i64 {size}, i64 %{function}_row, i64 %end"
        return f"{tile}  call void @{function}({arguments})"
    to, source = (f"%w{k}", f"%u{k}") if function == "take_in" else (f"%u{k}", f"%w{k}")
    return f"""{tile}  %o{k} = mul i64 %{function}_row, %stride{k}
  %u{k} = getelementptr {shape.scalar}, ptr %port{k}, i64 %o{k}
  call void @llvm.memcpy.p0.p0.i64(ptr align {shape.size} {to}, ptr align {shape.size} {source},
    i64 {size * shape.size}, i1 false)"""


def chunk_names(plan: Schedule, prefix: str) -> list[str]:
    """The functions that :func:`step_calls` calls."""
    return [f"{prefix}{k}" for k, step in enumerate(plan.steps) if isinstance(step, Code)]


def step_calls(plan: Schedule, shape: Shape, stride: int, prefix: str) -> list[str]:
    """The calls that execute the steps on all tiles of a group."""
    calls = [_clear_padding(step, shape, f"{prefix}{k}") for k, step in enumerate(plan.steps) if isinstance(step, Sincos)]
    for k, step in enumerate(plan.steps):
        tag = f"{prefix}{k}"
        if isinstance(step, Code):
            body = f"  call void @{tag}(ptr %{tag}tile, ptr %{tag}tile, ptr @constants)"
        else:
            slots = {"x": step.argument, "s": step.sine, "c": step.cosine}
            pointers = [
                f"  %{tag}{role} = getelementptr i8, ptr %{tag}tile, i64 {slot * shape.bytes}\n"
                for role, slot in slots.items()
            ]
            count = step.count * shape.lanes
            body = f"{''.join(pointers)}  call void @sincos_array(ptr %{tag}x, ptr %{tag}s, ptr %{tag}c, i64 {count})"
        calls.append(f"""  br label %{tag}from
{tag}from:
  br label %{tag}loop
{tag}loop:
  %{tag}t = phi i64 [0, %{tag}from], [%{tag}t1, %{tag}loop]
  %{tag}offset = mul i64 %{tag}t, {stride}
  %{tag}tile = getelementptr i8, ptr %ws, i64 %{tag}offset
{body}
  %{tag}t1 = add i64 %{tag}t, 1
  %{tag}more = icmp ult i64 %{tag}t1, %tiles
  br i1 %{tag}more, label %{tag}loop, label %{tag}done
{tag}done:""")
    return calls


def iteration_loop(frame: Frame, calls: Mapping[str, Sequence[str]], active: int) -> list[str]:
    """Steps of an iterative program: start, then iterate and blend while any lane is active, then finish.

    ``calls`` has the step calls of its parts; slot ``active`` holds what ``test`` says of each lane.
    """
    shape = frame.shape
    zero = shape.constant(0.0)
    if shape.lanes == 1:
        reduce = "  %any_here = and i1 %on, true"
    else:
        reduce = f"  %any_here = call i1 @llvm.vector.reduce.or.v{shape.lanes}i1({shape.mask} %on)"
    return [
        *calls["start"],
        "  br label %look",
        "look:",
        *calls["test"],
        "  br label %ask_from",
        "ask_from:",
        "  br label %ask",
        f"""ask:
  %ask_t = phi i64 [0, %ask_from], [%ask_t1, %ask]
  %any = phi i1 [false, %ask_from], [%any1, %ask]
  %ask_offset = mul i64 %ask_t, {frame.stride}
  %ask_byte = add i64 %ask_offset, {active * shape.bytes}
  %ask_place = getelementptr i8, ptr %ws, i64 %ask_byte
  %flags = load {shape.vector}, ptr %ask_place, align {shape.bytes}
  %on = fcmp une {shape.vector} %flags, {zero}
{reduce}
  %any1 = or i1 %any, %any_here
  %ask_t1 = add i64 %ask_t, 1
  %ask_more = icmp ult i64 %ask_t1, %tiles
  br i1 %ask_more, label %ask, label %asked
asked:
  br i1 %any1, label %again, label %finish
again:""",
        *calls["iterate"],
        *calls["blend"],
        "  br label %look",
        "finish:",
        *calls["finish"],
    ]


def _clear_padding(step: Sincos, shape: Shape, tag: str) -> str:
    """With one lane, the last register of sincos arguments may be part empty: zeros there, not old memory."""
    width = step.sine - step.argument
    if shape.lanes > 1 or width == step.count:
        return ""
    return "\n".join(
        f"  %{tag}pad{e} = getelementptr i8, ptr %ws, i64 {(step.argument + e) * shape.bytes}\n"
        f"  store {shape.scalar} 0.0, ptr %{tag}pad{e}, align {shape.size}"
        for e in range(step.count, width)
    )


def transposition(shape: Shape) -> str:
    """``take_in`` and ``take_out``: W rows of n elements to n vectors of W lanes, and back."""
    if shape.lanes == 1:
        return "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    return _fast(shape, True) + _fast(shape, False) + _slow(shape, True) + _slow(shape, False) + _masked(shape)


def _masked(shape: Shape) -> str:
    v, m, a = shape.vector, shape.mask, shape.suffix
    return f"""
declare {v} @llvm.masked.load.{a}.p0(ptr, i32, {m}, {v})
declare void @llvm.masked.store.{a}.p0({v}, ptr, i32, {m})
"""


def _fast(shape: Shape, inward: bool) -> str:
    """Whole tiles: blocks of W columns, log2(W) rounds of shuffles each; the last block under a mask."""
    name, w, v = ("in" if inward else "out"), shape.lanes, shape.vector
    numbers = ", ".join(f"i64 {k}" for k in range(w))
    code: list[str] = []
    rows = [f"%r{k}_0" for k in range(w)]
    if inward:
        for k in range(w):
            code.append(f"  %s{k} = mul i64 %stride, {k}")
            code.append(f"  %p{k} = getelementptr {shape.scalar}, ptr %from, i64 %s{k}")
            code.append(
                f"  {rows[k]} = call {v} @llvm.masked.load.{shape.suffix}.p0(ptr %p{k}, i32 {shape.size}, "
                f"{shape.mask} %mask, {v} zeroinitializer)"
            )
    else:
        for k in range(w):
            code.append(f"  %q{k} = getelementptr {v}, ptr %to, i64 {k}")
            code.append(f"  {rows[k]} = load {v}, ptr %q{k}, align {shape.bytes}")
    distance, round_ = w // 2, 0
    while distance:
        round_ += 1
        low = ", ".join(f"i32 {j if not j & distance else w + j - distance}" for j in range(w))
        high = ", ".join(f"i32 {j + distance if not j & distance else w + j}" for j in range(w))
        after = [f"%r{k}_{round_}" for k in range(w)]
        for k in range(w):
            if not k & distance:
                pair = f"shufflevector {v} {rows[k]}, {v} {rows[k | distance]}"
                code.append(f"  {after[k]} = {pair}, <{w} x i32> <{low}>")
                code.append(f"  {after[k | distance]} = {pair}, <{w} x i32> <{high}>")
        rows, distance = after, distance // 2
    for k in range(w):
        if inward:
            code.append(f"  %q{k} = getelementptr {v}, ptr %to, i64 {k}")
            code.append(f"  store {v} {rows[k]}, ptr %q{k}, align {shape.bytes}")
        else:
            code.append(f"  %s{k} = mul i64 %stride, {k}")
            code.append(f"  %p{k} = getelementptr {shape.scalar}, ptr %from, i64 %s{k}")
            code.append(
                f"  call void @llvm.masked.store.{shape.suffix}.p0({v} {rows[k]}, ptr %p{k}, i32 {shape.size}, "
                f"{shape.mask} %mask)"
            )
    body = "\n".join(code)
    return f"""
define internal void @take_{name}(ptr %port, i64 %stride, ptr %tile, i64 %n, i64 %row, i64 %end) noinline #0 {{
entry:
  %after = add i64 %row, {w}
  %whole = icmp ule i64 %after, %end
  br i1 %whole, label %fast, label %partial
partial:
  call void @part_{name}(ptr %port, i64 %stride, ptr %tile, i64 %n, i64 %row, i64 %end)
  ret void
fast:
  %offset = mul i64 %row, %stride
  %first = getelementptr {shape.scalar}, ptr %port, i64 %offset
  %something = icmp ne i64 %n, 0
  br i1 %something, label %loop, label %exit
loop:
  %c = phi i64 [0, %fast], [%c1, %loop]
  %left = sub i64 %n, %c
  %l0 = insertelement <{w} x i64> poison, i64 %left, i32 0
  %ls = shufflevector <{w} x i64> %l0, <{w} x i64> poison, <{w} x i32> zeroinitializer
  %mask = icmp ult <{w} x i64> <{numbers}>, %ls
  %from = getelementptr {shape.scalar}, ptr %first, i64 %c
  %to = getelementptr {v}, ptr %tile, i64 %c
{body}
  %c1 = add i64 %c, {w}
  %more = icmp ult i64 %c1, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


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
    return f"""
define internal void @part_{name}(ptr %port, i64 %stride, ptr %tile, i64 %n, i64 %row, i64 %end) noinline #0 {{
entry:
  %valid = sub i64 %end, %row
  %something = icmp ne i64 %n, 0
  br i1 %something, label %rows, label %exit
rows:
  %l = phi i64 [0, %entry], [%l1, %rows_next]
  %r = add i64 %row, %l
{clamp}
  %offset = mul i64 %at, %stride
  %first = getelementptr {s}, ptr %port, i64 %offset
  %lane = getelementptr {s}, ptr %tile, i64 %l
  br label %columns
columns:
  %c = phi i64 [0, %rows], [%c1, %columns]
  %user = getelementptr {s}, ptr %first, i64 %c
  %place = mul i64 %c, {shape.lanes}
  %mine = getelementptr {s}, ptr %lane, i64 %place
  %x = load {s}, ptr {move[0]}, align {shape.size}
  store {s} %x, ptr {move[1]}, align {shape.size}
  %c1 = add i64 %c, 1
  %more = icmp ult i64 %c1, %n
  br i1 %more, label %columns, label %rows_next
rows_next:
  %l1 = add i64 %l, 1
  %next = icmp ult i64 %l1, {until}
  br i1 %next, label %rows, label %exit
exit:
  ret void
}}
"""
