"""The function around the chunks, as LLVM IR: rows of the user's arrays in, steps on a tile, rows out.

``run(table, begin, end, workspace)`` works on rows ``begin`` to ``end`` of a batch. ``table`` holds for every input
and then every output a pointer and a distance between rows (in elements; 0 repeats one row for all). Rows are
transposed in registers, W x W elements at a time, because lanes are states and arrays are batch-first. The last,
incomplete tile repeats the last row in its idle lanes, which never changes the results of the others.

No call of ``run`` takes long, so that the caller can handle signals in between. After the workspace are the words of a
*turn*. Tiles, iterations and steps consume its ``FUEL``; when it is used up, ``run`` saves where it is, returns 1, and
continues from there in the next call. ``ODD`` becomes nonzero when an output is not a number.

Chunks of a straight program store its outputs (:mod:`linkwork.kernels.programs.output_stores`); those of others, and of
one state, are moved out after the steps. Elements of outputs that are zero in every state are never computed, and where
many of them are side by side nothing is moved for them: zeros are written, or left alone if ``BLANK`` says that the
user's arrays have them already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from linkwork.kernels.codegen.fields import field_of
from linkwork.kernels.codegen.lane_transpose import rows_and_blanks, transposition
from linkwork.kernels.codegen.lower import ATTRIBUTES, Shape
from linkwork.kernels.programs.output_stores import Outlet
from linkwork.kernels.programs.program import Port
from linkwork.kernels.programs.schedule import Code, Schedule

TURN = 64
"""Bytes of a turn, after the workspace."""

FUEL, PAUSED, ROW, TIME, BEGIN, STOP, ODD, BLANK = range(0, TURN, 8)
"""Its words: instructions left; whether to continue, in which row and step; rows taken; whether any NaN came out; and
whether outputs that are zero in every state are zero already."""


@dataclass(frozen=True)
class Frame:
    """What a driver works on: ports with their places in the workspace, and its size in bytes."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    places: tuple[tuple[int, ...], ...]  # the slot of every element: of the inputs, then of the outputs
    shape: Shape
    workspace: int
    blanks: tuple[frozenset[int], ...] = ()  # for one state: the elements of every output that are not moved
    outlet: Outlet | None = None  # how outputs leave that have no places
    written: tuple[int, ...] = ()  # the ports that the steps of one state write themselves, and set ``%odd``

    def blank(self, k: int) -> frozenset[int]:
        """Those of port ``k``."""
        return self.blanks[k - len(self.inputs)] if self.blanks and k >= len(self.inputs) else frozenset()


def driver_module(
    frame: Frame, steps: Sequence[str | int], chunks: Sequence[str], cost: int, start: Sequence[str] | None = None
) -> str:
    """IR of ``run`` around these steps, which call these chunks (see :func:`step_calls`).

    ``cost`` is what they take in instructions. With a ``start``, they are a loop that goes back to ``look``. A number
    among the steps of a batch moves that output out, before others overwrite it; all others are moved out in the end.
    """
    shape, count = frame.shape, len(frame.inputs)
    row = "%row" if start is None else "%first"
    lines, moves = [], []
    for k in range(count + len(frame.outputs)):
        lines += field_of(f"%port{k}", "%table", 16 * k) + field_of(f"%stride{k}", "%table", 16 * k + 8, "i64")
        if k < count:
            moves.append(take_in(shape, k, frame.places[k], row))
        elif frame.outlet is None:
            moves.append(take_out(frame, k, "%row", "%blank"))
    newline = "\n"
    return f"""{declarations(frame, chunks)}

define i64 @run(ptr %table, i64 %begin, i64 %end, ptr %ws) #0 {{
entry:
{newline.join(lines)}
{resuming(frame)}
  br i1 %resumed, label %look, label %fresh
fresh:
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %tile, label %exit
tile:
  %first = phi i64 [%begin, %fresh], [%row1, %finished]
{newline.join([*moves[:count], *start] if start is not None else [])}
  br label %look
look:
  %row = phi i64 [%first, %tile], [%saved, %entry]{", [%row, %again]" if start is not None else ""}
{burning(cost)}
{newline.join(moves[:count] if start is None else [])}
{newline.join(rows_of_outputs(frame, frame.outlet) if frame.outlet is not None else [])}
{newline.join(moves[count + s] if isinstance(s, int) else s for s in steps)}
{newline.join(move for k, move in enumerate(moves[count:]) if k not in steps)}
{newline.join(judging(frame))}
  br label %finished
finished:
  %row1 = add i64 %row, {shape.lanes}
  %more = icmp ult i64 %row1, %end
  br i1 %more, label %tile, label %exit
{pausing()}
exit:
  ret i64 0
}}
{ATTRIBUTES}"""


