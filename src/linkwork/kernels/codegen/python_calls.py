"""Entry points from Python into a kernel, as LLVM IR.

For one state, a call through ctypes costs more than a small kernel; built-in functions take and give NumPy arrays:

- ``run_new(self, items, count)``: inputs in, a new result out (a tuple or an object with slots, of new arrays). None
  when Python has to convert something first, when it takes long, or (if ``self`` asks for it) when not all outputs are
  numbers. Inputs at the end may be left out if ``self`` has defaults for them.
- ``run_called(self, items, count, names)``: the same, but for whatever ``run_new`` refuses, and for arguments by name,
  it calls the object that ``self`` has for that: as ``__call__`` of a class it takes every call.
- ``run_given(self, items, count)``: inputs, then outputs to be written. None when done, True when it is not.
- ``run_bound_object(self, nothing)``: ``run_bound`` (native_calls.py) on the context in ``self``. None when done, True
  if it is to be continued.

Arrays are checked (python_arguments.py); an input of one entry may be a bare number (bare_numbers.py). ``self`` is a
bytes object with the words of :func:`object_words` (python_layout.py), followed by what each function needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.kernels.codegen.bare_numbers import bare_number_function
from linkwork.kernels.codegen.driver import ODD, TURN, Frame
from linkwork.kernels.codegen.fields import fields, stored
from linkwork.kernels.codegen.lower import ATTRIBUTES, ENTRIES
from linkwork.kernels.codegen.native_calls import FRESH, NATIVE, native_calls
from linkwork.kernels.codegen.python_arguments import check_inputs, check_outputs
from linkwork.kernels.codegen.python_layout import (
    AT,
    ATTACHED,
    BEHIND,
    BYTES,
    DESCR,
    HASH,
    NONE,
    OTHERWISE,
    PORTS,
    STRICT,
    TRUE,
    TYPE,
)
from linkwork.kernels.programs.program import Port

STACK_LIMIT = 256 * 1024
"""Workspaces up to this size (in bytes) live on the stack when one state is evaluated."""


def has_objects(lanes: int, workspace: int, outputs: Sequence[Port]) -> bool:
    """Whether a kernel has ``run_new``, ``run_called`` and ``run_given``.

    One lane, on the stack, with at least one output.
    """
    return lanes == 1 and workspace <= STACK_LIMIT and bool(outputs) and outputs[0].size > 0


def function_names(lanes: int, workspace: int, outputs: Sequence[Port]) -> list[str]:
    """The functions of :func:`object_module`."""
    names = [*NATIVE, "run_bound_object"]
    return [*names, "run_given", "run_new", "run_called"] if has_objects(lanes, workspace, outputs) else names


def object_module(frame: Frame) -> str:
    """IR of these and of the native calls, around ``run``."""
    bound = ENTRIES + native_calls(frame) + _BOUND_OBJECT
    if not has_objects(frame.shape.lanes, frame.workspace, frame.outputs):
        return bound + ATTRIBUTES
    return bound + _given(frame) + _new(frame) + ATTRIBUTES


_BOUND_OBJECT = f"""
declare void @Py_IncRef(ptr)

define ptr @run_bound_object(ptr %self, ptr %nothing) #0 {{
  %words = getelementptr i8, ptr %self, i64 {BYTES}
  %context = getelementptr i8, ptr %words, i64 {BEHIND}
  %paused = call i64 @run_bound(ptr %context, i64 {FRESH})
{fields(("%none", "%words", NONE, "ptr"), ("%true", "%words", TRUE, "ptr"))}
  %more = icmp ne i64 %paused, 0
  %answer = select i1 %more, ptr %true, ptr %none
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
}}
"""


def _given(frame: Frame) -> str:
    inputs, outputs = len(frame.inputs), len(frame.outputs)
    return f"""
{bare_number_function(frame)}
{check_inputs(frame.inputs, PORTS + 16 * outputs)}
{check_outputs(frame.outputs)}

