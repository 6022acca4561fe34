"""Programs with a loop over columns: a start, then the same straight-line code for each column.

    start:   inputs -> outputs, shared values, matrices R_g (b x n_g)
    body:    shared values, one column of R_g -> one column of X_g,      for all columns of all groups g

The rows of X_g are one output of the program or several, one below the other. Derivatives by hundreds of columns are
the code of one solve then: it compiles in a fraction of the time and stays in the instruction cache. In a batch, states
are in the lanes, and the loop takes a column at a time; for one state, columns are.

`columns` cuts such a program out of one that was traced with a column as an input, by what depends on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwork.kernels.driver import chunk_names
from linkwork.kernels.hoist import LEAVES, boundary, extract
from linkwork.kernels.lower import ATTRIBUTES, Shape
from linkwork.kernels.program import Array, Port, Program, broadcast
from linkwork.kernels.schedule import Code, Schedule
from linkwork.kernels.simplify import finished
from linkwork.kernels.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable

    import casadi as ca

COLUMN, FOUND, SHARED = "column", "found", "shared"


class Group(NamedTuple):
    """The columns of one matrix: an output of the start, and the program's outputs that they become."""

    right: str
    outputs: tuple[Port, ...]

    @property
    def width(self) -> int:
        return self.outputs[0].shape[-1]


