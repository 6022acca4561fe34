"""Rollouts of a block of tiles whose lanes hardly wait for each other, as LLVM IR.

The tiles of a block take turns (:mod:`linkwork.kernels.codegen.gathered_states` has the words):

    1. Each tile takes steps by attempts. It stops at the end of time, or where an attempt leaves states unsolved. These
       are noted, and stay at the beginning of that step; the others have taken it.
    2. States that are noted take the step as a whole: side by side those that took as many iterations when they were
       here last, for they are likely to do so again. The results go back to where the states were, and all tiles go on.

A block of one tile takes whole steps from the beginning.

A tile that does not run has its state in its *home*, laid out as the beginning of the workspace. Behind the homes are
the *times* of tiles, how many steps they took; the *first* row of the block; the *list*, in which states are numbers in
the block; and the *efforts*: the iterations of every state when it was gathered last, or zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linkwork.kernels.codegen.driver import Frame, burning, declarations, pausing, resuming
from linkwork.kernels.codegen.fields import field_of, load, store
from linkwork.kernels.codegen.gathered_states import DECLARED, HEADER, TILES, moved, moves, note, solve, steps_of
from linkwork.kernels.codegen.lower import ATTRIBUTES, Shape
from linkwork.kernels.codegen.time_driver import PREFETCH, STEPS_AND_EVERY, WHEN_RECORDED, WHICH_RECORD, Ports

BYTES = 512 * 1024
"""The most bytes of the homes of a block, half of a second-level cache."""


@dataclass(frozen=True)
class Block:
    """Bytes of a workspace: those of a tile, and how many of them, its state, are kept in its home."""

    kept: int
    tile: int
    shape: Shape

    @property
    def tiles(self) -> int:
        return max(1, min(TILES, BYTES // self.kept))

    @property
    def rows(self) -> int:
        return self.tiles * self.shape.lanes

    @property
    def times(self) -> int:
        """Where the times are, behind the homes."""
        return self.tile + self.tiles * self.kept

    @property
    def first(self) -> int:
        """Where the first row of the block is."""
        return self.times + 8 * self.tiles

    @property
    def list(self) -> int:
        """Where the list is."""
        return self.first + 8

    @property
    def efforts(self) -> int:
        """Where the efforts are."""
        return self.list + HEADER + 8 * self.rows

    @property
    def workspace(self) -> int:
        """Of all: the tile that runs, homes, times, the first row, the list, efforts."""
        return -(-(self.efforts + self.shape.size * self.rows) // 64) * 64


def block_driver(
    frame: Frame,
    block: Block,
    fixed: int,
    timed: int,
    calls: Mapping[str, Sequence[str]],
    slots: Mapping[str, int],
    chunks: Sequence[str],
    cost: int,
) -> str:
    """IR of ``run``, with the table of :mod:`linkwork.kernels.codegen.time_driver`.

    ``calls`` are those of the `start` of a rollout, of an `attempt` and of a `whole` step. The slot ``left`` says which
    lanes an attempt has left, ``iterations`` how many of them a step took.
    """
    ports, shape, newline = Ports(frame, fixed, timed), frame.shape, "\n"
    tile = "ptr %table, i64 %row, i64 %end, ptr %ws"
    given = [*ports.fixed, *ports.timed]
    return f"""
{declarations(frame, chunks)}
{PREFETCH}
{DECLARED}
define internal void @enter({tile}) #0 {{
{newline.join([*ports.fields(ports.state), *ports.taken(ports.state, "%row"), *calls["start"]])}
  ret void
}}

define internal void @take_all({tile}, i64 %t) #0 {{
{newline.join([*ports.fields(given), *ports.valued(), *ports.taken(given, "%row")])}
  ret void
}}

define internal void @take_new({tile}, i64 %t) #0 {{
{newline.join([*ports.fields(ports.timed), *ports.taken_in_time()])}
  ret void
}}

define internal void @record({tile}, i64 %frame) #0 {{
{newline.join([*ports.fields(ports.records), *ports.recorded()])}
  ret void
}}

define internal void @survive({tile}) #0 {{
{newline.join([*ports.fields([ports.records.stop]), ports.last])}
  ret void
}}

{steps_of(calls, ("attempt", "whole"))}
{_places(block)}
{_by_effort(block)}
{note(shape, slots["left"], _SORTED)}
{_moves(ports, block, slots["iterations"])}
{moves(shape)}
{solve(shape)}

define i64 @run(ptr %table, i64 %begin, i64 %end, ptr %ws) #0 {{
entry:
{newline.join(STEPS_AND_EVERY)}
{resuming(frame)}
  %list = getelementptr i8, ptr %ws, i64 {block.list}
  br i1 %resumed, label %resume, label %fresh
resume:
{load("%lo_saved", "%ws", block.first, "i64")}
  br label %look
fresh:
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %block, label %exit
block:
  %lo_new = phi i64 [%begin, %fresh], [%hi, %over]
{store("%list", 0, "0", "i64")}
{store("%ws", block.first, "%lo_new", "i64")}
  %full_new = add i64 %lo_new, {block.rows}
  %hi_new = call i64 @llvm.umin.i64(i64 %full_new, i64 %end)
  br label %entering
