"""The function around an iterative program some of whose states take much longer, as LLVM IR.

``run(table, begin, end, workspace)`` is as in :mod:`linkwork.kernels.codegen.driver`. Tiles attempt the step and write
their results. States that are left by that (:mod:`linkwork.kernels.codegen.gathered_states`) are rows of the batch:
they are read again from the user's inputs when W of them are noted, or at the end, and their results are written over.
If the program has further loops, they make a *second attempt* first, in all loops, for some iterations: few states
take ten times as many as others that are left. Rows of one tile take the step as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from linkwork.kernels.codegen.driver import (
    FUEL,
    ODD,
    Frame,
    burning,
    declarations,
    judging,
    pausing,
    resuming,
    take_in,
    take_out,
)
from linkwork.kernels.codegen.fields import field_of, load, store
from linkwork.kernels.codegen.gathered_states import DECLARED, HEADER, moved, moves, note, solve, steps_of
from linkwork.kernels.codegen.lower import ATTRIBUTES, Shape

SOLVED = 8
"""How many times a tile's cost that of a tile of states that were left is, as far as it is estimated."""


def with_lists(frame: Frame) -> Frame:
    """The frame with the lists behind its tile."""
    return replace(frame, workspace=frame.workspace + LISTS * _list_bytes(frame.shape))


LISTS = 2
"""The most lists: of states for a second attempt, and for the whole step."""