class ColumnProgram:
    """A start and a body for columns; see the module's text. `outputs` are in the order that users see."""

    rarely = False  # its loop is always needed

    def __init__(self, start: Program, body: Program, groups: Sequence[Group], outputs: Sequence[Port]) -> None:
        self.start, self.body, self.groups, self.outputs = start, body, tuple(groups), tuple(outputs)
        self.inputs, self.name = start.inputs, start.name
        self.source: Callable[[], ca.Function] | None = None

    def __repr__(self) -> str:
        return f"ColumnProgram({self.name}: {self.columns} columns)"

    @property
    def columns(self) -> int:
        """How often the body runs."""
        return sum(g.width for g in self.groups)

    @property
    def digest(self) -> str:
        """A name for the content."""
        parts = [self.start.digest, self.body.digest, repr((self.inputs, self.outputs, self.groups))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def operations(self) -> int:
        """Arithmetic operations, those of all columns counted."""
        return self.start.operations + self.columns * self.body.operations

    def counts(self) -> dict[str, dict[str, int]]:
        """Operations by kind, of the start and of one column."""
        return {"start": self.start.counts(), "column": self.body.counts()}

    def check(self) -> ColumnProgram:
        """Check the parts."""
        self.start.check()
        self.body.check()
        return self

    def interpret(self, *arrays: ArrayLike, dtype: str = "float64") -> tuple[Array, ...]:
        """The loop in NumPy: the definition of what every kernel of this program computes."""
        inputs, batch = broadcast(self.inputs, arrays, np.dtype(dtype))
        rows = 1 if batch is None else batch
        given = [np.broadcast_to(x, (rows, *x.shape[1:])) for x in inputs]
        known = {p.name: x for p, x in zip(self.start.outputs, self.start.interpret(*given, dtype=dtype), strict=True)}
        for g in self.groups:
            right = np.moveaxis(known[g.right], 1, 2)
            shared = np.repeat(known[SHARED], g.width, axis=0)
            (found,) = self.body.interpret(shared, right.reshape(rows * g.width, -1), dtype=dtype)
            left, first = np.moveaxis(found.reshape(rows, g.width, -1), 1, 2), 0
            for port in g.outputs:
                known[port.name] = left[:, first : first + port.shape[0]]
                first += port.shape[0]
        return tuple(known[p.name][0] if batch is None else known[p.name] for p in self.outputs)

    def unrolled(self) -> Program:
        """The same function as straight-line code."""
        values = Values()
        signed = values.replay(self.start.nodes, lambda node: 2 * values.number(node))
        known = {p.name: [signed[v] for v in r] for p, r in zip(self.start.outputs, self.start.results, strict=True)}
        for g in self.groups:
            right, left = known[g.right], list[list[int]]()
            for c in range(g.width):
                ports = (known[SHARED], right[c :: g.width])
                column = values.replay(self.body.nodes, lambda node, ports=ports: ports[node[1]][node[2]])  # type: ignore[misc]
                left.append([column[v] for v in self.body.results[0]])
            first = 0
            for port in g.outputs:
                known[port.name] = [x[first + i] for i in range(port.shape[0]) for x in left]
                first += port.shape[0]
        empty = Program(self.inputs, self.outputs, (), [()] * len(self.outputs), self.name)
        return finished(empty, values, [known[port.name] for port in self.outputs])


def columns(program: Program, groups: Sequence[Group], outputs: Sequence[str]) -> ColumnProgram:
    """Cut a program with an input `column` and an output `found` by what depends on that input.

    Its other outputs are the groups' matrices, and `outputs` as they are, or of groups.
    """
    place = {port.name: k for k, port in enumerate(program.inputs)}
    results = {port.name: list(r) for port, r in zip(program.outputs, program.results, strict=True)}
    shapes = {port.name: port.shape for port in program.outputs}
    varies: list[bool] = []
    for node in program.nodes:
        from_column = node[0] == "input" and node[1] == place[COLUMN]
        varies.append(from_column or (node[0] not in LEAVES and any(varies[a] for a in node[1:])))
    found = results.pop(FOUND)
    kept = [n for n in boundary(program.nodes, varies, found) if program.nodes[n][0] != "const"]
    shared = Port(SHARED, (max(len(kept), 1),))
    users = [port for port in program.inputs if port.name != COLUMN]
    ports = [*(Port(n, shapes[n]) for n in results), shared]
    start = extract(program, program.name, users, ports, [*results.values(), kept or [0]], {})
    column = program.inputs[place[COLUMN]]
    known = {n: (SHARED, e) for e, n in enumerate(kept)}
    body = extract(program, "body", [shared, column], [Port(FOUND, (len(found),))], [found], known)
    wide = {p.name: p for g in groups for p in g.outputs}
    known_ports = {**{p.name: p for p in program.outputs}, **wide}
    return ColumnProgram(start, body, groups, [known_ports[n] for n in outputs])


class Loop(NamedTuple):
    """Where the loop over a group's columns reads and writes them, in bytes of the workspace."""

    right: int
    left: int
    width: int


def loop_module(
    plan: Schedule,
    loops: Sequence[Loop],
    shape: Shape,
    body: Shape,
    shared: int,
    slots: tuple[int, int, int],
    base: int,
) -> str:
    """IR of ``columns(workspace, workspace)``: the body for all columns of all loops.

    The states of a tile have the ``shape`` of the start's values; ``body`` is the shape of the body's, for one state
    that of several columns, for several that of the tile. ``shared`` values begin at this byte of the start's part;
    ``slots`` of shared values, column and result are in the body's part, which begins at byte ``base``. For one state
    the body reads shared values as numbers and spreads them over lanes: they take an eighth of the cache.

    Columns are taken from the last to the first: for one state the registers of the last ones reach beyond the end of a
    row, into the beginning of the next, which is then written later.
    """
    at_shared, at_column, at_found = (base + slot * body.bytes for slot in slots)
    step = body.lanes // shape.lanes
    ports = plan.program.inputs
    rows_in, rows_out = ports[1].size, plan.program.outputs[0].size
    chunks = chunk_names(plan, "body")
    assert all(isinstance(s, Code) for s in plan.steps), "a body has no sines"
    vector, size = body.vector, shape.bytes
    calls = "\n".join(f"  call void @{name}(ptr %part, ptr %part)" for name in chunks)
    whole = "\n".join(
        f"  call void @group(ptr %ws, ptr %part, i64 {x.right}, i64 {x.left}, i64 {x.width}, "
        f"i64 {(x.width - 1) // step * step})"
        for x in loops
    )
    copied = (
        f"""
  %from = getelementptr i8, ptr %ws, i64 {shared}
  %to = getelementptr i8, ptr %ws, i64 {at_shared}
  call void @llvm.memcpy.p0.p0.i64(ptr align {body.size} %to, ptr align {body.size} %from,
    i64 {ports[0].size * shape.size}, i1 false)"""
        if step > 1
        else ""
    )
    return f"""
{chr(10).join(f"declare void @{name}(ptr, ptr)" for name in chunks)}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @group(ptr %ws, ptr %part, i64 %right, i64 %left, i64 %width, i64 %last) #0 {{
entry:
  %row = mul i64 %width, {size}
  br label %column
column:
  %c = phi i64 [%last, %entry], [%next, %done]
  %co = mul i64 %c, {size}
  %r0 = add i64 %right, %co
  %l0 = add i64 %left, %co
  br label %in
in:
  %i = phi i64 [0, %column], [%i1, %in]
  %from = phi i64 [%r0, %column], [%from1, %in]
  %ip = getelementptr i8, ptr %ws, i64 %from
  %iv = load {vector}, ptr %ip, align {shape.size}
  %io = mul i64 %i, {body.bytes}
  %it = add i64 %io, {at_column}
  %iq = getelementptr i8, ptr %ws, i64 %it
  store {vector} %iv, ptr %iq, align {body.size}
  %i1 = add i64 %i, 1
  %from1 = add i64 %from, %row
  %il = icmp ult i64 %i1, {rows_in}
  br i1 %il, label %in, label %solve
solve:
{calls}
  br label %out
out:
  %k = phi i64 [0, %solve], [%k1, %out]
  %to = phi i64 [%l0, %solve], [%to1, %out]
  %ko = mul i64 %k, {body.bytes}
  %kf = add i64 %ko, {at_found}
  %kp = getelementptr i8, ptr %ws, i64 %kf
  %kv = load {vector}, ptr %kp, align {body.size}
  %kq = getelementptr i8, ptr %ws, i64 %to
  store {vector} %kv, ptr %kq, align {shape.size}
  %k1 = add i64 %k, 1
  %to1 = add i64 %to, %row
  %kl = icmp ult i64 %k1, {rows_out}
  br i1 %kl, label %out, label %done
done:
  %next = sub i64 %c, {step}
  %more = icmp sge i64 %next, 0
  br i1 %more, label %column, label %end
end:
  ret void
}}

define void @columns(ptr %ws, ptr %again) #0 {{
entry:
  %part = getelementptr i8, ptr %ws, i64 {base}{copied}
{whole}
  ret void
}}
{ATTRIBUTES}"""