entering:
  %entered = phi i64 [%lo_new, %block], [%entered1, %entering]
  %number_new = sub i64 %entered, %lo_new
  %home_new = call ptr @home(ptr %ws, i64 %number_new)
  call void @enter(ptr %table, i64 %entered, i64 %end, ptr %home_new)
  %time_new = call ptr @time(ptr %ws, i64 %number_new)
  store i64 0, ptr %time_new, align 8
  %effort_new = call ptr @effort(ptr %ws, i64 %number_new)
  store {shape.vector} {shape.constant(0.0)}, ptr %effort_new, align {shape.size}
  %entered1 = add i64 %entered, {shape.lanes}
  %others = icmp ult i64 %entered1, %hi_new
  br i1 %others, label %entering, label %sweep
sweep:
  %lo_sweep = phi i64 [%lo_new, %entering], [%lo, %solved]
  %full_sweep = add i64 %lo_sweep, {block.rows}
  %hi_sweep = call i64 @llvm.umin.i64(i64 %full_sweep, i64 %end)
  br label %next
next:
  %lo_next = phi i64 [%lo_sweep, %sweep], [%lo_next, %over_time], [%lo, %stop]
  %hi_next = phi i64 [%hi_sweep, %sweep], [%hi_next, %over_time], [%hi, %stop]
  %row_next = phi i64 [%lo_sweep, %sweep], [%row_next1, %over_time], [%row1, %stop]
  %within = icmp ult i64 %row_next, %hi_next
  br i1 %within, label %ask, label %look
ask:
  %number_next = sub i64 %row_next, %lo_next
  %time_next = call ptr @time(ptr %ws, i64 %number_next)
  %t_next = load i64, ptr %time_next, align 8
  %early = icmp ult i64 %t_next, %steps
  br i1 %early, label %begin_run, label %over_time
over_time:
  %row_next1 = add i64 %row_next, {shape.lanes}
  br label %next
begin_run:
  %home_next = call ptr @home(ptr %ws, i64 %number_next)
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %ws, ptr align 64 %home_next, i64 {block.kept}, i1 false)
  call void @take_all(ptr %table, i64 %row_next, i64 %end, ptr %ws, i64 %t_next)
  br label %look
look:
  %lo = phi i64 [%lo_saved, %resume], [%lo_next, %next], [%lo_next, %begin_run], [%lo, %taken], [%lo, %solving]
  %row = phi i64 [%saved, %resume], [%row_next, %next], [%row_next, %begin_run], [%row, %taken], [%row, %solving]
  %t = phi i64 [%since, %resume], [0, %next], [%t_next, %begin_run], [%t1, %taken], [0, %solving]
{burning(cost)}
  %full = add i64 %lo, {block.rows}
  %hi = call i64 @llvm.umin.i64(i64 %full, i64 %end)
  %runs = icmp ult i64 %row, %hi
  br i1 %runs, label %step, label %swept
step:
  %number = sub i64 %row, %lo
  call void @take_new(ptr %table, i64 %row, i64 %end, ptr %ws, i64 %t)
  %count_of_rows = sub i64 %hi, %lo
  %alone = icmp ule i64 %count_of_rows, {shape.lanes}
  br i1 %alone, label %step_alone, label %step_beside
step_alone:
  call void @whole(ptr %ws)
  br label %stepped
step_beside:
  call void @attempt(ptr %ws)
  %valid = sub i64 %end, %row
  %noted = call i1 @note(ptr %ws, ptr %list, i64 %number, i64 %valid)
  br label %stepped
stepped:
  %leaves = phi i1 [false, %step_alone], [%noted, %step_beside]
{WHEN_RECORDED}
  br i1 %due, label %recording, label %recorded
recording:
{WHICH_RECORD}
  call void @record(ptr %table, i64 %row, i64 %end, ptr %ws, i64 %frame)
  br label %recorded
recorded:
  %at_end = icmp uge i64 %t1, %steps
  %stops = or i1 %leaves, %at_end
  br i1 %stops, label %stop, label %taken
taken:
  br label %look
stop:
  %home = call ptr @home(ptr %ws, i64 %number)
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %home, ptr align 64 %ws, i64 {block.kept}, i1 false)
  %time = call ptr @time(ptr %ws, i64 %number)
  store i64 %t1, ptr %time, align 8
  %row1 = add i64 %row, {shape.lanes}
  br label %next
swept:
  %count = load i64, ptr %list, align 8
  %none = icmp eq i64 %count, 0
  br i1 %none, label %ending, label %solve
solve:
  call void @solve_whole(ptr %table, ptr %ws, ptr %list)
  %rest = load i64, ptr %list, align 8
  %all = icmp eq i64 %rest, 0
  br i1 %all, label %solved, label %solving
solving:
  br label %look
solved:
  br label %sweep
