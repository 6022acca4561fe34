"""From an algorithm to a program: run it once on matrices of symbols, and record its operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from linkwork.backends.ops import Array, Ops
from linkwork.kernels.programs.garbage import collector_paused
from linkwork.kernels.programs.hoist import is_result
from linkwork.kernels.programs.matrices import Matrix, Tracer
from linkwork.kernels.programs.program import Port, Program
from linkwork.kernels.programs.simplify import finished
from linkwork.kernels.programs.symmetric_products import squared

Symbol = Callable[[str, int], Array]
"""`symbol(name, size)` declares an input of the program and gives it as a column."""


def trace(
    name: str,
    body: Callable[[Ops, Symbol], Mapping[str, Array]],
    limit: int | None = None,
    single: bool = False,
    guard: bool = False,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    on: Tracer | None = None,
) -> Program:
    """The program that `body(xp, symbol)` records.

    It declares its inputs, and returns its outputs by name.

    A trace that needs more than `limit` operations raises `Outgrown`. Rounding is that of float64, or of `single`
    precision. With `guard`, an input that no output depends on makes the first of them NaN if it is not a number; all
    others reach an output anyway. `shapes` are for outputs of other than two axes and inputs of
    more than one. `on` is a tracer of one's own.
    """
    with collector_paused():
        return _recorded(name, body, on or Tracer(limit, single), guard, {} if shapes is None else shapes)


def _recorded(
    name: str,
    body: Callable[[Ops, Symbol], Mapping[str, Array]],
    xp: Tracer,
    guard: bool,
    shapes: Mapping[str, tuple[int, ...]],
) -> Program:
    """The program of a tracer on which the body has run."""
    outputs = {n: x if isinstance(x, Matrix) else xp.constant(x) for n, x in body(xp, xp.symbol).items()}
    first = next((n for n, x in outputs.items() if x.refs and is_result(n)), None) if guard else None
    if first is not None:
        outputs[first] = _guarded(xp, outputs[first], [r for x in outputs.values() for r in x.refs])
    inputs = [Port(n, shapes.get(n, (size,))) for n, size in xp.inputs.items()]
    ports = [Port(n, shapes.get(n, x.shape[:1] if x.shape[1] == 1 else x.shape)) for n, x in outputs.items()]
    empty = Program(inputs, ports, (), [()] * len(ports), name)
    results = [x.refs for x in outputs.values()]
    program = finished(empty, xp.values, results)
    program.squared = squared(empty, xp.values, results, xp.squares)
    return program


def _guarded(xp: Tracer, output: Matrix, results: list[int]) -> Matrix:
    """The output, whose first entry also checks the inputs that none of the results depends on."""
    nodes = xp.values.nodes
    needed, stack = set[int](), [r >> 1 for r in results]
    while stack:
        n = stack.pop()
        if n not in needed:
            needed.add(n)
            stack += nodes[n][1:] if nodes[n][0] not in ("const", "input") else ()
    first, *others = output.refs
    for n in [n for n, node in enumerate(nodes) if node[0] == "input" and n not in needed]:
        first = xp.values.apply("guarded", first, 2 * n)
    return Matrix(xp.values, output.shape, [first, *others])
