"""Entry points from Python into a kernel, as LLVM IR.

For one state, a call through ctypes costs more than a small kernel; built-in functions take and give NumPy arrays:

- ``run_new(self, items, count)``: inputs in, a new result out (a tuple or an object with slots, of new arrays). None
  when Python has to convert something first, when it takes long, or (if ``self`` asks for it) when not all outputs are
  numbers. Inputs at the end may be left out if ``self`` has defaults for them.
- ``run_called(self, items, count, names)``: the same, but for whatever ``run_new`` refuses, and for arguments by name,
  it calls the object that ``self`` has for that: as ``__call__`` of a class it takes every call.
- ``run_given(self, items, count)``: inputs, then outputs to be written. None when done, True when it is not.
- ``run_bound_object(self, nothing)``: ``run_bound`` on the context in ``self``. None when done, True if it is to be
  continued.

Through ctypes, where 1 means that the call used up its fuel and is to be continued after signals were handled:

- ``run_bound(context, mode)``: begin (plus ``ZEROED``), end, workspace and table in one block of memory.
- ``run_shared(table, progress, size, end, workspace, mode)``: until none are left, take ``size`` rows and run on them.
  Threads that share ``progress`` share the work, and a slow thread takes less of it.
- ``all_done(progress, end)``: whether all rows are done, now or very soon (a short spin: waking a thread takes longer).
- ``leave(progress, end)``: stop helpers, and wait until all of them have returned.

``mode`` is ``FRESH``, ``FURTHER`` (go on) or ``HELPING`` (do not return before the end, or before others ``leave``).
``progress`` has the words: rows taken, rows done, whether to stop, helpers inside, whether an output is not a number.

Arrays are checked: exact type, dtype and shape, contiguous, aligned, outputs writable. An input of one entry may be
a bare number (``float``, ``numpy.float64``, ``int``). ``self`` is a bytes object with the words of :func:`object_words`
(python_layout.py), followed by what each function needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkwork.kernels.driver import BEGIN, BLANK, FUEL, ODD, PAUSED, STOP, TURN, Frame, field_of
from linkwork.kernels.lower import ATTRIBUTES
from linkwork.kernels.program import Port
from linkwork.kernels.python_layout import (
    ALIGNED,
    ARRAY,
    AT,
    ATTACHED,
    BEHIND,
    BYTES,
    CONTIGUOUS,
    DESCR,
    DOUBLE,
    FLOAT,
    HASH,
    INT,
    MOST,
    NONE,
    NUMBER,
    OTHERWISE,
    PORTS,
    STRICT,
    TRUE,
    TYPE,
    WRITABLE,
)
from linkwork.system.processors import YIELD

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

WHOLE = 1e18
"""Whole numbers below it are also those that NumPy has a type for."""

STACK_LIMIT = 256 * 1024
"""Workspaces up to this size (in bytes) live on the stack when one state is evaluated."""


def has_objects(lanes: int, workspace: int, outputs: Sequence[Port]) -> bool:
    """Whether a kernel has ``run_new``, ``run_called`` and ``run_given``.

    One lane, on the stack, with at least one output.
    """
    return lanes == 1 and workspace <= STACK_LIMIT and bool(outputs) and outputs[0].size > 0


def function_names(lanes: int, workspace: int, outputs: Sequence[Port]) -> list[str]:
    """The functions of :func:`object_module`."""
    names = ["run_bound", "run_shared", "all_done", "leave", "run_bound_object"]
    return [*names, "run_given", "run_new", "run_called"] if has_objects(lanes, workspace, outputs) else names


def object_module(frame: Frame) -> str:
    """IR of all of them around ``run``."""
    bound = f"""
declare i64 @run(ptr, i64, i64, ptr)
declare void @Py_IncRef(ptr)
declare i32 @{YIELD}()

define internal void @refuel(ptr %turn, i1 %fresh, i64 %blank) #0 {{
{_fields(("%fuel", "%turn", FUEL, "i64"), ("%paused", "%turn", PAUSED, "i64"), ("%odd", "%turn", ODD, "i64"))}
{_store("%blank", "%turn", BLANK, "blank", "i64")}
  %kept = select i1 %fresh, i64 0, i64 %paused
  %known = select i1 %fresh, i64 0, i64 %odd
  store i64 {AMOUNT}, ptr %at_fuel, align 8
  store i64 %kept, ptr %at_paused, align 8
  store i64 %known, ptr %at_odd, align 8
  ret void
}}

