"""How much stack and code the C of a program takes, estimated from its operations.

A value is alive from where it is computed to its last use. What is alive at once at most is on the stack, with the
arrays of angles and sines of every stage and the state of a loop. Compilers change the order, which makes that more:
the numbers below are such that gcc 12 with `-O2` for a Cortex-M7 takes no more stack than is said (`-fstack-usage`),
and about the code that is said, for chains, quadrupeds, humanoids and loops.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.iterate import IterativeProgram
from linkwork.kernels.programs.products import ProductProgram
from linkwork.kernels.programs.program import Program
from linkwork.kernels.programs.schedule import arranged

SIZES = {"float64": 8, "float32": 4}
REORDERED, FRAME = 2.0, 160
"""Stack in a compiler's order over that in ours, and bytes of saved registers and spilled addresses."""

OPERATION, CONSTANT, SINES = 10.5, 0.45, 600
"""Bytes of code for an operation with its loads and stores, of that for a byte of its numbers, and for the sines."""


class Size(NamedTuple):
    """Bytes of stack, and of code with its constants."""

    stack: int
    code: int


def sentence(program: Program | IterativeProgram | ProductProgram, dtype: str) -> str:
    """The line of a header."""
    size = estimated(program, dtype)
    stack, code = (f"{max(1, round(n / 100)) / 10:g} kB" for n in size)
    return f"No allocation, no static state. Stack: {stack} at most, code: about {code} (Cortex-M7, gcc -O2)."


def estimated(program: Program | IterativeProgram | ProductProgram, dtype: str) -> Size:
    """What a function takes, without the functions of the C library that it calls."""
    if isinstance(program, ProductProgram):
        program = program.unrolled()
    state, each = 0, SIZES[dtype]
    if isinstance(program, IterativeProgram):
        handed = [loop.prepare for loop in program.further]
        parts = [program.start, program.iterate, *handed]
        state = sum(port.size for part in parts for port in part.outputs)
        parts += [program.last, *(part for loop in program.further for part in (loop.iterate,))]
    else:
        parts = [program]
    found = [alive(part) for part in parts]
    stack = each * state + sum(REORDERED * each * (values + sines) + FRAME for values, sines, _ in found)
    code = SINES + (OPERATION + CONSTANT * each) * sum(operations for *_, operations in found)
    return Size(int(stack), int(code))


def alive(program: Program) -> tuple[int, int, int]:
    """The values that are alive at once, the numbers in arrays of sines, and the operations."""
    program = fuse(program)
    nodes = program.nodes
    blocks, batches = arranged(program)
    order = [i for block, batch in zip(blocks, batches, strict=True) for i in (*block, *batch)]
    place = {i: k for k, i in enumerate(order) if nodes[i][0] not in ("const", "input", "sin_of", "cos_of")}
    last = dict(place)
    for i, k in place.items():
        for a in nodes[i][1:] if nodes[i][0] != "sincos" else nodes[i][1:2]:
            if a in last:
                last[a] = max(last[a], k)
    changes = [0] * (len(order) + 1)
    for i, k in place.items():
        changes[k] += 1
        changes[last[i]] -= 1
    now = most = 0
    for change in changes:
        now += change
        most = max(most, now)
    return most, 3 * sum(map(len, batches)), len(place)
