"""States that their tile leaves unsolved are solved W at a time in tiles of their own, as LLVM IR.

A tile of lanes makes as many iterations as the slowest of its states. So it only *attempts* a step: the first loop,
with less patience than that may take. States that are left by that are noted; when there are some, they are gathered
side by side, and take the step as a *whole*, all loops from the first on. No state's result depends on the others of
its tile, so this changes no bit of it; what it costs is that some states begin a step twice.

The list is a word that says how many states are noted, and their numbers. A driver
(:mod:`linkwork.kernels.codegen.gathering_driver`, :mod:`linkwork.kernels.codegen.rollout_blocks`) says what a number
means, by two functions of its own: ``gather_state(table, ws, state, lane)`` fills a lane of the tile with what the step
needs, ``scatter_state`` takes the results out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwork.kernels.codegen.driver import Frame, row_of
from linkwork.kernels.codegen.lower import Shape

TILES = 64
"""The most tiles whose states share tiles: enough that these are full."""

HEADER = 8
"""Bytes of a list before its states."""

DECLARED = "declare i64 @llvm.umin.i64(i64, i64)"


def steps_of(calls: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """Functions of these names, which make these calls on a tile."""
    return "".join(
        f"""
define internal void @{name}(ptr %ws) #0 {{
{chr(10).join(calls[name])}
  ret void
}}
"""
        for name in names
    )


def note(shape: Shape, left: int, then: str = "") -> str:
    """``note``: append the lanes that an attempt has left, as states; whether there are any such states.

    Numbers of states begin with ``number``. ``note_lane`` does so for one lane. The slot ``left`` says which are left;
    only ``valid`` lanes are states. ``then`` may move each within ``%states``: it is behind ``%count`` others.
    """
    w, scalar, place = shape.lanes, shape.scalar, left * shape.bytes
    return f"""
define internal i1 @note(ptr %ws, ptr %list, i64 %number, i64 %valid) #0 {{
entry:
  %place = getelementptr i8, ptr %ws, i64 {place}
  %flags = load {shape.vector}, ptr %place, align {shape.bytes}
  %mask = fcmp une {shape.vector} %flags, {shape.constant(0.0)}
  %some = call i1 @llvm.vector.reduce.or.v{w}i1({shape.mask} %mask)
  br i1 %some, label %begin, label %exit
begin:
  %lanes = call i64 @llvm.umin.i64(i64 %valid, i64 {w})
  %before = load i64, ptr %list, align 8
  br label %each
each:
  %k = phi i64 [0, %begin], [%k1, %each]
  %state = add i64 %number, %k
  %lane = getelementptr {scalar}, ptr %ws, i64 %k
  call void @note_lane(ptr %ws, ptr %list, i64 %state, ptr %lane)
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %lanes
  br i1 %more, label %each, label %noted
noted:
  %after = load i64, ptr %list, align 8
  %any = icmp ne i64 %after, %before
  ret i1 %any
exit:
  ret i1 false
}}

define internal void @note_lane(ptr %ws, ptr %list, i64 %state, ptr %lane) #0 {{
  %place = getelementptr i8, ptr %lane, i64 {place}
  %flag = load {scalar}, ptr %place, align {shape.size}
  %left = fcmp une {scalar} %flag, 0.0
  br i1 %left, label %add, label %exit
add:
  %count = load i64, ptr %list, align 8
  %states = getelementptr i8, ptr %list, i64 {HEADER}
  %at = getelementptr i64, ptr %states, i64 %count
  store i64 %state, ptr %at, align 8
{then}
  %count1 = add i64 %count, 1
  store i64 %count1, ptr %list, align 8
  br label %exit
exit:
  ret void
}}
"""


def solve(shape: Shape, step: str = "whole", then: str = "") -> str:
    """``solve_whole``: that step for the last states of the list, at most W.

    Idle lanes repeat one of them. The same for another step. ``then`` comes after each: ``%state_out`` is in
    ``%lane_out``.
    """
    w, scalar, state = shape.lanes, shape.scalar, "ptr %table, ptr %ws, i64"
    return f"""
define internal void @solve_{step}(ptr %table, ptr %ws, ptr %list) #0 {{
entry:
  %states = getelementptr i8, ptr %list, i64 {HEADER}
  %count = load i64, ptr %list, align 8
  %last = sub i64 %count, 1
  %some = call i64 @llvm.umin.i64(i64 %count, i64 {w})
  %rest = sub i64 %count, %some
  store i64 %rest, ptr %list, align 8
  br label %gather
gather:
  %g = phi i64 [0, %entry], [%g1, %gather]
  %behind = add i64 %rest, %g
  %which = call i64 @llvm.umin.i64(i64 %behind, i64 %last)
  %at_in = getelementptr i64, ptr %states, i64 %which
  %state_in = load i64, ptr %at_in, align 8
  %lane_in = getelementptr {scalar}, ptr %ws, i64 %g
  call void @gather_state({state} %state_in, ptr %lane_in)
  %g1 = add i64 %g, 1
  %more_in = icmp ult i64 %g1, {w}
  br i1 %more_in, label %gather, label %solved
solved:
  call void @{step}(ptr %ws)
  br label %scatter
scatter:
  %s = phi i64 [0, %solved], [%s1, %scatter]
  %next = add i64 %rest, %s
  %at_out = getelementptr i64, ptr %states, i64 %next
  %state_out = load i64, ptr %at_out, align 8
  %lane_out = getelementptr {scalar}, ptr %ws, i64 %s
  call void @scatter_state({state} %state_out, ptr %lane_out)
{then}
  %s1 = add i64 %s, 1
  %more_out = icmp ult i64 %s1, %some
  br i1 %more_out, label %scatter, label %exit
exit:
  ret void
}}
"""


def moves(shape: Shape) -> str:
    """``strided``, by which :func:`moved` moves the numbers of a state."""
    scalar = shape.scalar
    return f"""
define internal void @strided(ptr %to, i64 %far, ptr %from, i64 %apart, i64 %count) #0 {{
entry:
  br label %look
look:
  %k = phi i64 [0, %entry], [%k1, %move]
  %some = icmp ult i64 %k, %count
  br i1 %some, label %move, label %exit
move:
  %i = mul i64 %k, %apart
  %source = getelementptr {scalar}, ptr %from, i64 %i
  %x = load {scalar}, ptr %source, align {shape.size}
  %j = mul i64 %k, %far
  %target = getelementptr {scalar}, ptr %to, i64 %j
  store {scalar} %x, ptr %target, align {shape.size}
  %k1 = add i64 %k, 1
  br label %look
exit:
  ret void
}}
"""


def moved(frame: Frame, ports: Sequence[int], inward: bool) -> list[str]:
    """Move these ports between ``%row`` of the user's memory and ``%lane`` of the tile."""
    lines = []
    for k in ports:
        places, shape = frame.places[k], frame.shape
        user, mine = f"ptr %u{k}, i64 1", f"ptr %w{k}, i64 {shape.lanes}"
        lines += [
            row_of(shape, k, "%row"),
            f"  %w{k} = getelementptr i8, ptr %lane, i64 {(places[0] if places else 0) * shape.bytes}",
            f"  call void @strided({f'{mine}, {user}' if inward else f'{user}, {mine}'}, i64 {len(places)})",
        ]
    return lines
