"""The function around the chunks, as LLVM IR: rows of the user's arrays in, steps on tiles, rows out.

``run(table, begin, end, workspace)`` works on rows ``begin`` to ``end`` of a batch. ``table`` holds for every input
and then every output a pointer and a distance between rows (in elements; 0 repeats one row for all). Rows are
transposed in registers, W x W elements at a time, because lanes are states and arrays are batch-first. The last,
incomplete tile repeats the last row in its idle lanes, which never changes what the others compute.
"""

from __future__ import annotations

from linkwork.kernels.lower import ATTRIBUTES, Shape
from linkwork.kernels.schedule import Code, Schedule


def driver_module(
    schedule: Schedule, steps: list[str], shape: Shape, tiles: int, stride: int, prefix: str
) -> str:
    """IR of ``run`` for these step calls (see :func:`step_calls`)."""
    program = schedule.program
    ports_in = list(zip(program.inputs, schedule.inputs, strict=True))
    ports_out = list(zip(program.outputs, schedule.outputs, strict=True))
    lines = []
    for k in range(len(ports_in) + len(ports_out)):
        lines += [
            f"  %pp{k} = getelementptr i8, ptr %table, i64 {16 * k}",
            f"  %port{k} = load ptr, ptr %pp{k}, align 8",
            f"  %sp{k} = getelementptr i8, ptr %table, i64 {16 * k + 8}",
            f"  %stride{k} = load i64, ptr %sp{k}, align 8",
        ]
    def moves(function: str, ports: list, first: int) -> str:  # type: ignore[type-arg]
        code = []
        for k, (port, slot) in enumerate(ports, first):
            code.append(f"  %w{k} = getelementptr i8, ptr %{function}_tile, i64 {slot * shape.bytes}")
            code.append(
                f"  call void @{function}(ptr %port{k}, i64 %stride{k}, ptr %w{k}, i64 {port.size}, "
                f"i64 %{function}_row, i64 %end)"
            )
        return "\n".join(code)

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
    declared = "\n".join(sorted({f"declare void @{name}(ptr, i64)" for name in _chunk_names(schedule, prefix)}))
    return f"""
{transposition(shape)}
{declared}
declare void @sincos_array(ptr, ptr, ptr, i64)

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
{ATTRIBUTES}"""


def _chunk_names(schedule: Schedule, prefix: str) -> list[str]:
    return [f"{prefix}{k}" for k, step in enumerate(schedule.steps) if isinstance(step, Code)]


def step_calls(schedule: Schedule, shape: Shape, stride: int, prefix: str, tiles: str = "%tiles") -> list[str]:
    """The calls that execute the steps on all tiles of a group."""
    calls = []
    for k, step in enumerate(schedule.steps):
        if isinstance(step, Code):
            calls.append(f"  call void @{prefix}{k}(ptr %ws, i64 {tiles})")
        else:
            slots = {"x": step.argument, "s": step.sine, "c": step.cosine}
            tag = f"{prefix}{k}"
            pointers = "\n".join(
                f"  %{tag}{role} = getelementptr i8, ptr %{tag}tile, i64 {slot * shape.bytes}"
                for role, slot in slots.items()
            )
            calls.append(f"""  br label %{tag}from
{tag}from:
  br label %{tag}loop
{tag}loop:
  %{tag}t = phi i64 [0, %{tag}from], [%{tag}t1, %{tag}loop]
  %{tag}offset = mul i64 %{tag}t, {stride}
  %{tag}tile = getelementptr i8, ptr %ws, i64 %{tag}offset
{pointers}
  call void @sincos_array(ptr %{tag}x, ptr %{tag}s, ptr %{tag}c, i64 {step.count * shape.lanes})
  %{tag}t1 = add i64 %{tag}t, 1
  %{tag}more = icmp ult i64 %{tag}t1, {tiles}
  br i1 %{tag}more, label %{tag}loop, label %{tag}done
{tag}done:""")
    return calls


def transposition(shape: Shape) -> str:
    """``take_in`` and ``take_out``: W rows of n elements to n vectors of W lanes, and back."""
    if shape.lanes == 1:
        return _copies(shape)
    return _fast(shape, True) + _fast(shape, False) + _slow(shape, True) + _slow(shape, False) + _masked(shape)


def _copies(shape: Shape) -> str:
    """With one lane, rows are copied as they are."""
    text = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    for name, to, source in (("take_in", "%tile", "%from"), ("take_out", "%from", "%tile")):
        text += f"""
define internal void @{name}(ptr %port, i64 %stride, ptr %tile, i64 %n, i64 %row, i64 %end) alwaysinline #0 {{
  %offset = mul i64 %row, %stride
  %from = getelementptr {shape.scalar}, ptr %port, i64 %offset
  %bytes = mul i64 %n, {shape.size}
  call void @llvm.memcpy.p0.p0.i64(ptr align {shape.size} {to}, ptr align {shape.size} {source}, i64 %bytes, i1 false)
  ret void
}}
"""
    return text


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
