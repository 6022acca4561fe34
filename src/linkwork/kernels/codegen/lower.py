"""From a chunk of a scheduled program to LLVM IR: one function, one basic block.

``chunk_k(workspace, workspace)`` runs its operations on one tile: W states, side by side in vector
registers. Stores go through the first pointer and loads through the second. The compiler must not see that they are
equal: it would otherwise undo, load by load, the decisions of :mod:`linkwork.kernels.programs.order`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from linkwork.errors import KernelError
from linkwork.kernels.codegen.vector_math import literal
from linkwork.kernels.programs.operations import COMPARISONS, LIBM
from linkwork.kernels.programs.order import arguments
from linkwork.kernels.programs.output_stores import POINTER
from linkwork.kernels.programs.schedule import Code, Schedule
from linkwork.lazy import cached_property

_INFIX = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTRINSIC = {
    "sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "fmin": "minnum", "fmax": "maxnum",
    "copysign": "copysign",
}  # fmt: skip
_FOUND = ("const", "input", "sin_of", "cos_of")
_COMPARE = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}


WINDOW = 256
"""Slots that are addressed from one pointer, in their middle. Offsets of up to 128 registers take one byte of an
AVX-512 instruction instead of four: a tenth less code, and as that exceeds the instruction cache, 1 to 4 % less
time."""


@dataclass(frozen=True)
class Shape:
    """The types of a kernel: ``lanes`` numbers of type ``scalar`` side by side."""

    scalar: str  # "double" or "float"
    lanes: int

    @cached_property
    def vector(self) -> str:
        return self.scalar if self.lanes == 1 else f"<{self.lanes} x {self.scalar}>"

    @cached_property
    def mask(self) -> str:
        return "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"

    @cached_property
    def suffix(self) -> str:
        bits = 64 if self.scalar == "double" else 32
        return f"f{bits}" if self.lanes == 1 else f"v{self.lanes}f{bits}"

    @cached_property
    def size(self) -> int:
        return 8 if self.scalar == "double" else 4

    @cached_property
    def bytes(self) -> int:
        return self.size * self.lanes

    def constant(self, value: float) -> str:
        text = literal(value, self.scalar)
        return text if self.lanes == 1 else f"splat ({self.scalar} {text})"


ATTRIBUTES = 'attributes #0 = { nounwind alignstack=64 "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
"""Full registers, and spills that never cross a cache line."""


STRAIGHT, ENTRIES = "; straight-line code\n", "; entry points\n"
"""The first lines of chunks and of entry points, which distinguish them from loops (compile.py)."""


def exchanged(shape: Shape, rows: list[str], distance: int, emit: Callable[[str], str]) -> list[str]:
    """One round of a transposition: rows at this distance exchange halves of their blocks of twice that."""
    w, after = shape.lanes, list(rows)
    low = ", ".join(f"i32 {j if not j & distance else w + j - distance}" for j in range(w))
    high = ", ".join(f"i32 {j + distance if not j & distance else w + j}" for j in range(w))
    for k in range(len(rows)):
        if not k & distance:
            pair = f"shufflevector {shape.vector} {rows[k]}, {shape.vector} {rows[k | distance]}"
            after[k] = emit(f"{pair}, <{w} x i32> <{low}>")
            after[k | distance] = emit(f"{pair}, <{w} x i32> <{high}>")
    return after


def watched(shape: Shape, values: Sequence[str]) -> list[tuple[str, str]]:
    """Factors of products whose sum is finite if all these values are, and only then.

    Products of doubles overflow beyond 1e150, for which it is enough that somebody looks at the numbers again; of
    floats they would beyond 1e19, and so each has zero for its other factor.
    """
    if shape.scalar == "float":
        return [(x, shape.constant(0.0)) for x in values]
    return [(values[k], values[min(k + 1, len(values) - 1)]) for k in range(0, len(values), 2)]


def lower_chunk(schedule: Schedule, step: Code, name: str, shape: Shape) -> str:
    """The IR module of one code step."""
    return STRAIGHT + _Chunk(schedule, shape, places_of_constants(schedule, step)).module(step, name)


def places_of_constants(schedule: Schedule, step: Code) -> dict[float, int]:
    """Where the constants of a chunk are, seen from a pointer into their table.

    The most used ones next to it.

    A distance of up to 127 bytes (with AVX-512, numbers) takes one byte of an instruction instead of four.
    """
    nodes, read = schedule.program.nodes, Counter[float]()
    for i in step.order:
        for a in (i, *arguments(nodes[i])):
            node = nodes[a]
            if node[0] == "const":
                read[node[1]] += 1
    del read[0.0]
    return {value: -(k + 1) // 2 if k % 2 else k // 2 for k, (value, _) in enumerate(read.most_common())}


class _Chunk:
    """The text of a chunk while it is written.

    Values are numbered, which LLVM reads faster than names: the number of a value is its place among the lines, a store
    is part of the line before it.
    """

    def __init__(self, schedule: Schedule, shape: Shape, constants: dict[float, int]) -> None:
        self.schedule, self.shape, self.constants = schedule, shape, constants
        self.nodes, v = schedule.program.nodes, shape.vector
        self.lines: list[str] = [""]  # the first one is for pointers, see `module`
        self.declared: set[str] = set()
        self.name: dict[int, str] = {}  # node -> its value in this chunk
        self.masks: dict[int, str] = {}  # node -> its mask, where it was computed as one
        self.infix = {kind: f"{instruction} {v}" for kind, instruction in _INFIX.items()}
        self.windows: set[tuple[str, int]] = set()
        self.ports: set[int] = set()  # the outputs that it puts
        self.sum = ""  # of products of what it puts

    def module(self, step: Code, name: str) -> str:
        for node, gone in zip(step.order, step.allocation.drops, strict=True):
            self.node(node)
            for value in gone:
                self.name.pop(value, None)
                self.masks.pop(value, None)
        self.judge()
        self.lines[0] = "\n".join([*self.middles(), *self.rows()])
        body = "\n".join(self.lines)
        return f"""
{self.table()}
define void @{name}(ptr %base, ptr %again) #0 {{
{body}
  ret void
}}
{"".join(sorted(self.declared))}{ATTRIBUTES}!0 = !{{}}
"""

    def table(self) -> str:
        """The constants, side by side in memory."""
        scalar = self.shape.scalar
        ordered = sorted(self.constants, key=self.constants.__getitem__)
        numbers = ", ".join(f"{scalar} {literal(value, scalar)}" for value in ordered)
        return f"@constants = internal constant [{len(ordered)} x {scalar}] [{numbers}], align 64" if ordered else ""

    def node(self, i: int) -> None:
        """Emit one operation, and its stores."""
        node = self.nodes[i]
        kind = node[0]
        infix = self.infix.get(kind)
        if infix is not None:  # most of them
            known, a, b = self.name, node[1], node[2]
            self.name[i] = self.emit(f"{infix} {known.get(a) or self.value(a)}, {known.get(b) or self.value(b)}")
        elif kind == "put":
            self.put(i, node[1:])
            return
        elif kind in COMPARISONS:
            self.masks[i] = self.truth(kind, node[1:])
        elif kind not in _FOUND:
            self.name[i] = self.operation(kind, node[1:])
        for slot in self.schedule.stores.get(i, ()):
            value, place = self.value(i), self.address(slot)
            self.store(f"{self.shape.vector} {value}, ptr {place}, align {self.shape.bytes}")

    def put(self, i: int, values: Sequence[int]) -> None:
        """Transpose values and store them in the rows of outputs (see output_stores.py)."""
        assert self.schedule.outlet is not None
        shape, width, put = self.shape, len(values), self.schedule.outlet.puts[i]
        x = [self.value(a) for a in values]
        for a, b in watched(shape, [self.value(v) for v in put.checked]):
            self.sum = self.call("fmuladd", [a, b, self.sum or shape.constant(0.0)])
        for round_ in range(width.bit_length() - 1):
            x = exchanged(shape, x, 1 << round_, self.emit)
        for row in range(shape.lanes):
            part = self.part(x[row % width], row // width * width, width)
            for port, column in put.targets:
                self.ports.add(port)
                place = self.emit(f"getelementptr {shape.scalar}, ptr %row{port}_{row}, i64 {column}")
                self.store(f"<{width} x {shape.scalar}> {part}, ptr {place}, align {shape.size}")

    def part(self, x: str, first: int, width: int) -> str:
        """So many lanes of a vector."""
        if width == self.shape.lanes:
            return x
        lanes, v = ", ".join(f"i32 {first + k}" for k in range(width)), self.shape.vector
        return self.emit(f"shufflevector {v} {x}, {v} poison, <{width} x i32> <{lanes}>")

    def rows(self) -> Iterator[str]:
        """The pointers to the rows of outputs that this chunk puts."""
        for port in sorted(self.ports):
            assert self.schedule.outlet is not None
            first = self.schedule.outlet.rows[port] * self.shape.bytes
            for k in range(self.shape.lanes):
                yield f"  %at{port}_{k} = getelementptr i8, ptr %again, i64 {first + k * POINTER}"
                yield f"  %row{port}_{k} = load ptr, ptr %at{port}_{k}, align {POINTER}, !invariant.load !0"

    def judge(self) -> None:
        """Add the sum of what was put to that of other chunks."""
        if self.sum:
            assert self.schedule.outlet is not None
            v, place = self.shape.vector, self.address(self.schedule.outlet.sum)
            others = self.emit(f"load {v}, ptr {place}, align {self.shape.bytes}")
            total = self.emit(f"fadd {v} {others}, {self.sum}")
            self.store(f"{v} {total}, ptr {place}, align {self.shape.bytes}")

    def operation(self, kind: str, arguments: Sequence[int]) -> str:
        shape, v = self.shape, self.shape.vector
        if kind in ("if_else_zero", "select"):
            chosen = [self.value(a) for a in arguments[1:]] + [shape.constant(0.0)]
            return self.emit(f"select {shape.mask} {self.mask(arguments[0])}, {v} {chosen[0]}, {v} {chosen[1]}")
        known = self.name
        x = [known.get(a) or self.value(a) for a in arguments]
        if kind in ("fma", "fms", "fnma", "fnms"):
            if kind in ("fnma", "fnms"):
                x[0] = self.emit(f"fneg {v} {x[0]}")
            if kind in ("fms", "fnms"):
                x[2] = self.emit(f"fneg {v} {x[2]}")
            return self.call("fmuladd", x)
        if kind == "guarded":
            return self.emit(f"fadd {v} {x[0]}, {self.emit(f'fsub {v} {x[1]}, {x[1]}')}")
        if kind == "neg":
            return self.emit(f"fneg {v} {x[0]}")
        if kind in _INTRINSIC:
            return self.call(_INTRINSIC[kind], x)
        if kind == "sign":
            one = self.call("copysign", [shape.constant(1.0), x[0]])
            nonzero = self.emit(f"fcmp one {v} {x[0]}, {shape.constant(0.0)}")
            return self.emit(f"select {shape.mask} {nonzero}, {v} {one}, {v} {x[0]}")
        if kind in LIBM:
            return self.library(LIBM[kind], x)
        raise KernelError(f"operation '{kind}' has no machine form")

    def truth(self, kind: str, arguments: Sequence[int]) -> str:
        """A truth value as a mask."""
        mask = self.shape.mask
        if kind in _COMPARE:
            a, b = (self.value(x) for x in arguments)
            return self.emit(f"fcmp {_COMPARE[kind]} {self.shape.vector} {a}, {b}")
        x = [self.mask(a) for a in arguments]
        if kind == "not":
            return self.emit(f"xor {mask} {x[0]}, {'true' if self.shape.lanes == 1 else 'splat (i1 true)'}")
        return self.emit(f"{kind} {mask} {x[0]}, {x[1]}")

    def mask(self, i: int) -> str:
        """Whether the value is not zero."""
        if i not in self.masks:
            self.masks[i] = self.emit(f"fcmp une {self.shape.vector} {self.value(i)}, {self.shape.constant(0.0)}")
        return self.masks[i]

    def value(self, i: int) -> str:
        """The value as a vector: computed here, constant, converted from a mask, or loaded."""
        known = self.name.get(i)
        if known is not None:
            return known
        node = self.nodes[i]
        if node[0] == "const":
            return self.constant(node[1])
        if i in self.masks:
            text = self.emit(f"uitofp {self.shape.mask} {self.masks[i]} to {self.shape.vector}")
        else:
            place = self.address(self.schedule.loads[i], "%again")
            text = self.emit(f"load {self.shape.vector}, ptr {place}, align {self.shape.bytes}")
        self.name[i] = text
        return text

    def constant(self, value: float) -> str:
        """A constant where it is used: a memory operand of that instruction, not a register."""
        if value == 0.0:
            return self.shape.constant(0.0)
        address = self.emit(f"getelementptr i8, ptr %constants, i64 {self.constants[value] * self.shape.size}")
        number = self.emit(f"load {self.shape.scalar}, ptr {address}, align {self.shape.size}, !invariant.load !0")
        return self.spread(number)

    def spread(self, number: str) -> str:
        """A number in all lanes."""
        if self.shape.lanes == 1:
            return number
        v, n = self.shape.vector, self.shape.lanes
        one = self.emit(f"insertelement {v} poison, {self.shape.scalar} {number}, i32 0")
        return self.emit(f"shufflevector {v} {one}, {v} poison, <{n} x i32> zeroinitializer")

    def call(self, intrinsic: str, x: list[str]) -> str:
        v = self.shape.vector
        self.declared.add(f"declare {v} @llvm.{intrinsic}.{self.shape.suffix}({', '.join([v] * len(x))})\n")
        return self.emit(f"call {v} @llvm.{intrinsic}.{self.shape.suffix}({v} {f', {v} '.join(x)})")

    def library(self, function: str, x: list[str]) -> str:
        """One call of the C library per lane, in double precision."""
        shape, v = self.shape, self.shape.vector
        self.declared.add(f"declare double @{function}({', '.join(['double'] * len(x))})\n")
        result = "poison" if shape.lanes > 1 else ""
        for lane in range(shape.lanes):
            arguments = []
            for a in x:
                one = a if shape.lanes == 1 else self.emit(f"extractelement {v} {a}, i32 {lane}")
                arguments.append(one if shape.scalar == "double" else self.emit(f"fpext float {one} to double"))
            listed = ", ".join(f"double {a}" for a in arguments)
            value = self.emit(f"call double @{function}({listed})")
            if shape.scalar == "float":
                value = self.emit(f"fptrunc double {value} to float")
            if shape.lanes == 1:
                return value
            result = self.emit(f"insertelement {v} {result}, {shape.scalar} {value}, i32 {lane}")
        return result

    def middles(self) -> Iterator[str]:
        """Pointers into constants and windows, hidden from LLVM so that none is derived from another."""
        if self.constants:
            offset = -min(self.constants.values()) * self.shape.size
            yield f"  %constantsp = getelementptr i8, ptr @constants, i64 {offset}"
            yield '  %constants = call ptr asm "", "=r,0"(ptr %constantsp)'
        for base, window in sorted(self.windows):
            offset = (window * WINDOW + WINDOW // 2) * self.shape.bytes
            yield f"  {base}{window}p = getelementptr i8, ptr {base}, i64 {offset}"
            yield f'  {base}{window} = call ptr asm "", "=r,0"(ptr {base}{window}p)'

    def address(self, slot: int, base: str = "%base") -> str:
        """A slot, seen from the middle of its window."""
        window, place = divmod(slot, WINDOW)
        self.windows.add((base, window))
        offset = (place - WINDOW // 2) * self.shape.bytes
        return self.emit(f"getelementptr i8, ptr {base}{window}, i64 {offset}")

    def emit(self, code: str) -> str:
        number = len(self.lines)
        self.lines.append(f"  %{number} = {code}")
        return f"%{number}"

    def store(self, what: str) -> None:
        self.lines[-1] += f"\n  store {what}"
