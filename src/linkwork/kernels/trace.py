"""From an algorithm to a program: run it once on matrices of symbols, and keep what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from linkwork.backends.ops import Array, Ops
from linkwork.kernels.matrices import Matrix, Tracer
from linkwork.kernels.program import Port, Program
from linkwork.kernels.simplify import finished

Symbol = Callable[[str, int], Array]
"""`symbol(name, size)` declares an input of the program and gives it as a column."""


def trace(name: str, body: Callable[[Ops, Symbol], Mapping[str, Array]], limit: int | None = None,
          single: bool = False) -> Program:
    """The program that `body(xp, symbol)` writes: it declares its inputs, and returns its outputs by name.

    A trace that needs more than `limit` operations is given up with `Outgrown`. What counts as rounding
    is that of float64, or of `single` precision.
    """
    xp = Tracer(limit, single)
    outputs = {n: x if isinstance(x, Matrix) else xp.constant(x) for n, x in body(xp, xp.symbol).items()}
    inputs = [Port(n, (size,)) for n, size in xp.inputs.items()]
    ports = [Port(n, x.shape[:1] if x.shape[1] == 1 else x.shape) for n, x in outputs.items()]
    empty = Program(inputs, ports, (), [()] * len(ports), name)
    return finished(empty, xp.values, [x.refs for x in outputs.values()])
