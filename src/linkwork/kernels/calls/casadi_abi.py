"""Kernels as external functions of CasADi, as LLVM IR.

    int name(const double **arg, double **res, long long *iw, double *w, int mem)

and beside it what CasADi asks about such a function: `name_n_in`, `name_sparsity_in`, `name_work`, and so on. Arguments
are read where CasADi has them; the kernel works in CasADi's memory `w` and allocates nothing, so that a function may be
called by several threads at once. CasADi has matrices in compressed columns: entries of outputs that are zero in every
state are not part of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwork.kernels.cache import result_cache as notes
from linkwork.kernels.calls.executable import Executable
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.codegen.driver import TURN, table_entry
from linkwork.kernels.codegen.fields import stored
from linkwork.kernels.codegen.loops import again, each, in_turns
from linkwork.kernels.codegen.lower import ATTRIBUTES
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.compile import Linked, emit
from linkwork.kernels.programs.output_stores import ZEROS
from linkwork.kernels.programs.products import ProductProgram
from linkwork.kernels.programs.program import Port, Program

LINE = 64
"""Bytes of a cache line, on which workspaces begin."""

ASKED = ("n_in", "n_out", "default_in", "name_in", "name_out", "sparsity_in", "sparsity_out", "work")
"""What CasADi asks about a function: each is a function of its own."""


@dataclass(frozen=True)
class Argument:
    """An input or output of an external function: a matrix, `entries` (row, column) of which are not zero.

    `port` is the input or output of the kernel with its values, and `places` where that has each entry; None: it has
    none.
    """

    name: str
    shape: tuple[int, int]
    entries: tuple[tuple[int, int], ...] = ()
    places: tuple[int, ...] = ()
    port: int | None = None
    default: float = 0.0

    @property
    def sparsity(self) -> list[int]:
        """CasADi's form of it: rows, columns, where each column begins, the rows of all entries."""
        rows, columns = self.shape
        starts = [0] * (columns + 1)
        for _, c in self.entries:
            starts[c + 1] += 1
        for c in range(columns):
            starts[c + 1] += starts[c]
        return [rows, columns, *starts, *(r for r, _ in self.entries)]


def argument(
    name: str, port: Port, number: int | None, zeros: frozenset[int] = frozenset(), default: float = 0.0
) -> Argument:
    """A port as an argument, without its `zeros`; of more than two axes, all but the last are rows."""
    columns = 1 if len(port.shape) < 2 else port.shape[-1]
    rows = port.size // columns if columns else port.shape[0]
    entries = [(r, c) for c in range(columns) for r in range(rows) if r * columns + c not in zeros]
    return Argument(name, (rows, columns), tuple(entries), tuple(r * columns + c for r, c in entries), number, default)


def jacobian(name: str, y: Argument, x: Argument, port: Port, number: int, zeros: frozenset[int]) -> Argument:
    """The derivatives of y by x: CasADi counts the entries of both column by column, kernels row by row."""
    by, width = _row_by_row(x), x.shape[0] * x.shape[1]
    known, entries, places = {*y.places}, [], []
    for j, b in enumerate(by):
        for i, a in enumerate(_row_by_row(y)):
            if a in known and a * width + b not in zeros:
                entries.append((i, j))
                places.append(a * width + b)
    return Argument(name, (len(_row_by_row(y)), width), tuple(entries), tuple(places), number)


def _row_by_row(x: Argument) -> list[int]:
    """Where kernels have the entries of a matrix that CasADi has column by column."""
    return [r * x.shape[1] + c for c in range(x.shape[1]) for r in range(x.shape[0])]


def zeros_of(content: str | None, kernel: Kernel) -> dict[str, frozenset[int]]:
    """The entries of each output that are zero in every state; `content` is that of the program."""

    def found() -> dict[str, Any]:
        program = getattr(kernel.program, "whole", kernel.program)
        if isinstance(program, ProductProgram):
            program = program.unrolled()
        if not isinstance(program, Program):
            return {}
        nodes = program.nodes
        results = zip(program.outputs, program.results, strict=True)
        return {port.name: [k for k, v in enumerate(result) if nodes[v] in ZEROS] for port, result in results}

    note = notes.get_or_put(None if content is None else f"{content} zeros", found)
    return {name: frozenset(places) for name, places in note.items()}