define ptr @run_given(ptr %self, ptr %items, i64 %count) #0 {{
{_memory(frame)}
{fields(("%none", "%words", NONE, "ptr"), ("%true", "%words", TRUE, "ptr"))}
{fields(("%strict", "%words", STRICT, "i64"))}
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
{_computed()}
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


def _memory(frame: Frame) -> str:
    """What a call has on its stack: addresses, bare numbers, workspace, turn; `%words` of `%self`."""
    inputs, outputs = len(frame.inputs), len(frame.outputs)
    return f"""  %table = alloca [{16 * (inputs + outputs)} x i8], align 16
  %numbers = alloca [{8 * inputs} x i8], align 8
  %ws = alloca [{frame.workspace + TURN} x i8], align 64
  %turn = getelementptr i8, ptr %ws, i64 {frame.workspace}
  %words = getelementptr i8, ptr %self, i64 {BYTES}"""


def _computed() -> str:
    """One turn of the kernel; `%against` is zero if it is done and, where asked, finds numbers."""
    return f"""  call void @refuel(ptr %turn, i1 true, i64 0)
  %paused = call i64 @run(ptr %table, i64 0, i64 1, ptr %ws)
{fields(("%odd", "%turn", ODD, "i64"))}
  %judged = select i1 %asked, i64 %odd, i64 0
  %against = or i64 %judged, %paused"""


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
            make += [fields((f"%a{k}", "%words", PORTS + 16 * k, "ptr")), f"  call void @Py_IncRef(ptr %a{k})"]
        make += [fields((f"%data{k}", f"%a{k}", 16, "ptr"), (f"%place{k}", "%words", PORTS + 16 * k + 8, "i64"))]
        make += [stored(f"%a{k}", "%result", f"%place{k}", f"i{k}")]
        make += [stored(f"%data{k}", "%table", 16 * (inputs + k), f"d{k}")]
        make += [stored("0", "%table", 16 * (inputs + k) + 8, f"s{k}", "i64")]
    newline = "\n"
    return f"""
{newline.join(dims)}
declare void @Py_DecRef(ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyArray_Empty(i32, ptr, ptr, i32)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)

{_attach(frame)}

define ptr @run_new(ptr %self, ptr %items, i64 %count) #0 {{
{_memory(frame)}
{fields(("%none", "%words", NONE, "ptr"), ("%descr", "%words", DESCR, "ptr"), ("%type", "%words", TYPE, "ptr"))}
{fields(("%strict", "%words", STRICT, "i64"), ("%attached", "%words", ATTACHED, "ptr"))}
{fields(("%hash", "%words", HASH, "i64"))}
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
{_computed()}
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
{fields(("%none", "%words", NONE, "ptr"), ("%otherwise", "%words", OTHERWISE, "ptr"))}
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
            fields((f"%place{k}", "%words", PORTS + 16 * (len(frame.outputs) + k) + 8, "i64")),
            f"  %wanted{k} = icmp ne i64 %place{k}, 0",
            f"  %there{k} = icmp ugt i64 %count, {k}",
            f"  %both{k} = and i1 %wanted{k}, %there{k}",
            f"  br i1 %both{k}, label %keep{k}, label %input{k + 1}",
            f"keep{k}:",
            fields((f"%o{k}", "%items", 8 * k, "ptr")),
            f"  call void @Py_IncRef(ptr %o{k})",
            stored(f"%o{k}", "%result", f"%place{k}", f"r{k}"),
            f"  br label %input{k + 1}",
        ]
    newline = "\n"
    return f"""
define internal void @attach(ptr %words, ptr %items, i64 %count, ptr %result) #0 {{
{fields(("%attached", "%words", ATTACHED, "ptr"), ("%at", "%words", AT, "i64"))}
  call void @Py_IncRef(ptr %attached)
{stored("%attached", "%result", "%at", "attached")}
  br label %input0
{newline.join(code)}
input{len(frame.inputs)}:
  ret void
}}"""
