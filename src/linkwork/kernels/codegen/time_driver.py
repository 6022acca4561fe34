"""The function around a loop over time, as LLVM IR: one tile after the other takes all its steps.

``run(table, begin, end, workspace)`` is as in :mod:`linkwork.kernels.codegen.driver`. ``table`` has the number of steps
and the steps between records, then for every port, inputs first, four numbers: a pointer, the distance between rows,
that between times, and for how many steps a value is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from linkwork.kernels.codegen.driver import Frame, burning, declarations, pausing, resuming, take_in, take_out
from linkwork.kernels.codegen.fields import CACHE_LINE, field_of
from linkwork.kernels.codegen.lower import ATTRIBUTES

FETCHED = 16 * 1024
"""Bytes of a timed input that are prefetched, one instruction for each cache line: half of the innermost cache."""


def time_driver(frame: Frame, timed: int, calls: Mapping[str, Sequence[str]], chunks: Sequence[str], cost: int) -> str:
    """IR of ``run``: the calls of `start` for every tile, and in every step those of `step` and `blend`.

    The last inputs are ``timed``; the last output is written once, after all steps.
    """
    ports, newline = Ports(frame, 0, timed), "\n"
    return f"""
{declarations(frame, chunks)}
{PREFETCH}
define i64 @run(ptr %table, i64 %begin, i64 %end, ptr %ws) #0 {{
entry:
{newline.join([*STEPS_AND_EVERY, *ports.fields(range(len(frame.places)))])}
{resuming(frame)}
  br i1 %resumed, label %step, label %fresh
fresh:
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %tile, label %exit
tile:
  %first = phi i64 [%begin, %fresh], [%row1, %finished]
{newline.join(ports.taken([*ports.fixed, *ports.state], "%first"))}
{newline.join(calls["start"])}
  br label %step
step:
  %row = phi i64 [%first, %tile], [%row, %recorded], [%saved, %entry]
  %t = phi i64 [0, %tile], [%t1, %recorded], [%since, %entry]
{burning(cost)}
{newline.join(ports.taken_in_time())}
{newline.join(calls["step"])}
{newline.join(calls["blend"])}
{WHEN_RECORDED}
  br i1 %due, label %record, label %recorded
record:
{WHICH_RECORD}
{newline.join(ports.recorded())}
  br label %recorded
recorded:
  %onward = icmp ult i64 %t1, %steps
  br i1 %onward, label %step, label %finished
finished:
{ports.last}
  %row1 = add i64 %row, {frame.shape.lanes}
  %more = icmp ult i64 %row1, %end
  br i1 %more, label %tile, label %exit
{pausing("%t")}
exit:
  ret i64 0
}}
{ATTRIBUTES}"""


PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
STEPS_AND_EVERY = field_of("%steps", "%table", 0, "i64") + field_of("%every", "%table", 8, "i64")
WHEN_RECORDED = """  %t1 = add i64 %t, 1
  %phase = urem i64 %t1, %every
  %due = icmp eq i64 %phase, 0"""
"""The next time, and whether what is reached by then is recorded."""

WHICH_RECORD = """  %frames = udiv i64 %t1, %every
  %frame = sub i64 %frames, 1"""


class Ports:
    """How ports are moved between the user's memory and a tile, ``%ws``.

    Each is a line of a table (see the module's text); ``fields`` loads it. The first inputs are ``fixed`` in time, the
    last ``timed``; the others are the state.
    """

    def __init__(self, frame: Frame, fixed: int, timed: int) -> None:
        self.frame, inputs = frame, len(frame.inputs)
        self.fixed, self.state = range(fixed), range(fixed, inputs - timed)
        self.timed = range(inputs - timed, inputs)
        self.records = range(inputs, len(frame.places) - 1)

    def fields(self, ports: Iterable[int]) -> list[str]:
        """Load what the table says of these ports."""
        lines = []
        for k in ports:
            at, base = 16 + 32 * k, "base" if k in self.timed or k in self.records else "port"
            lines += field_of(f"%{base}{k}", "%table", at) + field_of(f"%stride{k}", "%table", at + 8, "i64")
            lines += field_of(f"%time{k}", "%table", at + 16, "i64") + field_of(f"%hold{k}", "%table", at + 24, "i64")
        return lines

    def taken(self, ports: Iterable[int], row: str) -> list[str]:
        """Inputs at the beginning."""
        return [take_in(self.frame.shape, k, self.frame.places[k], row) for k in ports]

    def taken_in_time(self) -> list[str]:
        """Timed inputs, at the times at which they change."""
        lines = list[str]()
        for k in self.timed:
            lines += [
                f"  %phase{k} = urem i64 %t, %hold{k}",
                f"  %new{k} = icmp eq i64 %phase{k}, 0",
                f"  br i1 %new{k}, label %take{k}, label %taken{k}",
                f"take{k}:",
                *self.value_of(k),
                take_in(self.frame.shape, k, self.frame.places[k]),
                *_prefetch(self.frame, k),
                f"  br label %taken{k}",
                f"taken{k}:",
            ]
        return lines

    def valued(self) -> list[str]:
        """Find the values of all timed inputs at ``%t``."""
        return [line for k in self.timed for line in self.value_of(k)]

    def value_of(self, k: int) -> list[str]:
        """Find the value of a timed input at ``%t``."""
        return [
            f"  %knot{k} = udiv i64 %t, %hold{k}",
            f"  %ahead{k} = mul i64 %knot{k}, %time{k}",
            f"  %port{k} = getelementptr {self.frame.shape.scalar}, ptr %base{k}, i64 %ahead{k}",
        ]

    def recorded(self) -> list[str]:
        """Outputs, as the record ``%frame``."""
        return [line for k in self.records for line in (*self.record_of(k), take_out(self.frame, k))]

    def record_of(self, k: int) -> list[str]:
        """Find the record ``%frame`` of a port."""
        return [
            f"  %ahead{k} = mul i64 %frame, %time{k}",
            f"  %port{k} = getelementptr {self.frame.shape.scalar}, ptr %base{k}, i64 %ahead{k}",
        ]

    @property
    def last(self) -> str:
        """The output that is written once."""
        return take_out(self.frame, len(self.frame.places) - 1)


def _prefetch(frame: Frame, k: int) -> list[str]:
    """Prefetch the rows of the next time: waiting for them took a fifth of Go1's step."""
    shape, code = frame.shape, [f"  %next{k} = getelementptr {frame.shape.scalar}, ptr %port{k}, i64 %time{k}"]
    for lane in range(shape.lanes):
        name = f"{k}_{lane}"
        code += [
            f"  %pr{name} = add i64 %row, {lane}",
            f"  %po{name} = mul i64 %pr{name}, %stride{k}",
            f"  %pp{name} = getelementptr {shape.scalar}, ptr %next{k}, i64 %po{name}",
        ]
        for at in range(0, min(len(frame.places[k]) * shape.size, FETCHED // shape.lanes), CACHE_LINE):
            code.append(f"  %pq{name}_{at} = getelementptr i8, ptr %pp{name}, i64 {at}")
            code.append(f"  call void @llvm.prefetch.p0(ptr %pq{name}_{at}, i32 0, i32 3, i32 1)")
    return code