@dataclass(frozen=True)
class External:
    """An external function: its name and arguments, and the kernel that computes it."""

    name: str
    kernel: Kernel
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    @property
    def content(self) -> tuple[Any, ...]:
        """What it computes, for comparisons."""
        settings = tuple((k, x.tobytes()) for k, x in self.kernel.settings.items())
        return self.name, self.kernel.program.digest, settings, self.inputs, self.outputs


class Externals:
    """The machine code of external functions; keep it as long as CasADi may call it."""

    def __init__(self, functions: Sequence[External]) -> None:
        forms = [f.kernel.native(batch=False) for f in functions]
        self._alive = forms, [f.kernel.settings for f in functions]
        text = [_SHARED]
        names: list[str] = []
        for f, form, settings in zip(functions, forms, self._alive[1], strict=True):
            text += _Writer(f, form, {k: x.ctypes.data for k, x in settings.items()}).lines()
            names += [f.name, *(f"{f.name}_{asked}" for asked in ASKED)]
        self._linked = Linked(emit(["\n".join([*text, ATTRIBUTES])], Target.host()), names)
        self.addresses = {name: self._linked.address(name) for name in names}


_SHARED = f"""
define internal void @gather(ptr %from, ptr %to, ptr %places, i64 %count) #0 {{
entry:
{each("k", "%count", "exit")}
  %at = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %at, align 8
  %there = getelementptr double, ptr %from, i64 %place
  %x = load double, ptr %there, align 8
  %here = getelementptr double, ptr %to, i64 %k
  store double %x, ptr %here, align 8
{again("k")}
exit:
  ret void
}}
"""