define i64 @run_bound(ptr %context, i64 %mode) #0 {{
{_fields(("%start", "%context", 0, "i64"), ("%end", "%context", 8, "i64"), ("%ws", "%context", 16, "ptr"))}
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
{_fields(("%begun", "%turn", BEGIN, "i64"), ("%until", "%turn", STOP, "i64"), ("%full_", "%turn", FUEL, "i64"))}
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
{_fields(("%odd", "%turn", ODD, "i64"))}
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

define ptr @run_bound_object(ptr %self, ptr %nothing) #0 {{
  %words = getelementptr i8, ptr %self, i64 {BYTES}
  %context = getelementptr i8, ptr %words, i64 {BEHIND}
  %paused = call i64 @run_bound(ptr %context, i64 {FRESH})
{_fields(("%none", "%words", NONE, "ptr"), ("%true", "%words", TRUE, "ptr"))}
  %more = icmp ne i64 %paused, 0
  %answer = select i1 %more, ptr %true, ptr %none
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
}}
"""
    if not has_objects(frame.shape.lanes, frame.workspace, frame.outputs):
        return bound + ATTRIBUTES
    return bound + _given(frame) + _new(frame) + ATTRIBUTES


def _given(frame: Frame) -> str:
    inputs, outputs = len(frame.inputs), len(frame.outputs)
    return f"""
{_bare_number(frame)}
{_check("inputs", frame.inputs, CONTIGUOUS | ALIGNED, PORTS + 16 * outputs)}
{_check("outputs", frame.outputs, CONTIGUOUS | ALIGNED | WRITABLE)}

define ptr @run_given(ptr %self, ptr %items, i64 %count) #0 {{
  %table = alloca [{16 * (inputs + outputs)} x i8], align 16
  %numbers = alloca [{8 * inputs} x i8], align 8
  %ws = alloca [{frame.workspace + TURN} x i8], align 64
  %turn = getelementptr i8, ptr %ws, i64 {frame.workspace}
  %words = getelementptr i8, ptr %self, i64 {BYTES}
{_fields(("%none", "%words", NONE, "ptr"), ("%true", "%words", TRUE, "ptr"))}
{_fields(("%strict", "%words", STRICT, "i64"))}
  %asked = icmp ne i64 %strict, 0
  %given = sub i64 %count, {outputs}
  %complete = icmp sge i64 %given, 0
  br i1 %complete, label %look, label %refuse
look:
  %fits = call i1 @check_inputs(ptr %words, ptr %items, i64 %given, ptr %table, ptr %numbers)
  %behind = getelementptr ptr, ptr %items, i64 %given
  %rest = getelementptr i8, ptr %table, i64 {16 * inputs}
  br i1 %fits, label %further, label %refuse
further:
  %suits = call i1 @check_outputs(ptr %words, ptr %behind, i64 {outputs}, ptr %rest, ptr null)
  br i1 %suits, label %work, label %refuse
work:
  call void @refuel(ptr %turn, i1 true, i64 0)
  %paused = call i64 @run(ptr %table, i64 0, i64 1, ptr %ws)
{_fields(("%odd", "%turn", ODD, "i64"))}
  %judged = select i1 %asked, i64 %odd, i64 0
  %against = or i64 %judged, %paused
  %done = icmp eq i64 %against, 0
  br i1 %done, label %out, label %refuse
out:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
refuse:
  call void @Py_IncRef(ptr %true)
  ret ptr %true
}}
"""


def _new(frame: Frame) -> str:
    inputs, outputs = len(frame.inputs), len(frame.outputs)
    dims, make = [], []
    for k, port in enumerate(frame.outputs):
        if port.size:
            sizes = ", ".join(f"i64 {n}" for n in port.shape)
            dims.append(f"@dims{k} = internal constant [{len(port.shape)} x i64] [{sizes}], align 8")
            make.append(f"""
  call void @Py_IncRef(ptr %descr)
  %a{k} = call ptr @PyArray_Empty(i32 {len(port.shape)}, ptr @dims{k}, ptr %descr, i32 0)
  %none{k} = icmp eq ptr %a{k}, null
  br i1 %none{k}, label %fail, label %made{k}
