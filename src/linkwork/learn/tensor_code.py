"""Machine code that takes tensors and makes new ones, by DLPack's structures for C, as LLVM IR.

`run(self, items, given)` reads tensors where they are and returns a tuple of new ones, or None for whatever it leaves
to Python. One piece of machine code serves all kernels. Its `self` is a bytes object with the words below. A result is
one block of memory, which the C library's `free` deletes: DLPack's header, shape, strides, and the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from linkwork.kernels.codegen.fields import load, store
from linkwork.kernels.codegen.loops import again, each
from linkwork.kernels.codegen.lower import ATTRIBUTES
from linkwork.kernels.codegen.native_calls import FRESH
from linkwork.kernels.codegen.python_layout import BYTES, HASHED, ITEMS

MAJOR = 1
"""The version of DLPack whose structures these are; minor versions only add to their ends."""

CPU, FLOAT, BOOL = 1, 2, 6
"""DLPack's device and codes of types."""

DATA, DEVICE, AXES, KIND, SHAPE, STRIDES, OFFSET, TENSOR = 0, 8, 16, 20, 24, 32, 40, 48
"""Offsets in a DLTensor, and its size."""

VERSION, DELETER, FLAGS, INNER = 0, 16, 24, 32
"""Offsets in a DLManagedTensorVersioned; INNER is its DLTensor."""

MOST_AXES = 6
"""Axes of a port for which there is room."""

OWN_SHAPE, OWN_STRIDES, HEADER = (INNER + TENSOR + k * 8 * (MOST_AXES + 1) for k in range(3))
"""Offsets in a block; numbers begin at the first cache line after the header."""

RUN, WORKSPACE, ODDS, LEAST, MOST, RESULT, GIVEN, INPUTS, OUTPUTS, SHOWN, JUDGED, PORTS = range(0, 96, 8)
"""Offsets in `self`: addresses of `run_bound`, its workspace and the word that is set if a result is not a number; how
many states may be computed; the class of results; how many arguments, inputs and outputs there are; how many of these
are results, and whether `converged` is another one; where ports begin: inputs, outputs, `converged`."""

PLACE, MEMORY, TYPE, BYTE, RANK, SIZE, DIMS, PORT = *range(0, 56, 8), 48 + 8 * MOST_AXES
"""Offsets in a port, and its size: an input's place among arguments; memory that is used instead of a tensor's (an
input's default, an output that is no result), or 0; DLPack's type, bytes of an entry, axes, entries, shape."""


