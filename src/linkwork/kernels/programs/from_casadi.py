"""Programs read from CasADi functions of scalar (SX) operations, operation by operation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from linkwork.errors import KernelError, listing
from linkwork.kernels.programs.operations import BINARY, UNARY
from linkwork.kernels.programs.program import Content, Node, Port, Program
from linkwork.kernels.programs.simplify import simplify

if TYPE_CHECKING:
    import casadi as ca

REWRITTEN = ("sq", "twice", "inv", "assign")
"""Operations of CasADi that are written in others: x * x, x + x, 1 / x, and no operation."""


def read_program(function: ca.Function, optimize: bool = True) -> Program:
    """The program of a CasADi function; ``optimize`` runs the algebraic pass.

    Its nodes are read when asked for.
    """
    function = as_scalar_function(function)
    inputs = [_port(function.name_in(k), function.size_in(k)) for k in range(function.n_in())]
    outputs = [_port(function.name_out(k), function.size_out(k)) for k in range(function.n_out())]

    @cache
    def content() -> Content:
        nodes, results = read_casadi(function)
        raw = Program(inputs, outputs, nodes, results, function.name())
        done = simplify(raw) if optimize else raw.check()
        return done.nodes, done.results

    digest = hashlib.sha256(f"{optimize}\n{function.serialize()}".encode()).hexdigest()
    return Program.deferred(inputs, outputs, content, digest, function.name(), lambda: function)


@cache
def casadi_operations() -> dict[int, str]:
    """Our names of CasADi's operations."""
    import casadi as ca

    return {
        **{getattr(ca, "OP_" + kind.upper()): kind for kind in (*UNARY, *BINARY, *REWRITTEN)},
        ca.OP_CONST: "const",
        ca.OP_INPUT: "input",
        ca.OP_OUTPUT: "output",
        ca.OP_CONSTPOW: "pow",
        ca.OP_LIFT: "assign",
    }


def as_scalar_function(function: ca.Function) -> ca.Function:
    """The function as CasADi's SX, checked: no free symbols, no operation without a kernel form."""
    if not function.is_a("SXFunction"):
        try:
            function = function.expand()
        except RuntimeError as error:
            raise KernelError(f"'{function.name()}' is not a function of scalar operations: {error}") from None
    if function.has_free():
        raise KernelError(f"'{function.name()}' has free symbols: {listing(map(str, function.free_sx()))}")
    unknown = {function.instruction_id(k) for k in range(function.n_instructions())} - casadi_operations().keys()
    if unknown:
        import casadi as ca

        names = [name for name in dir(ca) if name.startswith("OP_") and getattr(ca, name) in unknown]
        valid = listing(sorted(set(casadi_operations().values())), 80)
        raise KernelError(f"'{function.name()}' uses {listing(names)}, which kernels do not have; valid: {valid}")
    return function


def read_casadi(function: ca.Function) -> Content:
    """Nodes and results of a CasADi function, operation by operation as CasADi would run it."""
    sizes = [int(np.prod(function.size_out(k))) for k in range(function.n_out())]
    places_in = [_row_major(function.sparsity_in(k)) for k in range(function.n_in())]
    places_out = [_row_major(function.sparsity_out(k)) for k in range(function.n_out())]
    zero = 0
    nodes: list[Node] = [("const", 0.0)]
    results = [[zero] * size for size in sizes]
    work: dict[int, int] = {}
    for kind, where, to, value in _instructions(function):
        if kind == "output":
            results[to[0]][places_out[to[0]][to[1]]] = work[where[0]]
            continue
        if kind == "input":
            nodes.append(("input", where[0], places_in[where[0]][where[1]]))
        elif kind == "const":
            nodes.append(("const", value))
        elif kind == "assign":
            work[to[0]] = work[where[0]]
            continue
        else:
            arguments = [work[w] for w in where]
            if kind == "twice":
                kind, arguments = "add", arguments * 2
            elif kind == "sq":
                kind, arguments = "mul", arguments * 2
            elif kind == "inv":
                nodes.append(("const", 1.0))
                kind, arguments = "div", [len(nodes) - 1, *arguments]
            nodes.append((kind, *arguments))
        work[to[0]] = len(nodes) - 1
    return nodes, tuple(map(tuple, results))


def _instructions(function: ca.Function) -> Iterator[tuple[str, Sequence[int], Sequence[int], float]]:
    """CasADi's instruction list with readable operation names."""
    names = casadi_operations()
    for k in range(function.n_instructions()):
        kind = names[function.instruction_id(k)]
        value = function.instruction_constant(k) if kind == "const" else 0.0
        yield kind, function.instruction_input(k), function.instruction_output(k), value


def _port(name: str, size: tuple[int, int]) -> Port:
    rows, columns = size
    return Port(name, (rows,) if columns == 1 else (rows, columns))


def _row_major(sparsity: ca.Sparsity) -> list[int]:
    """Where each of CasADi's column-major nonzeros goes in a dense row-major array."""
    rows, columns = sparsity.get_triplet()
    return [r * sparsity.size2() + c for r, c in zip(rows, columns, strict=True)]
