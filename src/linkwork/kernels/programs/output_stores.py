"""Outputs of a batch, stored in the user's rows in the midst of the arithmetic.

Lanes are states and arrays are batch-first: the lanes of a value belong to W rows. A *put* is a node of a program that
takes C values side by side in an output, transposes them in registers and stores C numbers in each of W rows. It is
scheduled like any other operation, as soon as its values are there: a processor does products and stores at the same
time, but does not look far enough ahead to find stores that come after all products (a fifth to a third of the time of
a mass matrix or a Jacobian). A value that is not needed afterwards is stored nowhere else.

The rows of an output are W pointers in the workspace. In the last, incomplete tile idle lanes have the values of the
last row, and its pointer. Blocks of C numbers that are zero in every state are not put: the driver writes them, unless
they are zero already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwork.kernels.programs.program import Node, Program

STORED, LINE = 32, 64
"""Bytes of a row that a put stores: half a cache line. Zen 4 stores halves as fast as whole lines, and more halves than
lines are all zero. But whole lines where results of a tile are larger than `NEAR` and take more than `LONG` operations
each: otherwise most lines are fetched twice, because they have left the first-level cache before their other half comes
(derivatives of a quadruped take 2 to 10 % less time, and Talos' inverse dynamics' 9)."""

NEAR, LONG = 32 * 1024, 5
"""Bytes of a first-level cache; fused operations (mass matrices have 2 or 3, and their lines are still there)."""

ZEROS = ("const", 0.0), ("const", -0.0)
POINTER = 8
"""Bytes."""


class Put(NamedTuple):
    """Outputs and columns in which a put stores its values; those that it alone checks for NaN."""

    targets: tuple[tuple[int, int], ...]
    checked: tuple[int, ...]


class Outlet(NamedTuple):
    """How outputs leave: puts by their nodes, blocks of zeros, and what the workspace has for them."""

    puts: dict[int, Put]
    widths: tuple[int, ...]  # of the blocks of every output
    blanks: tuple[tuple[int, ...], ...]  # first columns of blocks of zeros
    rows: tuple[int, ...]  # the first slot of every output's pointers
    sum: int  # the slot of a sum that is not finite where an output is not


def with_puts(program: Program, lanes: int, size: int, region: Callable[[int], int]) -> tuple[Program, Outlet]:
    """The program with puts instead of results.

    ``size`` is that of a number, in bytes; ``region`` allocates so many slots of a workspace. Equal blocks of several
    rows or outputs are transposed once.
    """
    nodes: list[Node] = list(program.nodes)
    targets: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    widths, blanks = [], []
    written = sum(nodes[v] not in ZEROS for result in program.results for v in result)
    whole = written * lanes * size > NEAR and len(nodes) > LONG * written
    most = min(lanes, (LINE if whole else STORED) // size)
    for port, result in enumerate(program.results):
        width, full, blank = blocks_of([nodes[v] in ZEROS for v in result], most)
        for first in full:
            targets.setdefault(result[first : first + width], []).append((port, first))
        widths.append(width)
        blanks.append(tuple(blank))
    puts: dict[int, Put] = {}
    seen: set[int] = set()
    for values, places in targets.items():
        checked = [v for v in dict.fromkeys(values) if v not in seen and not _finite(nodes[v])]
        seen.update(checked)
        puts[len(nodes)] = Put(tuple(places), tuple(checked))
        nodes.append(("put", *values))
    rows = tuple(region(POINTER // size) for _ in program.results)
    outlet = Outlet(puts, tuple(widths), tuple(blanks), rows, region(1))
    return Program(program.inputs, (), nodes, (), program.name), outlet


def _finite(node: Node) -> bool:
    return node[0] == "const" and math.isfinite(node[1])


def blocks_of(zeros: Sequence[bool], most: int) -> tuple[int, list[int], list[int]]:
    """The width of blocks of columns, and first columns of those with anything in them, and of the others.

    A width is a power of two, ``most`` at most; the last block ends at the last column.
    """
    size = len(zeros)
    width = min(most, 1 << max(size.bit_length() - 1, 0))
    full: list[int] = []
    blank: list[int] = []
    for first in range(0, size, width):
        start = min(first, size - width)
        (blank if all(zeros[start : start + width]) else full).append(start)
    return width, full, blank