made{k}:""")
        else:
            make += [_fields((f"%a{k}", "%words", PORTS + 16 * k, "ptr")), f"  call void @Py_IncRef(ptr %a{k})"]
        make += [_fields((f"%data{k}", f"%a{k}", 16, "ptr"), (f"%place{k}", "%words", PORTS + 16 * k + 8, "i64"))]
        make += [_store(f"%a{k}", "%result", f"%place{k}", f"i{k}")]
        make += [_store(f"%data{k}", "%table", 16 * (inputs + k), f"d{k}")]
        make += [_store("0", "%table", 16 * (inputs + k) + 8, f"s{k}", "i64")]
    newline = "\n"
    return f"""
{newline.join(dims)}
declare void @Py_DecRef(ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyArray_Empty(i32, ptr, ptr, i32)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)

{_attach(frame)}

define ptr @run_new(ptr %self, ptr %items, i64 %count) #0 {{
  %table = alloca [{16 * (inputs + outputs)} x i8], align 16
  %numbers = alloca [{8 * inputs} x i8], align 8
  %ws = alloca [{frame.workspace + TURN} x i8], align 64
  %turn = getelementptr i8, ptr %ws, i64 {frame.workspace}
  %words = getelementptr i8, ptr %self, i64 {BYTES}
{_fields(("%none", "%words", NONE, "ptr"), ("%descr", "%words", DESCR, "ptr"), ("%type", "%words", TYPE, "ptr"))}
{_fields(("%strict", "%words", STRICT, "i64"), ("%attached", "%words", ATTACHED, "ptr"))}
{_fields(("%hash", "%words", HASH, "i64"))}
  %asked = icmp ne i64 %strict, 0
  %fits = call i1 @check_inputs(ptr %words, ptr %items, i64 %count, ptr %table, ptr %numbers)
  br i1 %fits, label %begin, label %refuse
begin:
  %result = call ptr @PyType_GenericAlloc(ptr %type, i64 {outputs})
  %nothing = icmp eq ptr %result, null
  br i1 %nothing, label %out, label %make
make:
  %holds = icmp ne i64 %hash, 0
  %hashed = getelementptr i8, ptr %result, i64 %hash
  %unknown = select i1 %holds, ptr %hashed, ptr %ws
  store i64 -1, ptr %unknown, align 8
{newline.join(make)}
  call void @refuel(ptr %turn, i1 true, i64 0)
  %paused = call i64 @run(ptr %table, i64 0, i64 1, ptr %ws)
{_fields(("%odd", "%turn", ODD, "i64"))}
  %judged = select i1 %asked, i64 %odd, i64 0
  %against = or i64 %judged, %paused
  %fine = icmp eq i64 %against, 0
  br i1 %fine, label %finish, label %drop
finish:
  %alone = icmp eq ptr %attached, null
  br i1 %alone, label %out, label %attach
attach:
  call void @attach(ptr %words, ptr %items, i64 %count, ptr %result)
  br label %out
out:
  ret ptr %result
fail:
  call void @Py_DecRef(ptr %result)
  ret ptr null
drop:
  call void @Py_DecRef(ptr %result)
  br label %refuse
refuse:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}

define ptr @run_called(ptr %self, ptr %items, i64 %count, ptr %names) #0 {{
  %words = getelementptr i8, ptr %self, i64 {BYTES}
{_fields(("%none", "%words", NONE, "ptr"), ("%otherwise", "%words", OTHERWISE, "ptr"))}
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %directly, label %general
directly:
  %result = call ptr @run_new(ptr %self, ptr %items, i64 %count)
  %refused = icmp eq ptr %result, %none
  br i1 %refused, label %drop, label %out
out:
  ret ptr %result
drop:
  call void @Py_DecRef(ptr %none)
  br label %general