def declarations(frame: Frame, chunks: Sequence[str]) -> str:
    """What the functions of a driver call."""
    newline = "\n"
    return f"""
{tables_of_blanks(frame)}
{transposition(frame.shape)}
{newline.join(f"declare void @{name}(ptr, ptr)" for name in chunks)}
declare void @sincos_array(ptr, ptr, ptr, i64)
{"declare i1 @square(ptr, ptr)" if frame.written else ""}"""


def resuming(frame: Frame) -> str:
    """Where the last call stopped, if this one continues it (``%resumed``): ``%saved`` is the row."""
    lines = [f"  %turn = getelementptr i8, ptr %ws, i64 {frame.workspace}"]
    for name, offset in (("paused", PAUSED), ("saved", ROW), ("since", TIME), ("blanks", BLANK)):
        lines += field_of(f"%{name}", "%turn", offset, "i64")
    lines += ["  %blank = icmp ne i64 %blanks, 0"]
    lines += ["  %resumed = icmp ne i64 %paused, 0", "  store i64 0, ptr %at_paused, align 8"]
    return "\n".join(lines)


def burning(cost: int) -> str:
    """Consume the fuel for what follows, or pause."""
    return f"""  %at_fuel = getelementptr i8, ptr %turn, i64 {FUEL}
  %fuel = load i64, ptr %at_fuel, align 8
  %enough = icmp sgt i64 %fuel, 0
  br i1 %enough, label %go, label %pause
go:
  %less = sub i64 %fuel, {cost}
  store i64 %less, ptr %at_fuel, align 8"""


def pausing(time: str = "0") -> str:
    """Save where this call stops, and return."""
    return f"""pause:
  store i64 1, ptr %at_paused, align 8
  store i64 %row, ptr %at_saved, align 8
  store i64 {time}, ptr %at_since, align 8
  ret i64 1"""


def rows_of_outputs(frame: Frame, outlet: Outlet) -> list[str]:
    """Find the rows of a tile, write what is always zero, and begin the sum that tells of NaN."""
    shape, lines = frame.shape, []
    for k, (port, rows, blanks) in enumerate(zip(frame.outputs, outlet.rows, outlet.blanks, strict=True)):
        if not port.size:
            continue
        p = len(frame.inputs) + k
        lines += [
            f"  %rows{k} = getelementptr i8, ptr %ws, i64 {rows * shape.bytes}",
            f"  call void @find_rows(ptr %port{p}, i64 %stride{p}, ptr %rows{k}, i64 %row, i64 %end)",
        ]
        if blanks:
            lines += [
                f"  br i1 %blank, label %filled{k}, label %fill{k}",
                f"fill{k}:",
                f"  call void @blank{outlet.widths[k]}(ptr %rows{k}, ptr @blanks{k}, i64 {len(blanks)})",
                f"  br label %filled{k}",
                f"filled{k}:",
            ]
    return [
        *lines,
        f"  %sum = getelementptr i8, ptr %ws, i64 {outlet.sum * shape.bytes}",
        f"  store {shape.vector} zeroinitializer, ptr %sum, align {shape.bytes}",
    ]