class _Writer:
    """Writes one function.

    `settings` are addresses of inputs of the kernel that no call gives, by their places.

    Its memory `w`, from the next cache line on: the context of `run_bound`, the workspace, then one array for each
    output of the kernel and for each input that is a matrix.
    """

    def __init__(self, function: External, form: Executable, settings: Mapping[int, int]) -> None:
        self.function, self.form, self.settings = function, form, settings
        ports = function.kernel.inputs, function.kernel.outputs
        self.ports = len(ports[0]) + len(ports[1])
        at = -(-(24 + 16 * self.ports) // LINE) * LINE
        self.workspace = at
        at += -(-(form.image.workspace + TURN) // LINE) * LINE
        self.arrays = dict[tuple[str, int], int]()
        for way, part in zip(("in", "out"), ports, strict=True):
            for k, port in enumerate(part):
                if way == "out" or len(port.shape) > 1:
                    self.arrays[way, k] = at
                    at += 8 * max(port.size, 1)
        self.words = (at + LINE) // 8

    def lines(self) -> Iterator[str]:
        """All of it."""
        yield from self._questions()
        name, form = self.function.name, self.form
        most = max([1, *(port.size for port in self.function.kernel.inputs)])
        yield f"@{name}.zeros = internal constant [{most} x double] zeroinitializer, align 64"
        yield f"@{name}.run = internal constant ptr inttoptr (i64 {form.address('run_bound')} to ptr), align 8"
        yield f"""define i32 @{name}(ptr %arg, ptr %res, ptr %iw, ptr %w, i32 %mem) #0 {{
entry:
  %word = ptrtoint ptr %w to i64
  %up = add i64 %word, {LINE - 1}
  %even = and i64 %up, {-LINE}
  %base = inttoptr i64 %even to ptr
  store i64 0, ptr %base, align 8"""
        yield stored("1", "%base", 8, "count", "i64")
        yield f"  %workspace = getelementptr i8, ptr %base, i64 {self.workspace}"
        yield stored("%workspace", "%base", 16, "place")
        yield from self._read()
        yield f"  %run = load ptr, ptr @{name}.run, align 8"
        yield in_turns("%run", "%base", "done")
        yield "done:"
        yield from self._write()
        yield "  ret i32 0\n}"

    def _read(self) -> Iterator[str]:
        """The table of the kernel's arrays; an argument that CasADi leaves out is zero."""
        name = self.function.name
        yield "  %table = getelementptr i8, ptr %base, i64 24"
        for k, address in self.settings.items():
            yield table_entry("%table", k, f"inttoptr (i64 {address} to ptr)")
        for i, given in enumerate(self.function.inputs):
            if given.port is None:
                continue
            k = given.port
            yield f"""  %at{i} = getelementptr ptr, ptr %arg, i64 {i}
  %given{i} = load ptr, ptr %at{i}, align 8
  %none{i} = icmp eq ptr %given{i}, null
  %x{i} = select i1 %none{i}, ptr @{name}.zeros, ptr %given{i}"""
            source = f"%x{i}"
            if ("in", k) in self.arrays:  # a matrix: from columns to rows
                size = given.shape[0] * given.shape[1]
                yield f"  %array{i} = getelementptr i8, ptr %base, i64 {self.arrays['in', k]}"
                yield f"  call void @gather(ptr %x{i}, ptr %array{i}, ptr @{name}.order{i}, i64 {size})"
                source = f"%array{i}"
            yield table_entry("%table", k, source)
        covered = {*self.settings, *(given.port for given in self.function.inputs)}
        first = len(self.function.kernel.inputs)
        for k in sorted(set(range(first)) - covered):
            yield table_entry("%table", k, f"@{name}.zeros")
        for k in range(len(self.function.kernel.outputs)):
            yield f"  %out{k} = getelementptr i8, ptr %base, i64 {self.arrays['out', k]}"
            yield table_entry("%table", first + k, f"%out{k}")

    def _write(self) -> Iterator[str]:
        """The entries of the results that CasADi asks for."""
        name = self.function.name
        for k, result in enumerate(self.function.outputs):
            if result.port is None or not result.entries:
                continue
            yield f"""  %to{k} = getelementptr ptr, ptr %res, i64 {k}
  %result{k} = load ptr, ptr %to{k}, align 8
  %unasked{k} = icmp eq ptr %result{k}, null
  br i1 %unasked{k}, label %next{k}, label %move{k}
move{k}:
  call void @gather(ptr %out{result.port}, ptr %result{k}, ptr @{name}.places{k}, i64 {len(result.entries)})
  br label %next{k}
next{k}:"""

    def _questions(self) -> Iterator[str]:
        """The functions that CasADi asks, and the tables that they and this one read."""
        f, name = self.function, self.function.name
        for i, given in enumerate(f.inputs):
            if given.port is not None and ("in", given.port) in self.arrays:
                rows, columns = given.shape
                yield _table(f"{name}.order{i}", [c * rows + r for r in range(rows) for c in range(columns)])
        for k, result in enumerate(f.outputs):
            if result.port is not None and result.entries:
                yield _table(f"{name}.places{k}", result.places)
        for way, arguments in (("in", f.inputs), ("out", f.outputs)):
            count = len(arguments)
            yield f"define i64 @{name}_n_{way}() #0 {{\n  ret i64 {count}\n}}"
            for k, x in enumerate(arguments):
                text = x.name
                yield f'@{name}.{way}{k} = internal constant [{len(text) + 1} x i8] c"{text}\\00", align 1'
                yield _table(f"{name}.{way}{k}.sparsity", x.sparsity)
            for asked, suffix in (("name", ""), ("sparsity", ".sparsity")):
                pointers = ", ".join(f"ptr @{name}.{way}{k}{suffix}" for k in range(count))
                yield f"@{name}.{asked}s_{way} = internal constant [{count} x ptr] [{pointers}], align 8"
                yield f"""define ptr @{name}_{asked}_{way}(i64 %k) #0 {{
  %at = getelementptr ptr, ptr @{name}.{asked}s_{way}, i64 %k
  %x = load ptr, ptr %at, align 8
  ret ptr %x
}}"""
        defaults = ", ".join(f"double {_hexadecimal(x.default)}" for x in f.inputs)
        yield f"""@{name}.defaults = internal constant [{len(f.inputs)} x double] [{defaults}], align 8
define double @{name}_default_in(i64 %k) #0 {{
  %at = getelementptr double, ptr @{name}.defaults, i64 %k
  %x = load double, ptr %at, align 8
  ret double %x
}}
define i32 @{name}_work(ptr %arg, ptr %res, ptr %iw, ptr %w) #0 {{"""
        for to, size in (("arg", len(f.inputs)), ("res", len(f.outputs)), ("iw", 0), ("w", self.words)):
            yield f"""  %no_{to} = icmp eq ptr %{to}, null
  br i1 %no_{to}, label %after_{to}, label %set_{to}
set_{to}:
  store i64 {size}, ptr %{to}, align 8
  br label %after_{to}
after_{to}:"""
        yield "  ret i32 0\n}"


def _table(name: str, numbers: Sequence[int]) -> str:
    return f"@{name} = internal constant [{len(numbers)} x i64] [{', '.join(f'i64 {x}' for x in numbers)}], align 8"


def _hexadecimal(x: float) -> str:
    """A number as LLVM reads it, NaN included."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
