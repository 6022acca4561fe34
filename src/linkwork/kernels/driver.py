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

BYTES = bytes.__basicsize__ - 1
"""Where the content of a bytes object starts."""

STACK_LIMIT = 256 * 1024
"""Workspaces up to this size (in bytes) live on the stack when one state is evaluated."""

CONTIGUOUS, ALIGNED, WRITABLE = 0x1, 0x100, 0x400  # NumPy's flags


@dataclass(frozen=True)
class Frame:
    """What a driver works on: ports with their places in the workspace, and its size in bytes."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    places: tuple[tuple[int, ...], ...]  # the slot of every element: of the inputs, then of the outputs
    shape: Shape
    workspace: int


def driver_module(frame: Frame, steps: Sequence[str], chunks: Sequence[str], constants: Iterable[float]) -> str:
    """IR of ``run`` around these steps, which call these chunks (see :func:`step_calls`)."""
    shape, count = frame.shape, len(frame.inputs)
    lines, moves = [], []
    for k, places in enumerate(frame.places):
        lines += field_of(f"%port{k}", "%table", 16 * k) + field_of(f"%stride{k}", "%table", 16 * k + 8, "i64")
        moves.append(move(shape, "take_in" if k < count else "take_out", k, places))
    newline = "\n"
    declared = "\n".join(f"declare void @{name}(ptr, ptr, ptr)" for name in chunks)
    return f"""
{constant_table(shape, constants)}
{place_tables(frame)}
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
{entries(frame)}
{ATTRIBUTES}"""


def constant_table(shape: Shape, constants: Iterable[float]) -> str:
    """The numbers that chunks use, side by side in memory."""
    numbers = ", ".join(f"{shape.scalar} {literal(value, shape.scalar)}" for value in constants)
    table = f"[{numbers.count(',') + 1} x {shape.scalar}] [{numbers}]" if numbers else "[0 x i8] []"
    return f"@constants = internal constant {table}, align 64"


def entries(frame: Frame) -> str:
    """Two more ways in. ``run_bound(context)``: begin, end, workspace and table in one block of memory.

    ``run_arrays(layout, arrays)``: one state, straight from a Python tuple of NumPy arrays (inputs, then outputs).
    Each is checked first: exact type, dtype and shape, contiguous, aligned, outputs writable. It returns 0, or 1
    with nothing done when something is otherwise and has to be looked at in Python. ``layout`` holds the addresses
    of the array type and the dtype and the place of a tuple's first item; an array object starts with: header,
    data, nd, dimensions, strides, base, descr, flags. (:mod:`linkwork.kernels.arrays` tests that this is so.)

    ``run_object(self, arrays)`` is the same as a method that Python calls without ctypes in between. ``self`` is a
    bytes object that holds the layout, then the addresses of its answers, None (done), True (refused) and False (done,
    but the first output is not all finite), and what counts as one more reference to them.
    """
    newline = "\n"
    bound = f"""
define void @run_bound(ptr %context) #0 {{
{newline.join(field_of("%begin", "%context", 0, "i64") + field_of("%end", "%context", 8, "i64"))}
{newline.join(field_of("%ws", "%context", 16))}
  %table = getelementptr i8, ptr %context, i64 24
  call void @run(ptr %table, i64 %begin, i64 %end, ptr %ws)
  ret void
}}
"""
    ports = [*frame.inputs, *frame.outputs]
    if frame.workspace > STACK_LIMIT or frame.shape.lanes > 1 or not frame.outputs or not frame.outputs[0].size:
        return bound
    code = field_of("%type", "%layout", 0) + field_of("%descr", "%layout", 8) + field_of("%first", "%layout", 16, "i64")
    code += ["  %items = getelementptr i8, ptr %arrays, i64 %first", *field_of("%size", "%arrays", 16, "i64")]
    code.append(f"  %complete = icmp eq i64 %size, {len(ports)}")
    code.append("  br i1 %complete, label %port0, label %refuse")
    for k, port in enumerate(ports):
        flags = CONTIGUOUS | ALIGNED | (WRITABLE if k >= len(frame.inputs) else 0)
        checks = [("%type", f"%type{k}", "ptr"), ("%descr", f"%descr{k}", "ptr"), (f"%kept{k}", str(flags), "i32")]
        checks.append((f"%nd{k}", str(len(port.shape)), "i32"))
        code += [f"port{k}:", *field_of(f"%o{k}", "%items", 8 * k), *field_of(f"%type{k}", f"%o{k}", 8)]
        code += _branch(f"type{k}", checks[:1], f"array{k}")
        code += [f"array{k}:", *field_of(f"%data{k}", f"%o{k}", 16), *field_of(f"%descr{k}", f"%o{k}", 56)]
        code += [*field_of(f"%nd{k}", f"%o{k}", 24, "i32"), *field_of(f"%flags{k}", f"%o{k}", 64, "i32")]
        code.append(f"  %kept{k} = and i32 %flags{k}, {flags}")
        code += [*_branch(f"kind{k}", checks[1:], f"sized{k}"), f"sized{k}:", *field_of(f"%dims{k}", f"%o{k}", 32)]
        sizes = []
        for axis, n in enumerate(port.shape):
            code += field_of(f"%dim{k}_{axis}", f"%dims{k}", 8 * axis, "i64")
            sizes.append((f"%dim{k}_{axis}", str(n), "i64"))
        code += [
            f"  %t{k} = getelementptr i8, ptr %table, i64 {16 * k}",
            f"  store ptr %data{k}, ptr %t{k}, align 8",
            f"  %z{k} = getelementptr i8, ptr %table, i64 {16 * k + 8}",
            f"  store i64 0, ptr %z{k}, align 8",
            *_branch(f"fits{k}", sizes, f"port{k + 1}"),
        ]
    return f"""{bound}