ending:
  %ended = phi i64 [%lo, %swept], [%ended1, %ending]
  %number_old = sub i64 %ended, %lo
  %home_old = call ptr @home(ptr %ws, i64 %number_old)
  call void @survive(ptr %table, i64 %ended, i64 %end, ptr %home_old)
  %ended1 = add i64 %ended, {shape.lanes}
  %unended = icmp ult i64 %ended1, %hi
  br i1 %unended, label %ending, label %over
over:
  %beyond = icmp ult i64 %hi, %end
  br i1 %beyond, label %block, label %exit
{pausing("%t")}
exit:
  ret i64 0
}}
{ATTRIBUTES}"""


def _places(block: Block) -> str:
    """By the number of a state in the block: ``home`` and ``time`` of its tile, its ``effort``."""
    return f"""
define internal ptr @home(ptr %ws, i64 %state) #0 {{
  %tile = udiv i64 %state, {block.shape.lanes}
  %far = mul i64 %tile, {block.kept}
  %homes = getelementptr i8, ptr %ws, i64 {block.tile}
  %home = getelementptr i8, ptr %homes, i64 %far
  ret ptr %home
}}

define internal ptr @time(ptr %ws, i64 %state) #0 {{
  %tile = udiv i64 %state, {block.shape.lanes}
  %times = getelementptr i8, ptr %ws, i64 {block.times}
  %time = getelementptr i64, ptr %times, i64 %tile
  ret ptr %time
}}

define internal ptr @effort(ptr %ws, i64 %state) #0 {{
  %efforts = getelementptr i8, ptr %ws, i64 {block.efforts}
  %effort = getelementptr {block.shape.scalar}, ptr %efforts, i64 %state
  ret ptr %effort
}}"""


_SORTED = "  call void @by_effort(ptr %ws, ptr %states, i64 %count)"


def _by_effort(block: Block) -> str:
    """``by_effort``: move the last state, behind ``count`` others, to its place; less effort comes first."""
    scalar, size = block.shape.scalar, block.shape.size
    return f"""
define internal void @by_effort(ptr %ws, ptr %states, i64 %count) #0 {{
entry:
  %last = getelementptr i64, ptr %states, i64 %count
  %state = load i64, ptr %last, align 8
  %effort_at = call ptr @effort(ptr %ws, i64 %state)
  %effort = load {scalar}, ptr %effort_at, align {size}
  br label %compare
compare:
  %k = phi i64 [%count, %entry], [%k1, %shift]
  %at = getelementptr i64, ptr %states, i64 %k
  %first = icmp eq i64 %k, 0
  br i1 %first, label %put, label %beside
beside:
  %k1 = sub i64 %k, 1
  %at1 = getelementptr i64, ptr %states, i64 %k1
  %other = load i64, ptr %at1, align 8
  %other_at = call ptr @effort(ptr %ws, i64 %other)
  %other_effort = load {scalar}, ptr %other_at, align {size}
  %more = fcmp ogt {scalar} %other_effort, %effort
  br i1 %more, label %shift, label %put
shift:
  store i64 %other, ptr %at, align 8
  br label %compare
put:
  store i64 %state, ptr %at, align 8
  ret void
}}
"""


def _moves(ports: Ports, block: Block, iterations: int) -> str:
    """``gather_state`` and ``scatter_state``: between a lane and the state's home, inputs and records."""
    shape, newline = block.shape, "\n"
    w, scalar, size, slots = shape.lanes, shape.scalar, shape.size, block.kept // shape.bytes
    given = [*ports.fixed, *ports.timed]
    recorded = [line for k in ports.records for line in (*ports.record_of(k), *moved(ports.frame, [k], False))]
    place = f"""{load("%lo", "%ws", block.first, "i64")}
  %row = add i64 %lo, %state
  %time = call ptr @time(ptr %ws, i64 %state)
  %after = load i64, ptr %time, align 8
  %t = sub i64 %after, 1
  %home = call ptr @home(ptr %ws, i64 %state)
  %number = urem i64 %state, {w}
  %at_home = getelementptr {scalar}, ptr %home, i64 %number"""
    return f"""
define internal void @gather_state(ptr %table, ptr %ws, i64 %state, ptr %lane) #0 {{
{place}
  call void @strided(ptr %lane, i64 {w}, ptr %at_home, i64 {w}, i64 {slots})
{newline.join([*ports.fields(given), *ports.valued(), *moved(ports.frame, given, True)])}
  ret void
}}

define internal void @scatter_state(ptr %table, ptr %ws, i64 %state, ptr %lane) #0 {{
{place}
  call void @strided(ptr %at_home, i64 {w}, ptr %lane, i64 {w}, i64 {slots})
  %used_at = getelementptr i8, ptr %lane, i64 {iterations * shape.bytes}
  %used = load {scalar}, ptr %used_at, align {size}
  %effort = call ptr @effort(ptr %ws, i64 %state)
  store {scalar} %used, ptr %effort, align {size}
{newline.join(field_of("%every", "%table", 8, "i64"))}
{WHEN_RECORDED}
  br i1 %due, label %record, label %exit
record:
{WHICH_RECORD}
{newline.join([*ports.fields(ports.records), *recorded])}
  br label %exit
exit:
  ret void
}}
"""
