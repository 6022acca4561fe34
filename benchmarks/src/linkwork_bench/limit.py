"""The utilisation of batch kernels: their vector operations against the machine's limit.

The limit is measured, in turns with the kernel: a native loop of multiply-adds on full registers that depend on nothing
(on current x86: two per cycle, at the clock rate that the processor has for such code). A kernel's vector operations
are counted exactly: what is left of its program after fusing multiply-adds, and the arithmetic of every sine with its
cosine. Loads, stores and the transposition of rows into lanes are not counted, and take their share of the time.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable
from functools import cache, partial

from linkwork.kernels import Kernel, Program
from linkwork.kernels.calls.thread_pool import POOL, nothing
from linkwork.kernels.codegen.lower import ATTRIBUTES, Shape
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.compile import Linked, emit
from linkwork.kernels.object_code.image import Options, sine_module
from linkwork.kernels.programs.fuse import fuse
from linkwork_bench.measure import Conditions, Reading, passes

CHAINS, TURNS = 16, 4096
"""Independent multiply-adds in a turn of the loop (enough for 4 cycles of latency at four a cycle), and its turns."""

LONG = 1 << 22
"""Turns of a loop that takes so long (10 ms) that the time to wake threads is negligible."""

_FREE = ("const", "input", "sin_of", "cos_of")
_NOT_ARITHMETIC = re.compile(r"= (phi|load|getelementptr|bitcast|call i1)")


class Limit:
    """A contender: the time of one state if nothing but the kernel's vector operations had to be issued."""

    def __init__(self, kernel: Kernel, conditions: Conditions) -> None:
        assert isinstance(kernel.program, Program)
        self.per_state = vector_operations(kernel.program, kernel.lanes) / kernel.lanes
        self.conditions = conditions

    def round(self, budget: float) -> Reading:
        run, _ = _multiply_adds()
        us, share = self.conditions.passes(lambda: run(TURNS), CHAINS * TURNS, budget)
        return Reading(us * self.per_state, share)


class Cores:
    """A contender: the same multiply-adds on some threads, the upper bound of what threads gain."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def round(self, budget: float) -> Reading:
        run, _ = _multiply_adds()
        turns = LONG // self.threads
        work = partial(run, turns)
        us, cores = passes(
            lambda: POOL.run(work, work, lambda: False, nothing, self.threads),
            CHAINS * LONG,
            budget,
            busy=time.process_time,
        )
        return Reading(us, cores / self.threads)


def vector_operations(program: Program, lanes: int) -> int:
    """Arithmetic instructions for a tile of so many states."""
    kinds = [kind for kind, *_ in fuse(program).nodes]
    sines = kinds.count("sincos")
    return sum(kind not in _FREE for kind in kinds) - sines + sines * _sine_operations(lanes)


@cache
def _sine_operations(lanes: int) -> int:
    """Arithmetic instructions of one sine with its cosine, for a register of arguments of moderate size."""
    text = sine_module(Options("double", lanes, Target.host()))
    usual = text[text.index("loop:") : text.index("slow:")]
    return sum(" = " in line and not _NOT_ARITHMETIC.search(line) for line in usual.splitlines())


@cache
def _multiply_adds() -> tuple[Callable[[int], None], Linked]:
    """``run(turns)``: CHAINS multiply-adds per turn, each on a register of its own."""
    target = Target.host()
    shape = Shape("double", target.lanes("float64"))
    v = shape.vector
    first = "\n".join(
        f"  %x{k} = phi {v} [{shape.constant(1.0 + k / 64)}, %entry], [%y{k}, %loop]" for k in range(CHAINS)
    )
    again = "\n".join(
        f"  %y{k} = call {v} @llvm.fma.{shape.suffix}({v} %x{k}, {v} {shape.constant(0.75)}, "
        f"{v} {shape.constant(0.25)})"
        for k in range(CHAINS)
    )
    total = "\n".join(f"  %t{k} = fadd {v} {f'%t{k - 1}' if k else shape.constant(0.0)}, %y{k}" for k in range(CHAINS))
    text = f"""
@kept = internal global {v} zeroinitializer, align 64
declare {v} @llvm.fma.{shape.suffix}({v}, {v}, {v})
define void @multiply_adds(i64 %turns) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
{first}
{again}
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %turns
  br i1 %more, label %loop, label %done
done:
{total}
  store {v} %t{CHAINS - 1}, ptr @kept, align 64
  ret void
}}
{ATTRIBUTES}"""
    linked = Linked(emit([text], target), ["multiply_adds"])
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(linked.address("multiply_adds")), linked