define i32 @run_arrays(ptr %layout, ptr %arrays) #0 {{
  %table = alloca [{16 * len(ports)} x i8], align 16
  %ws = alloca [{frame.workspace} x i8], align 64
{newline.join(code)}
port{len(ports)}:
  call void @run(ptr %table, i64 0, i64 1, ptr %ws)
  ret i32 0
refuse:
  ret i32 1
}}

define ptr @run_object(ptr %self, ptr %arrays) #0 {{
  %layout = getelementptr i8, ptr %self, i64 {BYTES}
  %code = call i32 @run_arrays(ptr %layout, ptr %arrays)
  %refused = icmp ne i32 %code, 0
{newline.join(field_of("%none", "%layout", 24) + field_of("%true", "%layout", 32) + field_of("%false", "%layout", 40))}
{newline.join(field_of("%reference", "%layout", 48, "i64") + field_of("%items", "%layout", 16, "i64"))}
  br i1 %refused, label %answered, label %done
done:
  %firsts = getelementptr i8, ptr %arrays, i64 %items
{newline.join(field_of("%output", "%firsts", 8 * len(frame.inputs)) + field_of("%data", "%output", 16))}
  br label %look
look:
  %k = phi i64 [0, %done], [%k1, %look]
  %sum = phi {frame.shape.scalar} [0.0, %done], [%sum1, %look]
  %place = getelementptr {frame.shape.scalar}, ptr %data, i64 %k
  %x = load {frame.shape.scalar}, ptr %place, align {frame.shape.size}
  %nothing = fsub {frame.shape.scalar} %x, %x
  %sum1 = fadd {frame.shape.scalar} %sum, %nothing
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, {max(frame.outputs[0].size, 1) if frame.outputs else 1}
  br i1 %more, label %look, label %looked
looked:
  %numbers = fcmp ord {frame.shape.scalar} %sum1, %sum1
  %well = select i1 %numbers, ptr %none, ptr %false
  br label %answered
answered:
  %answer = phi ptr [%true, %0], [%well, %looked]
  %old = load i64, ptr %answer, align 8
  %new = add i64 %old, %reference
  store i64 %new, ptr %answer, align 8
  ret ptr %answer
}}
"""


def _branch(name: str, equal: Sequence[tuple[str, str, str]], following: str) -> list[str]:
    """Go on only if all these pairs are equal."""
    lines = [f"  %{name}_{k} = icmp eq {kind} {a}, {b}" for k, (a, b, kind) in enumerate(equal)]
    together = f"%{name}_0"
    for k in range(1, len(equal)):
        lines.append(f"  %{name}_to{k} = and i1 {together}, %{name}_{k}")
        together = f"%{name}_to{k}"
    return [*lines, f"  br i1 {together}, label %{following}, label %refuse"]


def field_of(name: str, base: str, offset: int, kind: str = "ptr") -> list[str]:
    place = f"%at_{name[1:]}"
    return [
        f"  {place} = getelementptr i8, ptr {base}, i64 {offset}",
        f"  {name} = load {kind}, ptr {place}, align {4 if kind == 'i32' else 8}",
    ]


def move(shape: Shape, function: str, k: int, places: Sequence[int]) -> str:
    """The code that takes port ``k`` in or out of the tile; with one lane, a row is copied as it is."""
    if not places:
        return ""
    size = len(places)
    if shape.lanes > 1 and function == "take_out":
        arguments = f"ptr %port{k}, i64 %stride{k}, ptr %ws, ptr @places{k}, i64 {size}, i64 %row, i64 %end"
        return f"  call void @take_out({arguments})"
    tile = f"  %w{k} = getelementptr i8, ptr %ws, i64 {places[0] * shape.bytes}\n"
    if shape.lanes > 1:
        arguments = f"ptr %port{k}, i64 %stride{k}, ptr %w{k}, ptr null, i64 {size}, i64 %row, i64 %end"
        return f"{tile}  call void @take_in({arguments})"
    to, source = (f"%w{k}", f"%u{k}") if function == "take_in" else (f"%u{k}", f"%w{k}")
    return f"""{tile}  %o{k} = mul i64 %row, %stride{k}
  %u{k} = getelementptr {shape.scalar}, ptr %port{k}, i64 %o{k}
  call void @llvm.memcpy.p0.p0.i64(ptr align {shape.size} {to}, ptr align {shape.size} {source},
    i64 {size * shape.size}, i1 false)"""


def place_tables(frame: Frame) -> str:
    """Where ``take_out`` finds the elements of each output, in bytes, up to whole registers."""
    lanes, lines = frame.shape.lanes, []
    for k, places in enumerate(frame.places):
        if k >= len(frame.inputs) and places and lanes > 1:
            padded = [*places, *[places[-1]] * (-len(places) % lanes)]
            numbers = ", ".join(f"i64 {slot * frame.shape.bytes}" for slot in padded)
            lines.append(f"@places{k} = internal constant [{len(padded)} x i64] [{numbers}], align 64")
    return "\n".join(lines)


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