def tensor_module(at: Mapping[str, str]) -> str:
    """The IR; `at` has the addresses of functions and objects, as constants."""
    return f"""
define internal i1 @is_true(ptr %answer) #0 {{
  %yes = icmp eq ptr %answer, {at["true"]}
  call void {at["Py_DecRef"]}(ptr %answer)
  ret i1 %yes
}}

; whether a tensor can be read where it is; its memory and the distance of its rows to %slot, their number to %states
define internal i1 @take(ptr %object, ptr %port, ptr %slot, ptr %states, i1 %recording) #0 {{
entry:
  %t = alloca [{TENSOR} x i8], align 8
  %argument = alloca ptr, align 8
  store ptr %object, ptr %argument, align 8
{load("%type", "%object", 8)}
  %tensor = icmp eq ptr %type, {at["tensor"]}
  %parameter = icmp eq ptr %type, {at["parameter"]}
  %known = or i1 %tensor, %parameter
  br i1 %known, label %plain, label %refuse
plain:
  br i1 %recording, label %ask, label %sign
ask:
  %needs = call ptr {at["PyObject_GetAttr"]}(ptr %object, ptr {at["requires_grad"]})
  %needed = call i1 @is_true(ptr %needs)
  br i1 %needed, label %refuse, label %sign
sign:
  %negative = call ptr {at["PyObject_VectorcallMethod"]}(ptr {at["is_neg"]}, ptr %argument, i64 1, ptr null)
  %negated = call i1 @is_true(ptr %negative)
  br i1 %negated, label %refuse, label %describe
describe:
  %failed = call i32 {at["view"]}(ptr %object, ptr %t)
  %described = icmp eq i32 %failed, 0
  br i1 %described, label %look, label %otherwise
otherwise:  ; a tensor without such memory
  call void {at["PyErr_Clear"]}()
  ret i1 false
look:
{load("%start", "%t", DATA, "i64")}
{load("%offset", "%t", OFFSET, "i64")}
{load("%device", "%t", DEVICE, "i32")}
{load("%axes", "%t", AXES, "i32")}
{load("%kind", "%t", KIND, "i32")}
{load("%shape", "%t", SHAPE)}
{load("%strides", "%t", STRIDES)}
{load("%wanted", "%port", TYPE, "i32")}
{load("%byte", "%port", BYTE, "i64")}
{load("%rank", "%port", RANK, "i64")}
{load("%size", "%port", SIZE, "i64")}
  %data = add i64 %start, %offset
  %mask = sub i64 %byte, 1
  %rest = and i64 %data, %mask
  %aligned = icmp eq i64 %rest, 0
  %some = icmp ne i64 %start, 0
  %void = icmp eq i64 %size, 0
  %there = or i1 %some, %void
  %here = icmp eq i32 %device, {CPU}
  %typed = icmp eq i32 %kind, %wanted
  %all_axes = zext i32 %axes to i64
  %more = sub i64 %all_axes, %rank
  %few = icmp ule i64 %more, 1
  %valid = and i1 %aligned, %there
  %readable = and i1 %here, %typed
  %both = and i1 %valid, %readable
  %fine = and i1 %both, %few
  br i1 %fine, label %first, label %refuse
first:
  store i64 %data, ptr %slot, align 8
  %batch = icmp eq i64 %more, 1
  br i1 %batch, label %lead, label %single
single:
{store("%slot", 8, "0", "i64")}
  br label %axis
lead:
  %length = load i64, ptr %shape, align 8
  %stride = load i64, ptr %strides, align 8
{store("%slot", 8, "%stride", "i64")}
  %before = load i64, ptr %states, align 8
  store i64 %length, ptr %states, align 8
  %new = icmp slt i64 %before, 0
  %equal = icmp eq i64 %before, %length
  %fits = or i1 %new, %equal
  br i1 %fits, label %axis, label %refuse
axis:  ; the last one first
  %left = phi i64 [%rank, %single], [%rank, %lead], [%k, %next]
  %compact = phi i64 [1, %single], [1, %lead], [%compact1, %next]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %accept, label %compare
compare:
  %k = sub i64 %left, 1
  %mine = add i64 %k, %more
  %n_at = getelementptr i64, ptr %shape, i64 %mine
  %n = load i64, ptr %n_at, align 8
  %s_at = getelementptr i64, ptr %strides, i64 %mine
  %s = load i64, ptr %s_at, align 8
  %dims = getelementptr i8, ptr %port, i64 {DIMS}
  %m_at = getelementptr i64, ptr %dims, i64 %k
  %m = load i64, ptr %m_at, align 8
  %sized = icmp eq i64 %n, %m
  %close = icmp eq i64 %s, %compact
  %alone = icmp ule i64 %n, 1
  %contiguous = or i1 %close, %alone
  %good = and i1 %sized, %contiguous
  br i1 %good, label %next, label %refuse
next:
  %compact1 = mul i64 %compact, %n
  br label %axis
accept:
  ret i1 true
refuse:
  ret i1 false
}}

; where the numbers of a block are
define internal ptr @numbers(ptr %block) #0 {{
  %word = ptrtoint ptr %block to i64
  %up = add i64 %word, {HEADER + 63}
  %line = and i64 %up, -64
  %data = inttoptr i64 %line to ptr
  ret ptr %data
}}

; the tensor that a block is, with one more axis if there are %states; null, with an exception, if there can be none
define internal ptr @tensor(ptr %block, ptr %port, i64 %states) #0 {{
entry:
  %object = alloca ptr, align 8
  store ptr null, ptr %object, align 8
  %t = getelementptr i8, ptr %block, i64 {INNER}
  %shape = getelementptr i8, ptr %block, i64 {OWN_SHAPE}
  %strides = getelementptr i8, ptr %block, i64 {OWN_STRIDES}
  %data = call ptr @numbers(ptr %block)
{load("%kind", "%port", TYPE, "i32")}
{load("%rank", "%port", RANK, "i64")}
  %batch = icmp sge i64 %states, 0
  %more = zext i1 %batch to i64
  %axes = add i64 %rank, %more
  %few = trunc i64 %axes to i32
{store("%block", VERSION, str(MAJOR), "i64")}
{store("%block", DELETER, at["free"])}
{store("%block", FLAGS, "0", "i64")}
{store("%t", DATA, "%data")}
{store("%t", DEVICE, str(CPU), "i64")}
{store("%t", AXES, "%few", "i32")}
{store("%t", KIND, "%kind", "i32")}
{store("%t", SHAPE, "%shape")}
{store("%t", STRIDES, "%strides")}
{store("%t", OFFSET, "0", "i64")}
  br label %axis
axis:  ; the last one first
  %left = phi i64 [%rank, %entry], [%k, %next]
  %compact = phi i64 [1, %entry], [%compact1, %next]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %own, label %next
next:
  %k = sub i64 %left, 1
  %mine = add i64 %k, %more
  %dims = getelementptr i8, ptr %port, i64 {DIMS}
  %m_at = getelementptr i64, ptr %dims, i64 %k
  %m = load i64, ptr %m_at, align 8
  %n_at = getelementptr i64, ptr %shape, i64 %mine
  store i64 %m, ptr %n_at, align 8
  %s_at = getelementptr i64, ptr %strides, i64 %mine
  store i64 %compact, ptr %s_at, align 8
  %times = call i64 @llvm.smax.i64(i64 %m, i64 1)
  %compact1 = mul i64 %compact, %times
  br label %axis
own:
  br i1 %batch, label %lead, label %give
lead:
  store i64 %states, ptr %shape, align 8
  store i64 %compact, ptr %strides, align 8
  br label %give
give:
  %failed = call i32 {at["to_object"]}(ptr %block, ptr %object)
  %found = load ptr, ptr %object, align 8
  ret ptr %found
}}

define ptr @run(ptr %self, ptr %items, i64 %given) #0 {{
entry:
  %words = getelementptr i8, ptr %self, i64 {BYTES}
  %ports = getelementptr i8, ptr %words, i64 {PORTS}
  %length = alloca i64, align 8
  store i64 -1, ptr %length, align 8
{load("%most_given", "%words", GIVEN, "i64")}
{load("%inputs", "%words", INPUTS, "i64")}
{load("%outputs", "%words", OUTPUTS, "i64")}
{load("%shown", "%words", SHOWN, "i64")}
{load("%judged", "%words", JUDGED, "i64")}
  %made = add i64 %outputs, %judged
  %all = add i64 %inputs, %made
  %places = add i64 %all, 2
  %context = alloca [2 x i64], i64 %places, align 8
  %table = getelementptr i8, ptr %context, i64 24
  %blocks = alloca ptr, i64 %made, align 8
  %empty = mul i64 %made, 8
  call void @llvm.memset.p0.i64(ptr %blocks, i8 0, i64 %empty, i1 false)
  %mode = call ptr {at["PyObject_CallNoArgs"]}(ptr {at["recording"]})
  %recording = call i1 @is_true(ptr %mode)
  %enough = icmp ule i64 %given, %most_given
  br i1 %enough, label %take_all, label %refuse

take_all:
{each("k", "%inputs", "count", entry="take_all", end="further")}
  %port = getelementptr [{PORT} x i8], ptr %ports, i64 %k
  %slot = getelementptr [2 x i64], ptr %table, i64 %k
{load("%place", "%port", PLACE, "i64")}
{load("%default", "%port", MEMORY)}
  %there = icmp ult i64 %place, %given
  br i1 %there, label %argument, label %left_out
left_out:
  store ptr %default, ptr %slot, align 8
{store("%slot", 8, "0", "i64")}
  %missing = icmp eq ptr %default, null
  br i1 %missing, label %refuse, label %further
argument:
  %item = getelementptr ptr, ptr %items, i64 %place
  %object = load ptr, ptr %item, align 8
  %fits = call i1 @take(ptr %object, ptr %port, ptr %slot, ptr %length, i1 %recording)
  br i1 %fits, label %further, label %refuse
further:
{again("k")}

count:
{load("%least", "%words", LEAST, "i64")}
{load("%most", "%words", MOST, "i64")}
  %lead = load i64, ptr %length, align 8
  %single = icmp slt i64 %lead, 0
  %states = select i1 %single, i64 1, i64 %lead
  %above = icmp uge i64 %states, %least
  %below = icmp ule i64 %states, %most
  %suits = and i1 %above, %below
  br i1 %suits, label %make_room, label %refuse

make_room:
{each("j", "%made", "compute", entry="make_room", end="placed")}
  %place_of = add i64 %inputs, %j
  %port_of = getelementptr [{PORT} x i8], ptr %ports, i64 %place_of
  %slot_of = getelementptr [2 x i64], ptr %table, i64 %place_of
  %block_at = getelementptr ptr, ptr %blocks, i64 %j
{load("%size", "%port_of", SIZE, "i64")}
{load("%byte", "%port_of", BYTE, "i64")}
{load("%unseen", "%port_of", MEMORY)}
{store("%slot_of", 8, "%size", "i64")}
  %seen = icmp eq ptr %unseen, null
  br i1 %seen, label %fresh, label %placed
fresh:
  %one = mul i64 %size, %byte
  %many = mul i64 %one, %states
  %bytes = add i64 %many, {HEADER + 63}
  %block = call ptr {at["malloc"]}(i64 %bytes)
  store ptr %block, ptr %block_at, align 8
  %own = call ptr @numbers(ptr %block)
  %exhausted = icmp eq ptr %block, null
  br i1 %exhausted, label %drop, label %placed
placed:
  %data = phi ptr [%unseen, %with_j], [%own, %fresh]
  store ptr %data, ptr %slot_of, align 8
{again("j")}

compute:  ; no other thread has this workspace: the interpreter's lock is held
{load("%bound", "%words", RUN)}
{load("%workspace", "%words", WORKSPACE)}
{load("%odds", "%words", ODDS)}
{load("%class", "%words", RESULT)}
{store("%context", 0, "0", "i64")}
{store("%context", 8, "%states", "i64")}
{store("%context", 16, "%workspace")}
  %paused = call i64 %bound(ptr %context, i64 {FRESH})
  %odd = load i64, ptr %odds, align 8
  %against = or i64 %paused, %odd
  %fine = icmp eq i64 %against, 0
  br i1 %fine, label %begin, label %drop

begin:
  %results = add i64 %shown, %judged
  %result = call ptr {at["PyType_GenericAlloc"]}(ptr %class, i64 %results)
  %none = icmp eq ptr %result, null
  br i1 %none, label %fail, label %fill
fill:
  %hash = getelementptr i8, ptr %result, i64 {HASHED}
{"  store i64 -1, ptr %hash, align 8" if ITEMS > HASHED else ""}
{each("i", "%results", "out", entry="fill", end="put")}
  %is_output = icmp ult i64 %i, %shown
  %index = select i1 %is_output, i64 %i, i64 %outputs
  %at_index = add i64 %inputs, %index
  %port_i = getelementptr [{PORT} x i8], ptr %ports, i64 %at_index
  %block_place = getelementptr ptr, ptr %blocks, i64 %index
  %block_i = load ptr, ptr %block_place, align 8
  br i1 %is_output, label %wrap, label %converged
converged:
  %flags = call ptr @numbers(ptr %block_i)
  call void @llvm.memset.p0.i64(ptr %flags, i8 1, i64 %states, i1 false)
  br label %wrap
wrap:
  store ptr null, ptr %block_place, align 8
  %tensor = call ptr @tensor(ptr %block_i, ptr %port_i, i64 %lead)
  %unmade = icmp eq ptr %tensor, null
  br i1 %unmade, label %fail, label %put
put:
  %position = getelementptr ptr, ptr %result, i64 %i
{store("%position", ITEMS, "%tensor")}
{again("i")}
out:
  ret ptr %result

fail:  ; with an exception
  call void {at["Py_DecRef"]}(ptr %result)
  call void @free_all(ptr %blocks, i64 %made)
  ret ptr null
drop:
  call void @free_all(ptr %blocks, i64 %made)
  br label %refuse
refuse:
  call void {at["Py_IncRef"]}(ptr {at["none"]})
  ret ptr {at["none"]}
}}

define internal void @free_all(ptr %blocks, i64 %count) #0 {{
entry:
{each("k", "%count", "done")}
  %at = getelementptr ptr, ptr %blocks, i64 %k
  %block = load ptr, ptr %at, align 8
  call void {at["free"]}(ptr %block)
{again("k")}
done:
  ret void
}}
declare i64 @llvm.smax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{ATTRIBUTES}"""