def _list_bytes(shape: Shape) -> int:
    """Of a list: fewer than W states, and those of another tile."""
    return -(-(HEADER + 8 * 2 * shape.lanes) // 64) * 64


def gathering_driver(
    frame: Frame,
    calls: Mapping[str, Sequence[str]],
    slots: Mapping[str, int],
    chunks: Sequence[str],
    cost: int,
) -> str:
    """IR of ``run``, by the calls of an `attempt`, a `second_attempt` if there is one, and a `whole` step.

    The slot ``left`` says which lanes an attempt has left. The lists are behind the tile of this ``frame``.
    """
    shape, count, newline = frame.shape, len(frame.inputs), "\n"
    inputs, outputs = range(count), range(count, count + len(frame.outputs))
    rounds = [name for name in ("second_attempt", "whole") if name in calls]
    return f"""
{declarations(frame, chunks)}
{DECLARED}
{steps_of(calls, ("attempt", *rounds))}
{note(shape, slots["left"])}
define internal void @gather_state(ptr %table, ptr %ws, i64 %row, ptr %lane) #0 {{
{newline.join([*_fields(inputs), *moved(frame, inputs, True)])}
  ret void
}}

define internal void @scatter_state(ptr %table, ptr %ws, i64 %row, ptr %lane) #0 {{
{newline.join([*_fields(outputs), *moved(frame, outputs, False)])}
  ret void
}}
{moves(shape)}
{"".join(_solve(frame, rounds, k) for k in range(len(rounds)))}
{_odd_vectors(shape)}
define i64 @run(ptr %table, i64 %begin, i64 %end, ptr %ws) #0 {{
entry:
{newline.join(_fields([*inputs, *outputs]))}
{resuming(with_lists(frame))}
{newline.join(_list(frame, k) for k in range(len(rounds)))}
  %rows = sub i64 %end, %begin
  %alone = icmp ule i64 %rows, {shape.lanes}
  br i1 %resumed, label %look, label %fresh
fresh:
{newline.join(f"  store i64 0, ptr %list{k}, align 8" for k in range(len(rounds)))}
  br label %look
look:
  %row = phi i64 [%begin, %fresh], [%saved, %entry], [%row1, %finished], [%row, %solved]
{burning(cost)}
  %within = icmp ult i64 %row, %end
{newline.join(_turns(rounds, shape))}
  br i1 %within, label %tile, label %exit
tile:
{newline.join(take_in(shape, k, frame.places[k]) for k in inputs)}
  br i1 %alone, label %tile_alone, label %tile_beside
tile_alone:
  call void @whole(ptr %ws)
  br label %finished
tile_beside:
  call void @attempt(ptr %ws)
  %valid = sub i64 %end, %row
  %some = call i1 @note(ptr %ws, ptr %list0, i64 %row, i64 %valid)
  br label %finished
finished:
{newline.join(take_out(frame, k) for k in outputs)}
{newline.join(judging(frame))}
  %row1 = add i64 %row, {shape.lanes}
  br label %look
solved:
{newline.join(_judged(frame, outputs))}
{load("%rest", "%turn", FUEL, "i64")}
  %rest1 = sub i64 %rest, {SOLVED * cost}
{store("%turn", FUEL, "%rest1", "i64")}
  br label %look
{pausing()}
exit:
  ret i64 0
}}
{ATTRIBUTES}"""


def _list(frame: Frame, k: int) -> str:
    return f"  %list{k} = getelementptr i8, ptr %ws, i64 {frame.workspace + k * _list_bytes(frame.shape)}"


def _solve(frame: Frame, rounds: Sequence[str], k: int) -> str:
    """What a round does with a tile of states; what it leaves goes to the list of the next one."""
    if rounds[k] == rounds[-1]:
        return solve(frame.shape, rounds[k])
    call = f"  call void @note_lane(ptr %ws, ptr %list{k + 1}, i64 %state_out, ptr %lane_out)"
    return solve(frame.shape, rounds[k], f"{_list(frame, k + 1)}\n{call}")


def _turns(rounds: Sequence[str], shape: Shape) -> list[str]:
    """A round, the last one first, if states for it fill a tile, or no more of them will come."""
    lines = [f"  %noted{k} = load i64, ptr %list{k}, align 8" for k in range(len(rounds))]
    lines += ["  %coming0 = or i1 %within, false"]
    for k in range(1, len(rounds)):
        lines += [f"  %before{k} = icmp ne i64 %noted{k - 1}, 0", f"  %coming{k} = or i1 %coming{k - 1}, %before{k}"]
    for k in reversed(range(len(rounds))):
        lines += [
            f"  %least{k} = select i1 %coming{k}, i64 {shape.lanes}, i64 1",
            f"  %ready{k} = icmp uge i64 %noted{k}, %least{k}",
            f"  br i1 %ready{k}, label %solve{k}, label %other{k}",
            f"solve{k}:",
            f"  call void @solve_{rounds[k]}(ptr %table, ptr %ws, ptr %list{k})",
            "  br label %solved",
            f"other{k}:",
        ]
    return lines


def _fields(ports: Sequence[int]) -> list[str]:
    """Load what the table says of these ports."""
    lines = []
    for k in ports:
        lines += field_of(f"%port{k}", "%table", 16 * k) + field_of(f"%stride{k}", "%table", 16 * k + 8, "i64")
    return lines


def _judged(frame: Frame, outputs: Sequence[int]) -> list[str]:
    """Set ``ODD`` if an output of gathered states is not a number; idle lanes have that of another."""
    lines = [load("%odd_before", "%turn", ODD, "i64")]
    last = "%odd_before"
    for k in outputs:
        if places := frame.places[k]:
            lines += [
                f"  %v{k} = getelementptr i8, ptr %ws, i64 {places[0] * frame.shape.bytes}",
                f"  %strange{k} = call i64 @odd_vectors(ptr %v{k}, i64 {len(places)})",
                f"  %any{k} = or i64 {last}, %strange{k}",
            ]
            last = f"%any{k}"
    return [*lines, store("%turn", ODD, last, "i64")]


def _odd_vectors(shape: Shape) -> str:
    """``odd_vectors(x, n)``: 1 if any of n vectors has something that is not a number, else 0."""
    v = shape.vector
    return f"""
define internal i64 @odd_vectors(ptr %x, i64 %n) #0 {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%k1, %loop]
  %sum = phi {v} [zeroinitializer, %entry], [%sum1, %loop]
  %at = getelementptr {v}, ptr %x, i64 %k
  %y = load {v}, ptr %at, align {shape.bytes}
  %zero = fsub {v} %y, %y
  %sum1 = fadd {v} %sum, %zero
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %loop, label %exit
exit:
  %which = fcmp uno {v} %sum1, %sum1
  %any = call i1 @llvm.vector.reduce.or.v{shape.lanes}i1({shape.mask} %which)
  %word = zext i1 %any to i64
  ret i64 %word
}}
"""
