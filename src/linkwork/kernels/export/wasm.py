"""Programs as a WebAssembly module: what a browser runs, written without a compiler.

``wasm_module({"step": program})`` gives the bytes of a module that exports ``memory`` and one function of no arguments
per program. Inputs and outputs have fixed places in the memory, which several functions share by name; ``ports`` says
where. As in machine code (``schedule``), a program is a list of chunks that hand on values through memory: browsers
compile functions of a few hundred operations at once, and in the background again with more care.

In a chunk a value that is used once stays on the operand stack, any other is a local. WebAssembly has no fused
multiply-add: products are rounded, as in the exported C on processors without one. Sines and cosines are those of
``vector_math``; functions that are rare in dynamics are imported from JavaScript's ``Math``.

The format: W3C, WebAssembly Core Specification 2.0, sections 5.3 to 5.5.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from linkwork.errors import KernelError
from linkwork.kernels.codegen.vector_math import COSINE, HALF_PI, LIMIT, SINE, TWO_OVER_PI
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.iterate import EXCESS, IterativeProgram
from linkwork.kernels.programs.operations import LIBM
from linkwork.kernels.programs.order import arguments
from linkwork.kernels.programs.program import Port, Program
from linkwork.kernels.programs.schedule import Code, Layout, Schedule, schedule

CHUNK = 1200
"""Operations in a function. V8 takes 10.5 us for a step of Cassie with 600, 9.7 with 1200, and 8.3 if all 17 000 are in
one; but code that is not compiled with care yet is slow, and the longer a function is, the longer it waits for that."""

UNLIMITED = 10**9
"""Values that a chunk may hold: locals, of which the browser keeps in registers what it can."""

PAGE = 65536
"""Bytes by which memory is measured."""

ADD, SUB, MUL, DIV, NEG, ABS, SQRT, NEAREST = (bytes([c]) for c in (0xA0, 0xA1, 0xA2, 0xA3, 0x9A, 0x99, 0x9F, 0x9E))
EQ, NE, LT, GT, LE = (bytes([c]) for c in (0x61, 0x62, 0x63, 0x64, 0x65))
AND, OR, PLUS, NOT, SELECT, NUMBER, WHOLE = (bytes([c]) for c in (0x71, 0x72, 0x6A, 0x45, 0x1B, 0xB8, 0xAA))
BLOCK, LOOP, IF, ELSE, END = b"\x02\x40", b"\x03\x40", b"\x04\x40", b"\x05", b"\x0b"
COPY = b"\xfc\x0a\x00\x00"

F64, I32 = b"\x7c", b"\x7f"
NOTHING, OF_ONE, OF_TWO, SINES = range(4)
TYPES = (b"\0\0", b"\1" + F64 + b"\1" + F64, b"\2" + F64 + F64 + b"\1" + F64, b"\3" + 3 * I32 + b"\0")
"""Parameters and results of the functions: none; f(x); f(x, y); sines from three addresses."""


class Module(NamedTuple):
    """A module, and where its ports are: name -> the first of its numbers in memory, and how many.

    Outputs are called by their name and a prime, as ``q'``.
    """

    binary: bytes
    ports: dict[str, tuple[int, int]]


def wasm_module(functions: Mapping[str, Program | IterativeProgram]) -> Module:
    """The module that exports these programs as functions."""
    layout, sizes, bodies = Layout(), dict[str, int](), dict[str, bytes]()
    made = [_Function(program, layout, sizes) for program in functions.values()]
    used = {n[0] for f in made for part in f.schedules for n in part.program.nodes}
    math = [n for n in LIBM if n in used] + (["sin", "cos"] if "sincos" in used else [])
    helpers = [n for n in HELPERS if n in used]
    known = {name: k for k, name in enumerate([*math, *helpers])}
    for name in helpers:
        bodies[name] = HELPERS[name](known)
    for k, function in enumerate(made):
        for p, part in enumerate(function.schedules):
            for s, step in enumerate(part.steps):
                if isinstance(step, Code):
                    known[f"{k} {p} {s}"] = len(known)
                    bodies[f"{k} {p} {s}"] = _Chunk(part, step, known).body()
    for k, (name, function) in enumerate(zip(functions, made, strict=True)):
        known[f"export {name}"] = len(known)
        bodies[f"export {name}"] = _body(0, function.code(known, k))
    imports = [_text("math") + _text(n) + b"\0" + _unsigned(_type(n)) for n in math]
    exports = [_text(n) + b"\0" + _unsigned(known[f"export {n}"]) for n in functions]
    pages = -(-8 * layout.size // PAGE) or 1
    sections = {
        1: [b"\x60" + each for each in TYPES],
        2: imports,
        3: [_unsigned(_type(n)) for n in bodies],
        5: [b"\0" + _unsigned(pages)],
        7: [_text("memory") + b"\2\0", *exports],
        10: [_unsigned(len(body)) + body for body in bodies.values()],
    }
    text = b"".join(bytes([n]) + _sized(_vector(parts)) for n, parts in sections.items() if parts)
    return Module(b"\0asm\1\0\0\0" + text, {n: (layout.named[n], size) for n, size in sizes.items()})


class _Function:
    """A program laid out: one part, or start, iteration and finish, with loops in between."""

    def __init__(self, program: Program | IterativeProgram, layout: Layout, sizes: dict[str, int]) -> None:
        self.layout, self.sizes = layout, sizes
        self.loop = program if isinstance(program, IterativeProgram) else None
        if isinstance(program, IterativeProgram):
            parts = program.parts()
            started = self._laid_out(parts["start"], "")
            self._place(program.inputs, "")
            self.schedules = [started, self._laid_out(parts["iterate"], "'"), self._laid_out(parts["finish"], "'")]
            for loop in program.further:
                self.schedules.append(self._laid_out(loop.prepare, ""))
                self.schedules.append(self._laid_out(loop.iterate, "'"))
            self._place(program.counted, "'")
        else:
            self.schedules = [self._laid_out(program, "'")]

    def _laid_out(self, program: Program, suffix: str) -> Schedule:
        self._place(program.inputs, "")
        self._place(program.outputs, suffix)
        return schedule(fuse(program), CHUNK, UNLIMITED, self.layout, suffix)

    def _place(self, ports: Iterable[Port], suffix: str) -> None:
        for port in ports:
            name = port.name + suffix
            if self.sizes.setdefault(name, port.size) != port.size:
                raise KernelError(f"functions of a module share '{name}', which has two sizes")
            self.layout.port(name, port.size)

    def code(self, known: Mapping[str, int], k: int) -> bytes:
        """The calls of its chunks; those of an iteration while its residual is too large."""
        parts = [self._calls(known, k, p) for p in range(len(self.schedules))]
        if self.loop is None:
            return parts[0]
        at = self.layout.named
        residual, tolerance, count, most = (at[n] for n in ("residual", "tolerance", "iterations", "max_iterations"))
        counted = _store(count, _load(count) + _constant(1.0) + ADD)

        def taken(program: Program) -> bytes:
            return b"".join(_copied(at[p.name], at[p.name + "'"], p.size) for p in program.outputs)

        def repeated(part: bytes, iterate: Program, limit: int) -> bytes:
            limited = _load(most) + (_constant(float(limit)) + ADD if limit else b"")
            goes_on = _load(residual) + _load(tolerance) + GT + _load(count) + limited + LT + AND
            return BLOCK + LOOP + goes_on + NOT + b"\x0d\1" + part + taken(iterate) + counted + b"\x0c\0" + END + END

        def if_above(n: int, part: bytes) -> bytes:
            return BLOCK + _load(n) + _load(tolerance) + GT + NOT + b"\x0d\0" + part + END

        code, more, excess = parts[0] + repeated(parts[1], self.loop.iterate, 0), b"", at.get(EXCESS.name + "'", 0)
        for n, loop in enumerate(self.loop.further):
            prepare, iterate = parts[2 * n + 3 : 2 * n + 5]
            more += parts[2] + _copied(residual, excess, 1) if loop.how.anew else b""
            more += if_above(residual, prepare) + repeated(iterate, loop.iterate, loop.how.limit)
        code += parts[2] + (if_above(excess, more + parts[2]) if more else b"")
        return code + b"".join(_copied(at[p.name + "'"], at[p.name], 1) for p in self.loop.counted)

    def _calls(self, known: Mapping[str, int], k: int, p: int) -> bytes:
        out = b""
        for s, step in enumerate(self.schedules[p].steps):
            if isinstance(step, Code):
                out += _call(known[f"{k} {p} {s}"])
            else:
                for e in range(step.count):
                    out += b"".join(_whole(8 * (x + e)) for x in (step.argument, step.sine, step.cosine))
                    out += _call(known["sincos"])
        return out


class _Chunk:
    """The code of a chunk: values used once are bytes that wait for their user, others locals."""

    def __init__(self, part: Schedule, step: Code, known: Mapping[str, int]) -> None:
        self.part, self.step, self.known = part, step, known
        self.nodes, self.code, self.locals = part.program.nodes, list[bytes](), 0
        self.text: dict[int, bytes] = {}  # node -> the code that puts its value on the stack

    def body(self) -> bytes:
        nodes, stores = self.nodes, self.part.stores
        uses = Counter(a for i in self.step.order if nodes[i][0] not in ("const", "input") for a in nodes[i][1:])
        for i in self.step.order:
            computed = nodes[i][0] not in ("const", "input", "sin_of", "cos_of")
            for a in arguments(nodes[i]) if computed else (i,):
                if a not in self.text:
                    self._read(a)
            if computed:
                self.text[i] = self._operation(i)
                if uses[i] + len(stores.get(i, ())) != 1:
                    self._name(i)
            self.code += [_store(slot, self.text[i]) for slot in stores.get(i, ())]
        return _body(self.locals, b"".join(self.code))

    def _read(self, a: int) -> None:
        """A constant, an input, or a value of another chunk, whose place may be written to before it is used."""
        self.text[a] = _constant(self.nodes[a][1]) if self.nodes[a][0] == "const" else _load(self.part.loads[a])
        if self.nodes[a][0] not in ("const", "input"):
            self._name(a)

    def _name(self, i: int) -> None:
        self.code.append(self.text[i] + b"\x21" + _unsigned(self.locals))
        self.text[i] = _get(self.locals)
        self.locals += 1

    def _operation(self, i: int) -> bytes:
        kind, *operands = self.nodes[i]
        x = [self.text[a] for a in operands]
        return b"".join(x) + _call(self.known[kind]) if kind in self.known else FORMS[kind](*x)


def _truth(x: bytes) -> bytes:
    return x + _constant(0.0) + NE


FORMS: dict[str, Callable[..., bytes]] = {
    "add": lambda a, b: a + b + ADD,
    "sub": lambda a, b: a + b + SUB,
    "mul": lambda a, b: a + b + MUL,
    "div": lambda a, b: a + b + DIV,
    "neg": lambda a: a + NEG,
    "fabs": lambda a: a + ABS,
    "sqrt": lambda a: a + SQRT,
    "floor": lambda a: a + b"\x9c",
    "ceil": lambda a: a + b"\x9b",
    "copysign": lambda a, b: a + b + b"\xa6",
    "fma": lambda a, b, c: a + b + MUL + c + ADD,
    "fms": lambda a, b, c: a + b + MUL + c + SUB,
    "fnma": lambda a, b, c: c + a + b + MUL + SUB,
    "fnms": lambda a, b, c: a + b + MUL + NEG + c + SUB,
    "lt": lambda a, b: a + b + LT + NUMBER,
    "le": lambda a, b: a + b + LE + NUMBER,
    "eq": lambda a, b: a + b + EQ + NUMBER,
    "ne": lambda a, b: a + b + NE + NUMBER,
    "not": lambda a: a + _constant(0.0) + EQ + NUMBER,
    "and": lambda a, b: _truth(a) + _truth(b) + AND + NUMBER,
    "or": lambda a, b: _truth(a) + _truth(b) + OR + NUMBER,
    "select": lambda c, a, b: a + b + _truth(c) + SELECT,
    "if_else_zero": lambda c, a: a + _constant(0.0) + _truth(c) + SELECT,
    "guarded": lambda a, b: a + b + b + SUB + ADD,
}
"""Code from the code of operands."""


# functions that chunks call


def _smaller(known: Mapping[str, int]) -> bytes:
    """The smaller of two numbers; the other one if one is not a number."""
    a, b = _get(0), _get(1)
    return _body(0, a + b + a + b + LT + b + b + NE + OR + SELECT)


def _larger(known: Mapping[str, int]) -> bytes:
    a, b = _get(0), _get(1)
    return _body(0, a + b + b + a + LT + b + b + NE + OR + SELECT)


def _sign(known: Mapping[str, int]) -> bytes:
    """1, -1, or the number itself: zero, or not one."""
    x, zero = _get(0), _constant(0.0)
    negative = _constant(-1.0) + x + x + zero + LT + SELECT
    return _body(0, _constant(1.0) + negative + x + zero + GT + SELECT)


def _sincos(known: Mapping[str, int]) -> bytes:
    """Sine and cosine of the number at the first address, at the other two.

    As in the exported C (``c_source``).
    """
    sine_at, cosine_at = _get(1), _get(2)
    names = {name: 3 + k for k, name in enumerate(("x", "y", "k", "r1", "t1", "r2", "t2", "r", "t", "z", "s", "c"))}
    quarter = 3 + len(names)
    value = {name: _get(at) for name, at in names.items()}
    x, y, k, r1, t1, r2, t2, r, t, z, s, c = value.values()
    first, second, third = map(_constant, HALF_PI["double", False])

    def put(name: str, code: bytes) -> bytes:
        return code + b"\x21" + _unsigned(names[name])

    def horner(coefficients: Sequence[float]) -> bytes:
        code = _constant(coefficients[-1])
        for each in coefficients[-2::-1]:
            code += z + MUL + _constant(each) + ADD
        return code

    def bit(which: int, plus: int = 0) -> bytes:
        return _get(quarter) + _whole(plus) + PLUS + _whole(which) + AND

    near = x + ABS + _constant(LIMIT) + LT
    half = z + _constant(-0.5) + MUL + _constant(1.0) + ADD
    odd, even = (one + two + bit(1) + SELECT for one, two in ((c, s), (s, c)))
    reduced = [
        put("x", _get(0) + _address(b"\x2b", 0)),
        put("y", x + _constant(0.0) + near + SELECT),
        put("k", y + _constant(TWO_OVER_PI) + MUL + NEAREST),
        put("r1", y + k + first + MUL + SUB),
        put("t1", y + r1 + SUB + k + first + MUL + SUB),
        put("r2", r1 + k + second + MUL + SUB),
        put("t2", t1 + r1 + r2 + SUB + k + second + MUL + SUB + ADD),
        put("r", r2 + k + third + MUL + SUB),
        put("t", t2 + r2 + r + SUB + k + third + MUL + SUB + ADD),
        put("z", r + r + MUL),
        put("s", r + r + z + MUL + horner(SINE["double"]) + MUL + t + ADD + ADD),
        put("c", z + z + MUL + horner(COSINE["double"]) + MUL + half + ADD + r + t + MUL + SUB),
        k + WHOLE + b"\x21" + _unsigned(quarter),
    ]
    results = [
        at + a + NEG + a + sign + SELECT + _address(b"\x39", 0)
        for at, a, sign in ((sine_at, odd, bit(2)), (cosine_at, even, bit(2, 1)))
    ]
    library = [
        at + x + _call(known[name]) + _address(b"\x39", 0) for at, name in ((sine_at, "sin"), (cosine_at, "cos"))
    ]
    code = b"".join(reduced) + near + IF + b"".join(results) + ELSE + b"".join(library) + END
    return _body(len(names), code, wholes=1)


HELPERS = {"sincos": _sincos, "fmin": _smaller, "fmax": _larger, "sign": _sign}


def _type(name: str) -> int:
    if name in ("pow", "atan2", "hypot", "fmod", "fmin", "fmax"):
        return OF_TWO
    return SINES if name == "sincos" else OF_ONE if name in LIBM or name in ("sin", "cos", "sign") else NOTHING


# bytes


def _unsigned(n: int) -> bytes:
    """A number in groups of seven bits, the lowest first (LEB128)."""
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def _whole(n: int) -> bytes:
    """A whole number on the stack; signed numbers need a bit more."""
    groups = _unsigned(n)
    return b"\x41" + (groups if groups[-1] < 0x40 else groups[:-1] + bytes([groups[-1] | 0x80, 0]))


def _constant(x: float) -> bytes:
    return b"\x44" + struct.pack("<d", x)


def _get(local: int) -> bytes:
    return b"\x20" + _unsigned(local)


def _call(function: int) -> bytes:
    return b"\x10" + _unsigned(function)


def _address(access: bytes, slot: int) -> bytes:
    """A read or a write at an address on the stack plus that of a slot; addresses are multiples of 2^3."""
    return access + b"\3" + _unsigned(8 * slot)


def _load(slot: int) -> bytes:
    return _whole(0) + _address(b"\x2b", slot)


def _store(slot: int, value: bytes) -> bytes:
    return _whole(0) + value + _address(b"\x39", slot)


def _copied(to: int, start: int, count: int) -> bytes:
    return _whole(8 * to) + _whole(8 * start) + _whole(8 * count) + COPY


def _body(numbers: int, code: bytes, wholes: int = 0) -> bytes:
    """A function: how many locals of each type it has, its code, its end."""
    groups = [_unsigned(n) + kind for n, kind in ((numbers, F64), (wholes, I32)) if n]
    return _vector(groups) + code + END


def _vector(parts: Sequence[bytes]) -> bytes:
    return _unsigned(len(parts)) + b"".join(parts)


def _sized(content: bytes) -> bytes:
    return _unsigned(len(content)) + content


def _text(name: str) -> bytes:
    return _sized(name.encode())