general:
  %found = call ptr @PyObject_Vectorcall(ptr %otherwise, ptr %items, i64 %count, ptr %names)
  ret ptr %found
}}
"""


def _attach(frame: Frame) -> str:
    """A function that stores in a result the attached object, and the inputs that have an offset in it."""
    code = []
    for k in range(len(frame.inputs)):
        code += [
            f"input{k}:",
            _fields((f"%place{k}", "%words", PORTS + 16 * (len(frame.outputs) + k) + 8, "i64")),
            f"  %wanted{k} = icmp ne i64 %place{k}, 0",
            f"  %there{k} = icmp ugt i64 %count, {k}",
            f"  %both{k} = and i1 %wanted{k}, %there{k}",
            f"  br i1 %both{k}, label %keep{k}, label %input{k + 1}",
            f"keep{k}:",
            _fields((f"%o{k}", "%items", 8 * k, "ptr")),
            f"  call void @Py_IncRef(ptr %o{k})",
            _store(f"%o{k}", "%result", f"%place{k}", f"r{k}"),
            f"  br label %input{k + 1}",
        ]
    newline = "\n"
    return f"""
define internal void @attach(ptr %words, ptr %items, i64 %count, ptr %result) #0 {{
{_fields(("%attached", "%words", ATTACHED, "ptr"), ("%at", "%words", AT, "i64"))}
  call void @Py_IncRef(ptr %attached)
{_store("%attached", "%result", "%at", "attached")}
  br label %input0
{newline.join(code)}
input{len(frame.inputs)}:
  ret void
}}"""


def _bare_number(frame: Frame) -> str:
    """A function that stores the value of a bare number, and returns whether it is one.

    Larger whole numbers are left to Python, and so is -1, which may be an error's value.
    """
    if all(port.shape != (1,) for port in frame.inputs):
        return ""
    store = "  store double %number, ptr %to, align 8"
    if frame.shape.scalar == "float":
        store = "  %rounded = fptrunc double %number to float\n  store float %rounded, ptr %to, align 4"
    return f"""
declare double @PyLong_AsDouble(ptr)
declare void @PyErr_Clear()
declare double @llvm.fabs.f64(double)

define internal i1 @bare_number(ptr %words, ptr %o, ptr %to) #0 {{
{_fields(("%type", "%o", 8, "ptr"), ("%float", "%words", FLOAT, "ptr"), ("%double", "%words", DOUBLE, "ptr"))}
{_fields(("%int", "%words", INT, "ptr"))}
  %real = icmp eq ptr %type, %float
  %numpy = icmp eq ptr %type, %double
  %direct = or i1 %real, %numpy
  br i1 %direct, label %read, label %other
read:
{_fields(("%held", "%o", NUMBER, "double"))}
  br label %known
other:
  %whole = icmp eq ptr %type, %int
  br i1 %whole, label %convert, label %refuse
convert:
  %converted = call double @PyLong_AsDouble(ptr %o)
  %size = call double @llvm.fabs.f64(double %converted)
  %sized = fcmp olt double %size, {WHOLE:.1e}
  %valid = fcmp one double %converted, -1.0
  %sure = and i1 %sized, %valid
  br i1 %sure, label %known, label %clear
clear:
  call void @PyErr_Clear()
  br label %refuse
known:
  %number = phi double [%held, %read], [%converted, %convert]
{store}
  ret i1 true