def judging(frame: Frame) -> list[str]:
    """Set ``ODD`` if an output of this tile is not a number."""
    if frame.outlet is not None:
        shape = frame.shape
        return [
            *field_of("%odd", "%turn", ODD, "i64"),
            f"  %sums = load {shape.vector}, ptr %sum, align {shape.bytes}",
            f"  %total = fmul {shape.vector} %sums, {shape.constant(0.0)}",
            f"  %which = fcmp uno {shape.vector} %total, %total",
            f"  %any = call i1 @llvm.vector.reduce.or.v{shape.lanes}i1({shape.mask} %which)",
            "  %word = zext i1 %any to i64",
            "  %either = or i64 %odd, %word",
            "  store i64 %either, ptr %at_odd, align 8",
        ]
    outputs = [k for k, places in enumerate(frame.places) if (k >= len(frame.inputs) and places) or k in frame.written]
    lines = []
    if frame.shape.lanes == 1:
        moved = [k for k in outputs if k not in frame.written]
        lines += [f"  %odd{k} = call i1 @odd(ptr %w{k}, i64 {len(frame.places[k])})" for k in moved]
    lines += field_of("%odd", "%turn", ODD, "i64")
    for k in outputs:
        lines += [f"  %word{k} = zext i1 %odd{k} to i64", f"  %or{k} = or i64 {_before(outputs, k)}, %word{k}"]
    return [*lines, f"  store i64 %or{outputs[-1]}, ptr %at_odd, align 8"] if outputs else []


def _before(outputs: Sequence[int], k: int) -> str:
    return "%odd" if k == outputs[0] else f"%or{outputs[outputs.index(k) - 1]}"


def table_entry(table: str, k: int, pointer: str, stride: str = "0") -> str:
    """The code that writes port ``k`` into a driver's table, as ``arrays.table_of`` does."""
    return f"""  %pointer_at{k} = getelementptr i8, ptr {table}, i64 {16 * k}
  store ptr {pointer}, ptr %pointer_at{k}, align 8
  %stride_at{k} = getelementptr i8, ptr {table}, i64 {16 * k + 8}
  store i64 {stride}, ptr %stride_at{k}, align 8"""


def take_in(shape: Shape, k: int, places: Sequence[int], row: str = "%row") -> str:
    """The code that moves input ``k`` into the tile; with one lane, a row is copied as it is."""
    if not places:
        return ""
    tile = f"  %w{k} = getelementptr i8, ptr %ws, i64 {places[0] * shape.bytes}\n"
    if shape.lanes > 1:
        arguments = f"ptr %port{k}, i64 %stride{k}, ptr %w{k}, i64 {len(places)}, i64 {row}, i64 %end"
        return f"{tile}  call void @take_in({arguments})"
    return tile + row_of(shape, k, row) + _copied(shape, f"%w{k}", f"%u{k}", len(places))


def take_out(frame: Frame, k: int, row: str = "%row", blank: str = "false") -> str:
    """The code that moves output ``k`` out of the tile; ``blank``: whether its constant zeros are there.

    ``%odd{k}`` says whether an output is not a number; with one lane, ``judging`` computes it.
    """
    shape, places, size = frame.shape, frame.places[k], frame.outputs[k - len(frame.inputs)].size
    if not size or k in frame.written:
        return ""
    tile = f"  %w{k} = getelementptr i8, ptr %ws, i64 {(places[0] if places else 0) * shape.bytes}"
    if shape.lanes > 1:
        arguments = f"ptr %port{k}, i64 %stride{k}, ptr %w{k}, i64 {size}, i64 {row}, i64 %end"
        return f"{tile}\n  %odd{k} = call i1 @take_out({arguments})"
    lines = [tile, row_of(shape, k, row)]
    copied, zeroed = runs_of(size, frame.blank(k))
    if zeroed:
        lines += [f"  br i1 {blank}, label %filled{k}, label %fill{k}", f"fill{k}:"]
        for first, length in zeroed:
            lines += [
                f"  %z{k}_{first} = getelementptr {shape.scalar}, ptr %u{k}, i64 {first}",
                f"  call void @llvm.memset.p0.i64(ptr align {shape.size} %z{k}_{first}, i8 0, "
                f"i64 {length * shape.size}, i1 false)",
            ]
        lines += [f"  br label %filled{k}", f"filled{k}:"]
    done = 0
    for first, length in copied:
        lines += [
            f"  %f{k}_{first} = getelementptr {shape.scalar}, ptr %w{k}, i64 {done}",
            f"  %t{k}_{first} = getelementptr {shape.scalar}, ptr %u{k}, i64 {first}",
            _copied(shape, f"%t{k}_{first}", f"%f{k}_{first}", length),
        ]
        done += length
    return "\n".join(lines)


