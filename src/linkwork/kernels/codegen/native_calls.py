"""Entry points into a kernel through ctypes and from other machine code, as LLVM IR.

They return 1 when the call used up its fuel and is to be continued after signals were handled:

- ``run_bound(context, mode)``: begin (plus ``ZEROED``), end, workspace and table in one block of memory.
- ``run_shared(table, progress, size, end, workspace, mode)``: until none are left, take ``size`` rows and run on them.
  Threads that share ``progress`` share the work, and a slow thread takes less of it.
- ``all_done(progress, end)``: whether all rows are done, now or very soon (a short spin: waking a thread takes longer).
- ``leave(progress, end)``: stop helpers, and wait until all of them have returned.

``mode`` is ``FRESH``, ``FURTHER`` (go on) or ``HELPING`` (do not return before the end, or before others ``leave``).
``progress`` has the words: rows taken, rows done, whether to stop, helpers inside, whether an output is not a number.
"""

from __future__ import annotations

from linkwork.kernels.codegen.driver import BEGIN, BLANK, FUEL, ODD, PAUSED, STOP, Frame
from linkwork.kernels.codegen.fields import fields, stored
from linkwork.system.processors import YIELD

NATIVE = ("run_bound", "run_shared", "all_done", "leave")
"""The functions."""

AMOUNT = 4_000_000
"""Instructions in a turn: some two milliseconds."""

FRESH, FURTHER, HELPING = range(3)
"""Modes of a call."""

ZEROED = 1 << 62
"""Added to the begin of a bound context: outputs that are zero in every state are zero already."""

TAKEN, DONE, STOPPED, INSIDE, ODDS, WORDS = *range(0, 40, 8), 5
"""Where ``progress`` has its words, in bytes, and how many there are."""

LOOKS = 100_000
"""How often a thread polls whether others are done before it sleeps: for some 50 microseconds."""


def native_calls(frame: Frame) -> str:
    """IR of all of them around ``run``."""
    return f"""
declare i64 @run(ptr, i64, i64, ptr)
declare i32 @{YIELD}()

define internal void @refuel(ptr %turn, i1 %fresh, i64 %blank) #0 {{
{fields(("%fuel", "%turn", FUEL, "i64"), ("%paused", "%turn", PAUSED, "i64"), ("%odd", "%turn", ODD, "i64"))}
{stored("%blank", "%turn", BLANK, "blank", "i64")}
  %kept = select i1 %fresh, i64 0, i64 %paused
  %known = select i1 %fresh, i64 0, i64 %odd
  store i64 {AMOUNT}, ptr %at_fuel, align 8
  store i64 %kept, ptr %at_paused, align 8
  store i64 %known, ptr %at_odd, align 8
  ret void
}}

define i64 @run_bound(ptr %context, i64 %mode) #0 {{
{fields(("%start", "%context", 0, "i64"), ("%end", "%context", 8, "i64"), ("%ws", "%context", 16, "ptr"))}
  %begin = and i64 %start, {ZEROED - 1}
  %blank = and i64 %start, {ZEROED}
  %table = getelementptr i8, ptr %context, i64 24
  %turn = getelementptr i8, ptr %ws, i64 {frame.workspace}
  %fresh = icmp eq i64 %mode, {FRESH}
  call void @refuel(ptr %turn, i1 %fresh, i64 %blank)
  %more = call i64 @run(ptr %table, i64 %begin, i64 %end, ptr %ws)
  ret i64 %more
}}

define i64 @run_shared(ptr %table, ptr %progress, i64 %size, i64 %end, ptr %ws, i64 %mode) #0 {{
entry:
  %done = getelementptr i8, ptr %progress, i64 {DONE}
  %stopped = getelementptr i8, ptr %progress, i64 {STOPPED}
  %inside = getelementptr i8, ptr %progress, i64 {INSIDE}
  %odds = getelementptr i8, ptr %progress, i64 {ODDS}
  %turn = getelementptr i8, ptr %ws, i64 {frame.workspace}
  %helping = icmp eq i64 %mode, {HELPING}
  %further = icmp eq i64 %mode, {FURTHER}
  %fresh = xor i1 %further, true
  %one = zext i1 %helping to i64
  atomicrmw add ptr %inside, i64 %one seq_cst
{fields(("%begun", "%turn", BEGIN, "i64"), ("%until", "%turn", STOP, "i64"), ("%full_", "%turn", FUEL, "i64"))}
  call void @refuel(ptr %turn, i1 %fresh, i64 0)
  br i1 %further, label %look, label %take
take:
  %next = atomicrmw add ptr %progress, i64 %size monotonic
  %some = icmp ult i64 %next, %end
  br i1 %some, label %taken, label %exit
taken:
  %full = add i64 %next, %size
  %whole = icmp ule i64 %full, %end
  %last = select i1 %whole, i64 %full, i64 %end
  store i64 %next, ptr %at_begun, align 8
  store i64 %last, ptr %at_until, align 8
  br label %look
look:
  %begin = phi i64 [%begun, %entry], [%next, %taken], [%begin, %refuelled]
  %stop = phi i64 [%until, %entry], [%last, %taken], [%stop, %refuelled]
  %word = load atomic i64, ptr %stopped seq_cst, align 8
  %wanted = icmp eq i64 %word, 0
  br i1 %wanted, label %work, label %exit
work:
  %more = call i64 @run(ptr %table, i64 %begin, i64 %stop, ptr %ws)
  %all = icmp eq i64 %more, 0
  br i1 %all, label %judge, label %paused
paused:
  br i1 %helping, label %refuelled, label %pause
refuelled:
  store i64 {AMOUNT}, ptr %at_full_, align 8
  br label %look
judge:
{fields(("%odd", "%turn", ODD, "i64"))}
  %fine = icmp eq i64 %odd, 0
  br i1 %fine, label %count, label %tell
tell:
  atomicrmw or ptr %odds, i64 %odd monotonic
  br label %count
count:
  %rows = sub i64 %stop, %begin
  atomicrmw add ptr %done, i64 %rows release
  br label %take
pause:
  ret i64 1
exit:
  atomicrmw sub ptr %inside, i64 %one seq_cst
  ret i64 0
}}

define zeroext i1 @all_done(ptr %progress, i64 %end) #0 {{
entry:
  %done = getelementptr i8, ptr %progress, i64 {DONE}
  br label %look
look:
  %looks = phi i64 [0, %entry], [%looks1, %look]
  %rows = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %rows, %end
  %looks1 = add i64 %looks, 1
  %enough = icmp ugt i64 %looks1, {LOOKS}
  %leave = or i1 %all, %enough
  br i1 %leave, label %exit, label %look
exit:
  ret i1 %all
}}

define void @leave(ptr %progress, i64 %end) #0 {{
entry:
  %done = getelementptr i8, ptr %progress, i64 {DONE}
  %stopped = getelementptr i8, ptr %progress, i64 {STOPPED}
  %inside = getelementptr i8, ptr %progress, i64 {INSIDE}
  store atomic i64 1, ptr %stopped seq_cst, align 8
  br label %look
look:
  %rows = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %rows, %end
  %helpers = load atomic i64, ptr %inside seq_cst, align 8
  %none = icmp eq i64 %helpers, 0
  %over = or i1 %all, %none
  br i1 %over, label %exit, label %wait
wait:
  %nothing = call i32 @{YIELD}()
  br label %look
exit:
  ret void
}}
"""