refuse:
  ret i1 false
}}"""


def _check(name: str, ports: Iterable[Port], flags: int, defaults: int | None = None) -> str:
    """A function that fills the table from arrays, and returns whether all are valid.

    ``defaults`` is where the words of defaults begin; without it, no array may be missing, and none be a bare number.
    """
    code, ports = [], list(ports)
    for k, port in enumerate(ports):
        code.append(f"port{k}:")
        if defaults is not None:
            code += [
                f"  %there{k} = icmp ugt i64 %count, {k}",
                f"  br i1 %there{k}, label %given{k}, label %left{k}",
                f"left{k}:",
                _fields((f"%default{k}", "%words", defaults + 16 * k, "ptr")),
                _store(f"%default{k}", "%table", 16 * k, f"l{k}"),
                _store("0", "%table", 16 * k + 8, f"ls{k}", "i64"),
                f"  %nothing{k} = icmp eq ptr %default{k}, null",
                f"  br i1 %nothing{k}, label %refuse, label %port{k + 1}",
                f"given{k}:",
            ]
        code.append(_fields((f"%o{k}", "%items", 8 * k, "ptr"), (f"%type{k}", f"%o{k}", 8, "ptr")))
        bare = defaults is not None and port.shape == (1,)
        code += _branch(f"kind{k}", [("%type", f"%type{k}", "ptr")], f"array{k}", f"bare{k}" if bare else "refuse")
        if bare:
            code += [
                f"bare{k}:",
                f"  %number{k} = getelementptr i8, ptr %numbers, i64 {8 * k}",
                f"  %known{k} = call i1 @bare_number(ptr %words, ptr %o{k}, ptr %number{k})",
                _store(f"%number{k}", "%table", 16 * k, f"b{k}"),
                _store("0", "%table", 16 * k + 8, f"bs{k}", "i64"),
                f"  br i1 %known{k}, label %port{k + 1}, label %refuse",
            ]
        code += [
            f"array{k}:",
            _fields(
                (f"%data{k}", f"%o{k}", 16, "ptr"),
                (f"%descr{k}", f"%o{k}", 56, "ptr"),
                (f"%nd{k}", f"%o{k}", 24, "i32"),
                (f"%flags{k}", f"%o{k}", 64, "i32"),
            ),
        ]
        code.append(f"  %kept{k} = and i32 %flags{k}, {flags}")
        checks = [("%descr", f"%descr{k}", "ptr"), (f"%kept{k}", str(flags), "i32")]
        code += _branch(f"form{k}", [*checks, (f"%nd{k}", str(len(port.shape)), "i32")], f"sized{k}")
        code += [f"sized{k}:", _fields((f"%dims{k}", f"%o{k}", 32, "ptr"))]
        sizes = []
        for axis, n in enumerate(port.shape):
            code.append(_fields((f"%dim{k}_{axis}", f"%dims{k}", 8 * axis, "i64")))
            sizes.append((f"%dim{k}_{axis}", str(n), "i64"))
        code += [_store(f"%data{k}", "%table", 16 * k, f"d{k}"), _store("0", "%table", 16 * k + 8, f"s{k}", "i64")]
        code += _branch(f"fits{k}", sizes, f"port{k + 1}")
    newline = "\n"
    every = f"  %most = add i64 0, {len(ports)}"
    most = every if defaults is None else _fields(("%most", "%words", MOST, "i64"))
    return f"""
define internal i1 @check_{name}(ptr %words, ptr %items, i64 %count, ptr %table, ptr %numbers) #0 {{
{_fields(("%type", "%words", ARRAY, "ptr"), ("%descr", "%words", DESCR, "ptr"))}
{most}
  %few = icmp ule i64 %count, %most
  br i1 %few, label %port0, label %refuse
{newline.join(code)}
port{len(ports)}:
  ret i1 true
refuse:
  ret i1 false
}}"""


def _branch(name: str, equal: Sequence[tuple[str, str, str]], following: str, otherwise: str = "refuse") -> list[str]:
    """Continue only if all these pairs are equal."""
    if not equal:
        return [f"  br label %{following}"]
    lines = [f"  %{name}_{k} = icmp eq {kind} {a}, {b}" for k, (a, b, kind) in enumerate(equal)]
    together = f"%{name}_0"
    for k in range(1, len(equal)):
        lines.append(f"  %{name}_to{k} = and i1 {together}, %{name}_{k}")
        together = f"%{name}_to{k}"
    return [*lines, f"  br i1 {together}, label %{following}, label %{otherwise}"]


def _fields(*fields: tuple[str, str, int, str]) -> str:
    return "\n".join(line for field in fields for line in field_of(*field))


def _store(value: str, base: str, offset: int | str, name: str, kind: str = "ptr") -> str:
    return f"""  %to_{name} = getelementptr i8, ptr {base}, i64 {offset}
  store {kind} {value}, ptr %to_{name}, align 8"""