def row_of(shape: Shape, k: int, row: str) -> str:
    """The place of port ``k`` in the user's memory, ``%u{k}``."""
    return f"""  %o{k} = mul i64 {row}, %stride{k}
  %u{k} = getelementptr {shape.scalar}, ptr %port{k}, i64 %o{k}
"""


def _copied(shape: Shape, to: str, source: str, count: int) -> str:
    return f"""  call void @llvm.memcpy.p0.p0.i64(ptr align {shape.size} {to}, ptr align {shape.size} {source},
    i64 {count * shape.size}, i1 false)"""


def left_out(zeros: Sequence[bool]) -> frozenset[int]:
    """Elements of an output that are not moved for one state: runs of at least GAP zeros."""
    found: set[int] = set()
    for zero, run in groupby(range(len(zeros)), zeros.__getitem__):
        elements = list(run)
        if zero and len(elements) >= GAP:
            found.update(elements)
    return frozenset(found)


GAP = 4
"""Zeros side by side that are worth an interruption of the row that is copied for one state."""


def runs_of(size: int, blank: frozenset[int]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The runs of elements that are copied, and of those that are blank: first and length of each."""
    full: list[tuple[int, int]] = []
    empty: list[tuple[int, int]] = []
    for zero, run in groupby(range(size), blank.__contains__):
        elements = list(run)
        (empty if zero else full).append((elements[0], len(elements)))
    return full, empty


def tables_of_blanks(frame: Frame) -> str:
    """Where outputs are zero in every state, with the functions that need it."""
    if frame.outlet is None:
        return ""
    lines = [rows_and_blanks(frame.shape, frame.outlet.widths)]
    for k, columns in enumerate(frame.outlet.blanks):
        numbers = ", ".join(f"i64 {x}" for x in columns)
        lines.append(f"@blanks{k} = internal constant [{len(columns)} x i64] [{numbers}], align 8")
    return "\n".join(lines)


def chunk_names(plan: Schedule, prefix: str) -> list[str]:
    """The functions that :func:`step_calls` calls."""
    return [f"{prefix}{k}" for k, step in enumerate(plan.steps) if isinstance(step, Code)]


def step_calls(plan: Schedule, shape: Shape, register: int, prefix: str, again: str = "") -> list[str]:
    """The calls that execute the steps on one tile; ``again`` tells them from others of the same steps."""
    calls = []
    for k, step in enumerate(plan.steps):
        if isinstance(step, Code):
            calls.append(f"  call void @{prefix}{k}(ptr %ws, ptr %ws)")
            continue
        tag = f"{prefix}{again}{k}"
        for role, slot in (("x", step.argument), ("s", step.sine), ("c", step.cosine)):
            calls.append(f"  %{tag}{role} = getelementptr i8, ptr %ws, i64 {slot * shape.bytes}")
        count = step.count * shape.lanes
        for e in range(count, -(-count // register) * register):  # a part-filled register: zeros, not old memory
            calls.append(f"  %{tag}e{e} = getelementptr {shape.scalar}, ptr %{tag}x, i64 {e}")
            calls.append(f"  store {shape.scalar} 0.0, ptr %{tag}e{e}, align {shape.size}")
        calls.append(f"  call void @sincos_array(ptr %{tag}x, ptr %{tag}s, ptr %{tag}c, i64 {count})")
    return calls


def iteration_loop(
    shape: Shape,
    calls: Mapping[str, list[str]],
    slots: Mapping[str, int],
    finish: Callable[[str], list[str]],
    head: str = "look",
    further: Sequence[str] = (),
) -> list[str]:
    """Steps of an iterative program after its start.

    Iterate and blend while any lane is active, then finish; if any lane is left do the same in further loops, and
    finish again.

    ``calls`` has the step calls of its parts, ``finish`` makes those of another finish. The slots ``running`` and
    ``left`` hold the results of ``test`` and ``end`` for each lane. The loop goes back to the label ``head``, which is
    before these steps. Names of the parts of ``further`` loops end with these.
    """
    lines = [
        *_if_any(shape, calls["test"], slots["running"], "", "again", "complete"),
        "again:",
        *calls["iterate"],
        *calls["blend"],
        f"  br label %{head}",
        "complete:",
        *calls["finish"],
    ]
    if not further:
        return [*lines, *calls.get("end", ()), *calls.get("missing", ())]
    lines += _if_any(shape, calls["end"], slots["left"], "_left", f"left{further[0]}", "ended")
    for key, after in zip(further, [*further[1:], ""], strict=True):
        lines += [
            f"left{key}:",
            *(finish(key) + calls["anew" + key] if "anew" + key in calls else []),
            *_if_any(shape, calls["test" + key], slots["running"], f"{key}0", f"some{key}", f"left{after}"),
            f"some{key}:",
            *calls["prepare" + key],
            f"  br label %again{key}",
            f"again{key}:",
            *calls["iterate" + key],
            *calls["blend" + key],
            *_if_any(shape, calls["test" + key], slots["running"], key, f"again{key}", f"left{after}"),
        ]
    return [*lines, "left:", *finish("_end"), "  br label %ended", "ended:"]


def whole_step(
    shape: Shape,
    calls: Mapping[str, list[str]],
    slots: Mapping[str, int],
    finish: Callable[[str], list[str]],
    further: Sequence[str] = (),
) -> list[str]:
    """An iterative program from its start to its end, with a loop that is not interrupted."""
    loop = iteration_loop(shape, calls, slots, finish, "inner", further)
    return [*calls["start"], "  br label %inner", "inner:", *loop]


def attempt(
    shape: Shape, calls: Mapping[str, list[str]], slots: Mapping[str, int], finish: Callable[[str], list[str]]
) -> list[str]:
    """Its first loop with less patience; the slot ``left`` says which lanes that does not solve."""
    ends = [*calls.get("end", ()), *calls["test"], *calls["unsolved"], *calls.get("excused", ())]
    return whole_step(shape, {**calls, "test": calls["patience"], "end": ends}, slots, finish)


def second_attempt(
    shape: Shape,
    calls: Mapping[str, list[str]],
    slots: Mapping[str, int],
    finish: Callable[[str], list[str]],
    further: Sequence[str],
) -> list[str]:
    """All its loops with less patience; ``left`` as after an attempt."""
    tests = {"test" + key: calls["patience_again" + key] for key in ("", *further)}
    ends = [*calls["unsolved_again"], *calls.get("excused", ())]
    return [*whole_step(shape, {**calls, **tests}, slots, finish, further), *ends]


def _if_any(shape: Shape, test: Sequence[str], active: int, tag: str, yes: str, no: str) -> list[str]:
    """Test, and go to a label if any lane is active, to another one if none is."""
    any_lane = f"%on{tag}" if shape.lanes == 1 else f"%any{tag}"
    reduce = f"  %any{tag} = call i1 @llvm.vector.reduce.or.v{shape.lanes}i1({shape.mask} %on{tag})"
    return [
        *test,
        f"  %place{tag} = getelementptr i8, ptr %ws, i64 {active * shape.bytes}",
        f"  %flags{tag} = load {shape.vector}, ptr %place{tag}, align {shape.bytes}",
        f"  %on{tag} = fcmp une {shape.vector} %flags{tag}, {shape.constant(0.0)}",
        reduce * (shape.lanes > 1),
        f"  br i1 {any_lane}, label %{yes}, label %{no}",
    ]
