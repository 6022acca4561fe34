"""Kernels as handlers of XLA's typed foreign functions (xla/ffi/api/c_api.h), as LLVM IR.

XLA calls `handler(frame)` on a thread of its own, without Python. It reads the addresses and shapes of buffers from the
frame, checks them, and runs the kernel on them: nothing is copied. A buffer with one axis more than its port is a
batch, and one without serves all states of it. Large batches are shared with the threads of XLA's pool, as tasks of
`help`.

What cannot be computed is NaN in the results. A handler answers a question for its version, and reports buffers that do
not fit as an error of XLA.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from linkwork.errors import UnsupportedError
from linkwork.kernels.calls.executable import Executable
from linkwork.kernels.calls.interruptible_run import PARALLEL, TAKEN
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.codegen.driver import TURN, table_entry
from linkwork.kernels.codegen.fields import load, store
from linkwork.kernels.codegen.loops import again, each, in_turns
from linkwork.kernels.codegen.lower import ATTRIBUTES
from linkwork.kernels.codegen.native_calls import HELPING, WORDS
from linkwork.kernels.codegen.python_calls import STACK_LIMIT
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.compile import Linked, emit
from linkwork.kernels.programs.program import Port
from linkwork.system.code import addresses

MAJOR = 0
"""The version of XLA's interface whose structures these are; minor versions only add to their ends."""

EXTENSION, API, CONTEXT, ARGS, RETS = 8, 16, 24, 40, 80
"""Offsets in a call frame, in bytes: an extension (or null), XLA's functions, its context, arguments, results."""

SIZE, BUFFERS = 16, 32
"""Offsets in arguments and results: how many there are, and pointers to them."""

DTYPE, DATA, RANK, DIMS = 16, 24, 32, 40
"""Offsets in a buffer."""

NUMBERS = {"float32": 11, "float64": 12}
"""XLA's types."""

ERROR_CREATE, ERROR_DESTROY, SCHEDULE, THREADS = 48, 64, 136, 144
"""Offsets of XLA's functions."""

INVALID_ARGUMENT = 3

REFERENCES, PROGRESS, ROWS, END, TABLE = 0, 8, 8 + 8 * WORDS, 16 + 8 * WORDS, 24 + 8 * WORDS
"""Offsets in a job: who holds it, the words that threads share, how many rows each takes, the last row, the table."""


class Handler:
    """The machine code of a handler of a kernel, in one of its forms; keep it as long as XLA may call it."""

    def __init__(self, kernel: Kernel, form: Executable) -> None:
        self._alive = form, (settings := kernel.settings)
        text = _Writer(kernel, form, {k: x.ctypes.data for k, x in settings.items()}).module()
        self._linked = Linked(emit([text], Target.host()), ["handler"])
        self.address = self._linked.address("handler")


@cache
def version(include: str) -> tuple[int, int]:
    """The version of XLA's interface, from the header that is installed with it."""
    text = (Path(include) / "xla" / "ffi" / "api" / "c_api.h").read_text()
    major, minor = (int(re.findall(rf"#define XLA_FFI_API_{n} (\d+)", text)[0]) for n in ("MAJOR", "MINOR"))
    return major, minor


@cache
def _memory() -> tuple[int, int]:
    """The addresses of malloc and free."""
    malloc, free = addresses(["malloc", "free"]).values()
    return malloc, free


def _include() -> str:
    import jax

    return str(jax.ffi.include_dir())


