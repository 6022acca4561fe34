"""The function around the chunks, as LLVM IR: rows of the user's arrays in, steps on a tile, rows out.

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
from linkwork.kernels.schedule import Code, Schedule
from linkwork.kernels.transpose import transposition
from linkwork.kernels.vector_math import literal

STACK_LIMIT = 256 * 1024
"""Workspaces up to this size (in bytes) live on the stack when one state is evaluated."""


@dataclass(frozen=True)
class Frame:
    """What a driver works on: ports with their places in the workspace, and its size in bytes."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    slots: tuple[int, ...]  # of the inputs, then of the outputs
    shape: Shape
    workspace: int


def driver_module(frame: Frame, steps: Sequence[str], chunks: Sequence[str], constants: Iterable[float]) -> str:
    """IR of ``run`` around these steps, which call these chunks (see :func:`step_calls`)."""
    numbers = ", ".join(f"{frame.shape.scalar} {literal(value, frame.shape.scalar)}" for value in constants)
    table = f"[{numbers.count(',') + 1} x {frame.shape.scalar}] [{numbers}]" if numbers else "[0 x i8] []"
    shape, count = frame.shape, len(frame.inputs)
    lines, moves = [], []
    for k, (port, slot) in enumerate(zip((*frame.inputs, *frame.outputs), frame.slots, strict=True)):
        lines += _field(f"%port{k}", "%table", 16 * k) + _field(f"%stride{k}", "%table", 16 * k + 8, "i64")
        moves.append(_move(shape, "take_in" if k < count else "take_out", k, port.size, slot))
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
  br i1 %some, label %tile, label %exit
tile:
  %row = phi i64 [%begin, %entry], [%row1, %finished]
{newline.join(moves[:count])}
{newline.join(steps)}
{newline.join(moves[count:])}
  br label %finished
finished:
  %row1 = add i64 %row, {shape.lanes}
  %more = icmp ult i64 %row1, %end
  br i1 %more, label %tile, label %exit
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
    ports = [*frame.inputs, *frame.outputs]
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
  %ws = alloca [{frame.workspace} x i8], align 64
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
{arrays if frame.workspace <= STACK_LIMIT and frame.shape.lanes == 1 and ports else ""}"""


def _field(name: str, base: str, offset: int, kind: str = "ptr") -> list[str]:
    place = f"%at_{name[1:]}"
    return [
        f"  {place} = getelementptr i8, ptr {base}, i64 {offset}",
        f"  {name} = load {kind}, ptr {place}, align {4 if kind == 'i32' else 8}",
    ]


def _move(shape: Shape, function: str, k: int, size: int, slot: int) -> str:
    """The code that takes port ``k`` in or out of the tile; with one lane, a row is copied as it is."""
    if not size:
        return ""
    tile = f"  %w{k} = getelementptr i8, ptr %ws, i64 {slot * shape.bytes}\n"
    if shape.lanes > 1:
        arguments = f"ptr %port{k}, i64 %stride{k}, ptr %w{k}, i64 {size}, i64 %row, i64 %end"
        return f"{tile}  call void @{function}({arguments})"
    to, source = (f"%w{k}", f"%u{k}") if function == "take_in" else (f"%u{k}", f"%w{k}")
    return f"""{tile}  %o{k} = mul i64 %row, %stride{k}
  %u{k} = getelementptr {shape.scalar}, ptr %port{k}, i64 %o{k}
  call void @llvm.memcpy.p0.p0.i64(ptr align {shape.size} {to}, ptr align {shape.size} {source},
    i64 {size * shape.size}, i1 false)"""


def chunk_names(plan: Schedule, prefix: str) -> list[str]:
    """The functions that :func:`step_calls` calls."""
    return [f"{prefix}{k}" for k, step in enumerate(plan.steps) if isinstance(step, Code)]


def step_calls(plan: Schedule, shape: Shape, register: int, prefix: str) -> list[str]:
    """The calls that execute the steps on one tile."""
    calls = []
    for k, step in enumerate(plan.steps):
        tag = f"{prefix}{k}"
        if isinstance(step, Code):
            calls.append(f"  call void @{tag}(ptr %ws, ptr %ws, ptr @constants)")
            continue
        for role, slot in (("x", step.argument), ("s", step.sine), ("c", step.cosine)):
            calls.append(f"  %{tag}{role} = getelementptr i8, ptr %ws, i64 {slot * shape.bytes}")
        count = step.count * shape.lanes
        for e in range(count, -(-count // register) * register):  # a part-filled register: zeros, not old memory
            calls.append(f"  %{tag}e{e} = getelementptr {shape.scalar}, ptr %{tag}x, i64 {e}")
            calls.append(f"  store {shape.scalar} 0.0, ptr %{tag}e{e}, align {shape.size}")
        calls.append(f"  call void @sincos_array(ptr %{tag}x, ptr %{tag}s, ptr %{tag}c, i64 {count})")
    return calls


def iteration_loop(shape: Shape, calls: Mapping[str, Sequence[str]], active: int) -> list[str]:
    """Steps of an iterative program: start, then iterate and blend while any lane is active, then finish.

    ``calls`` has the step calls of its parts; slot ``active`` holds what ``test`` says of each lane.
    """
    any_lane = "%on" if shape.lanes == 1 else "%any"
    reduce = f"  %any = call i1 @llvm.vector.reduce.or.v{shape.lanes}i1({shape.mask} %on)" * (shape.lanes > 1)
    return [
        *calls["start"],
        "  br label %look",
        "look:",
        *calls["test"],
        f"  %place = getelementptr i8, ptr %ws, i64 {active * shape.bytes}",
        f"  %flags = load {shape.vector}, ptr %place, align {shape.bytes}",
        f"  %on = fcmp une {shape.vector} %flags, {shape.constant(0.0)}",
        reduce,
        f"  br i1 {any_lane}, label %again, label %finish",
        "again:",
        *calls["iterate"],
        *calls["blend"],
        "  br label %look",
        "finish:",
        *calls["finish"],
    ]