class _Writer:
    """Writes a handler.

    `settings` are addresses of inputs that are the same in every call, by their places among all inputs.
    """

    def __init__(self, kernel: Kernel, form: Executable, settings: Mapping[int, int]) -> None:
        self.form, self.given, self.outputs, self.settings = form, kernel.given, kernel.outputs, settings
        self.dtype, self.threads = str(kernel.dtype), kernel.threads
        self.major, self.minor = version(_include())
        if self.major != MAJOR:
            raise UnsupportedError(
                f"jaxlib has version {self.major}.{self.minor} of XLA's foreign functions, and Linkwork knows {MAJOR}.x"
            )

    def module(self) -> str:
        """All of it."""
        workspace, image = self.form.image.workspace, self.form.image
        ports = len(self.given) + len(self.settings) + len(self.outputs)
        stack = workspace <= STACK_LIMIT
        place = f"  %ws = alloca [{workspace + TURN} x i8], align 64" if stack else "  %ws = call ptr @room()"
        rows = max(1, TAKEN // image.cost) * image.lanes
        dims, checks = self._checks()
        functions = "\n".join(
            f"@{name} = internal constant ptr inttoptr (i64 {address} to ptr), align 8"
            for name, address in self._addresses().items()
        )
        return f"""
{functions}
@unit = internal constant i64 1, align 8
@wrong = internal constant [{len(MESSAGE) + 1} x i8] c"{MESSAGE}\\00", align 1
{dims}

define internal ptr @room() #0 {{
  %malloc = load ptr, ptr @at_malloc, align 8
  %raw = call ptr %malloc(i64 {workspace + TURN + 128})
  %word = ptrtoint ptr %raw to i64
  %up = add i64 %word, 72
  %even = and i64 %up, -64
  %ws = inttoptr i64 %even to ptr
  %behind = getelementptr i8, ptr %ws, i64 {workspace + TURN}
  store ptr %raw, ptr %behind, align 8
  ret ptr %ws
}}

define internal void @leave_room(ptr %ws) #0 {{
  %behind = getelementptr i8, ptr %ws, i64 {workspace + TURN}
  %raw = load ptr, ptr %behind, align 8
  %free = load ptr, ptr @at_free, align 8
  call void %free(ptr %raw)
  ret void
}}

define internal i1 @fits(ptr %buffers, i64 %k, i64 %rank, ptr %dims, i64 %size, i64 %count, i1 %must, ptr %to) #0 {{
entry:
  %at = getelementptr ptr, ptr %buffers, i64 %k
  %buffer = load ptr, ptr %at, align 8
{load("%dtype", "%buffer", DTYPE, "i32")}
{load("%data", "%buffer", DATA)}
{load("%axes", "%buffer", RANK, "i64")}
{load("%shape", "%buffer", DIMS)}
  %typed = icmp eq i32 %dtype, {NUMBERS[self.dtype]}
  %more = sub i64 %axes, %rank
  %few = icmp ule i64 %more, 1
  %batch = icmp eq i64 %more, 1
  %first = select i1 %batch, ptr %shape, ptr @unit
  %lead = load i64, ptr %first, align 8
  %same = icmp eq i64 %lead, %count
  %single = xor i1 %batch, true
  %free = xor i1 %must, true
  %serves = and i1 %single, %free
  %long = or i1 %same, %serves
  %stride = select i1 %batch, i64 %size, i64 0
  store ptr %data, ptr %to, align 8
  %beside = getelementptr i8, ptr %to, i64 8
  store i64 %stride, ptr %beside, align 8
  %kind = and i1 %typed, %few
  %fine = and i1 %kind, %long
  br i1 %fine, label %look, label %refuse
look:
{each("axis", "%rank", "accept", entry="look", end="same_axis")}
  %skip = add i64 %axis, %more
  %mine = getelementptr i64, ptr %shape, i64 %skip
  %theirs = getelementptr i64, ptr %dims, i64 %axis
  %n = load i64, ptr %mine, align 8
  %m = load i64, ptr %theirs, align 8
  %equal = icmp eq i64 %n, %m
  br i1 %equal, label %same_axis, label %refuse
same_axis:
{again("axis")}
accept:
  ret i1 true
refuse:
  ret i1 false
}}

define internal void @release(ptr %job) #0 {{
  %old = atomicrmw sub ptr %job, i64 1 acq_rel
  %last = icmp eq i64 %old, 1
  br i1 %last, label %drop, label %exit
drop:
  %free = load ptr, ptr @at_free, align 8
  call void %free(ptr %job)
  ret void
exit:
  ret void
}}

define void @help(ptr %job) #0 {{
  %ws = call ptr @room()
  %progress = getelementptr i8, ptr %job, i64 {PROGRESS}
  %table = getelementptr i8, ptr %job, i64 {TABLE}
{load("%rows", "%job", ROWS, "i64")}
{load("%end", "%job", END, "i64")}
  %run = load ptr, ptr @at_run_shared, align 8
  %more = call i64 %run(ptr %table, ptr %progress, i64 %rows, i64 %end, ptr %ws, i64 {HELPING})
  call void @leave_room(ptr %ws)
  call void @release(ptr %job)
  ret void
}}

define internal void @share(ptr %frame, ptr %table, i64 %count) #0 {{
entry:
  %asked = alloca [32 x i8], align 8
  %task = alloca [40 x i8], align 8
  %found = alloca i64, align 8
  store i64 1, ptr %found, align 8
{load("%api", "%frame", API)}
{load("%context", "%frame", CONTEXT)}
{load("%threads", "%api", THREADS)}
{load("%schedule", "%api", SCHEDULE)}
{load("%destroy", "%api", ERROR_DESTROY)}
{store("%asked", 0, "32", "i64")}
{store("%asked", 8, "null")}
{store("%asked", 16, "%context")}
{store("%asked", 24, "%found")}
  %failed = call ptr %threads(ptr %asked)
  call void @forget(ptr %destroy, ptr %failed)
  %there = load i64, ptr %found, align 8
  %limit = call i64 @llvm.smin.i64(i64 %there, i64 {self.threads})
  %fair = add i64 %count, {image.lanes * self.threads - 1}
  %tiles = udiv i64 %fair, {image.lanes * self.threads}
  %shared = call i64 @llvm.smin.i64(i64 %tiles, i64 {image.tiles})
  %least = mul i64 %shared, {image.lanes}
  %rows = call i64 @llvm.smax.i64(i64 %least, i64 {rows})
  %up = add i64 %count, %rows
  %above = sub i64 %up, 1
  %parts = udiv i64 %above, %rows
  %useful = call i64 @llvm.smin.i64(i64 %limit, i64 %parts)
  %some = call i64 @llvm.smax.i64(i64 %useful, i64 1)
  %malloc = load ptr, ptr @at_malloc, align 8
  %job = call ptr %malloc(i64 {TABLE + 16 * ports})
  call void @llvm.memset.p0.i64(ptr align 8 %job, i8 0, i64 {TABLE}, i1 false)
{store("%job", REFERENCES, "%some", "i64")}
{store("%job", ROWS, "%rows", "i64")}
{store("%job", END, "%count", "i64")}
  %rest = getelementptr i8, ptr %job, i64 {TABLE}
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %rest, ptr align 8 %table, i64 {16 * ports}, i1 false)
{store("%task", 0, "40", "i64")}
{store("%task", 8, "null")}
{store("%task", 16, "%context")}
{store("%task", 24, "@help")}
{store("%task", 32, "%job")}
  %helpers = sub i64 %some, 1
{each("k", "%helpers", "work", end="next")}
  %refused = call ptr %schedule(ptr %task)
  %none = icmp eq ptr %refused, null
  br i1 %none, label %next, label %alone
alone:
  call void @forget(ptr %destroy, ptr %refused)
  call void @release(ptr %job)
  br label %next
next:
{again("k")}
work:
  %ws = call ptr @room()
  %progress = getelementptr i8, ptr %job, i64 {PROGRESS}
  %run = load ptr, ptr @at_run_shared, align 8
  %more = call i64 %run(ptr %rest, ptr %progress, i64 %rows, i64 %count, ptr %ws, i64 {HELPING})
  br label %wait
wait:  ; for helpers that have taken rows
  %all_done = load ptr, ptr @at_all_done, align 8
  %all = call i1 %all_done(ptr %progress, i64 %count)
  br i1 %all, label %over, label %wait
over:
  call void @leave_room(ptr %ws)
  call void @release(ptr %job)
  ret void
}}

define internal void @forget(ptr %destroy, ptr %error) #0 {{
  %none = icmp eq ptr %error, null
  br i1 %none, label %exit, label %drop
drop:
  %args = alloca [24 x i8], align 8
{store("%args", 0, "24", "i64")}
{store("%args", 8, "null")}
{store("%args", 16, "%error")}
  call void %destroy(ptr %args)
  ret void
exit:
  ret void
}}

define internal ptr @refused(ptr %frame) #0 {{
  %args = alloca [32 x i8], align 8
{load("%api", "%frame", API)}
{load("%create", "%api", ERROR_CREATE)}
{store("%args", 0, "28", "i64")}
{store("%args", 8, "null")}
{store("%args", 16, "@wrong")}
{store("%args", 24, str(INVALID_ARGUMENT), "i32")}
  %error = call ptr %create(ptr %args)
  ret ptr %error
}}

define internal void @alone(ptr %context) #0 {{
entry:
{place}
  %word = getelementptr i8, ptr %context, i64 16
  store ptr %ws, ptr %word, align 8
  %run = load ptr, ptr @at_run_bound, align 8
{in_turns("%run", "%context", "done")}
done:
{"" if stack else "  call void @leave_room(ptr %ws)"}
  ret void
}}

define ptr @handler(ptr %frame) #0 {{
entry:
  %context = alloca [{24 + 16 * ports} x i8], align 16
{load("%extension", "%frame", EXTENSION)}
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %count_all, label %asked
asked:
{load("%question", "%extension", 8, "i32")}
  %known = icmp eq i32 %question, 1
  br i1 %known, label %answer, label %count_all
answer:
{load("%metadata", "%extension", 24)}
{store("%metadata", 24, str(self.major), "i32")}
{store("%metadata", 28, str(self.minor), "i32")}
{store("%metadata", 32, "0", "i32")}
  ret ptr null
count_all:
{load("%given", "%frame", ARGS + SIZE, "i64")}
{load("%wanted", "%frame", RETS + SIZE, "i64")}
{load("%args", "%frame", ARGS + BUFFERS)}
{load("%rets", "%frame", RETS + BUFFERS)}
  %enough = icmp eq i64 %given, {len(self.given)}
  %all = icmp eq i64 %wanted, {len(self.outputs)}
  %complete = and i1 %enough, %all
  br i1 %complete, label %leading, label %refuse
leading:
  %result = load ptr, ptr %rets, align 8
{load("%axes", "%result", RANK, "i64")}
{load("%shape", "%result", DIMS)}
  %batch = icmp ugt i64 %axes, {len(self.outputs[0].shape)}
  %first = select i1 %batch, ptr %shape, ptr @unit
  %count = load i64, ptr %first, align 8
  %table = getelementptr i8, ptr %context, i64 24
{store("%context", 0, "0", "i64")}
{store("%context", 8, "%count", "i64")}
{checks}
  %tiles = add i64 %count, {image.lanes - 1}
  %work = mul i64 %tiles, {-(-image.cost // image.lanes)}
  %large = icmp ugt i64 %work, {PARALLEL if self.threads > 1 else 2**62}
  br i1 %large, label %together, label %here
together:
  call void @share(ptr %frame, ptr %table, i64 %count)
  ret ptr null
here:
  call void @alone(ptr %context)
  ret ptr null
refuse:
  %error = call ptr @refused(ptr %frame)
  ret ptr %error
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
{ATTRIBUTES}"""

    def _addresses(self) -> dict[str, int]:
        malloc, free = _memory()
        known = {"at_malloc": malloc, "at_free": free}
        return known | {f"at_{n}": self.form.address(n) for n in ("run_bound", "run_shared", "all_done")}

    def _checks(self) -> tuple[str, str]:
        """The shapes of ports, and the code that checks buffers and writes the table."""
        dims, code, k = [], [], 0

        def check(buffers: str, place: int, port: Port, slot: int, must: str) -> None:
            nonlocal k
            numbers = ", ".join(f"i64 {n}" for n in port.shape or (1,))
            dims.append(f"@dims{k} = internal constant [{len(port.shape) or 1} x i64] [{numbers}], align 8")
            code.append(f"""  %slot{k} = getelementptr i8, ptr %table, i64 {16 * slot}
  %fits{k} = call i1 @fits(ptr {buffers}, i64 {place}, i64 {len(port.shape)}, ptr @dims{k}, i64 {port.size}, i64 %count,
    i1 {must}, ptr %slot{k})
  br i1 %fits{k}, label %next{k}, label %refuse
next{k}:""")
            k += 1

        inputs = len(self.given) + len(self.settings)
        slots = [slot for slot in range(inputs) if slot not in self.settings]
        for place, (port, slot) in enumerate(zip(self.given, slots, strict=True)):
            check("%args", place, port, slot, "false")
        for place, port in enumerate(self.outputs):
            check("%rets", place, port, inputs + place, "true")
        for slot, address in self.settings.items():
            code.append(table_entry("%table", slot, f"inttoptr (i64 {address} to ptr)"))
        return "\n".join(dims), "\n".join(code)


MESSAGE = "Linkwork: a buffer has another type or shape than this kernel was compiled for"
