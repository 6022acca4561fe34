"""Where things are and when they happen: steps, chunks, and the workspace that connects them.

A scheduled program is a list of *steps*. A code step is a chunk of straight-line operations that compiles to one
function; a sincos step evaluates all sines and cosines whose arguments are known by then in one call, so that even
a single state fills the vector registers. Values that outlive their chunk pass through the workspace, whose layout
(in vectors of W lanes) is: inputs, outputs, then slots for everything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from linkwork.kernels.program import Program


@dataclass(frozen=True)
class Code:
    """A chunk: node numbers in order of execution."""

    order: tuple[int, ...]


@dataclass(frozen=True)
class Sincos:
    """``count`` arguments at slot ``argument`` give sines and cosines at slots ``sine`` and ``cosine``."""

    argument: int
    sine: int
    cosine: int
    count: int


@dataclass(frozen=True)
class Schedule:
    """The steps of a program and the workspace slot of every value that needs one."""

    program: Program
    steps: tuple[Code | Sincos, ...]
    inputs: tuple[int, ...]  # first slot of each input port
    outputs: tuple[int, ...]
    loads: dict[int, int] = field(repr=False)  # node -> slot where other chunks find it
    stores: dict[int, tuple[int, ...]] = field(repr=False)  # node -> slots that it must fill
    size: int = 0  # slots in all


def schedule(program: Program, chunk: int, padding: int = 1) -> Schedule:
    """Order the program, cut it into chunks of about ``chunk`` operations, and lay out the workspace.

    ``padding`` is the number of slots that every region is rounded up to, so that whole registers can be moved.
    """
    blocks, batches = _stages(program)
    cursor = 0

    def region(count: int) -> int:
        nonlocal cursor
        start = cursor
        cursor += -(-count // padding) * padding
        return start

    inputs = tuple(region(port.size) for port in program.inputs)
    outputs = tuple(region(port.size) for port in program.outputs)
    loads: dict[int, int] = {}
    stores: dict[int, list[int]] = {}
    steps: list[Code | Sincos] = []
    for i, node in enumerate(program.nodes):
        if node[0] == "input":
            loads[i] = inputs[node[1]] + node[2]
    for first, result in zip(outputs, program.results, strict=True):
        for k, v in enumerate(result):
            stores.setdefault(v, []).append(first + k)
    halves = {"sin_of": 0, "cos_of": 1}
    pair_slots: dict[int, tuple[int, int]] = {}
    for block, batch in zip(blocks, batches, strict=True):
        steps.extend(Code(part) for part in _cut(program, block, chunk))
        if batch:
            argument, sine, cosine = (region(len(batch)) for _ in range(3))
            steps.append(Sincos(argument, sine, cosine, len(batch)))
            for k, pair in enumerate(batch):
                stores.setdefault(program.nodes[pair][1], []).append(argument + k)
                pair_slots[pair] = (sine + k, cosine + k)
    for i, node in enumerate(program.nodes):
        if node[0] in halves:
            loads[i] = pair_slots[node[1]][halves[node[0]]]
    cursor = _connect(program, steps, loads, stores, cursor)
    fixed = {v: tuple(slots) for v, slots in stores.items()}
    return Schedule(program, tuple(steps), inputs, outputs, loads, fixed, -(-cursor // padding) * padding)


def _stages(program: Program) -> tuple[list[list[int]], list[list[int]]]:
    """Blocks of code and the sincos batches between them: what a batch needs, the batch, the next, ..., the rest."""
    nodes = program.nodes
    level = [0] * len(nodes)
    batches: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        if node[0] not in ("const", "input"):
            level[i] = max(level[a] for a in node[1:]) + (node[0] in ("sin_of", "cos_of"))
            if node[0] == "sincos":
                batches.setdefault(level[i], []).append(i)
    placed = bytearray(len(nodes))
    blocks: list[list[int]] = []
    ordered = [batches[k] for k in sorted(batches)]
    for batch in ordered:
        needed = bytearray(len(nodes))
        for pair in batch:
            needed[nodes[pair][1]] = 1
        block = []
        for i in range(len(nodes) - 1, -1, -1):
            if needed[i] and not placed[i] and nodes[i][0] not in ("sincos", "sin_of", "cos_of"):
                block.append(i)
                placed[i] = 1
                if nodes[i][0] not in ("const", "input"):
                    for a in nodes[i][1:]:
                        needed[a] = 1
        blocks.append(block[::-1])
    used = {v for result in program.results for v in result}
    rest = [
        i
        for i, node in enumerate(nodes)
        if not placed[i] and (i in used or node[0] not in ("const", "input", "sincos", "sin_of", "cos_of"))
    ]
    return [*blocks, rest], [*ordered, []]


def _cut(program: Program, block: list[int], chunk: int) -> list[tuple[int, ...]]:
    """Equal parts of at most ``chunk`` nodes."""
    if not block:
        return []
    parts = -(-len(block) // chunk)
    bounds = [len(block) * k // parts for k in range(parts + 1)]
    return [tuple(block[a:b]) for a, b in pairwise(bounds)]


def _connect(
    program: Program,
    steps: list[Code | Sincos],
    loads: dict[int, int],
    stores: dict[int, list[int]],
    cursor: int,
) -> int:
    """Give a slot to every value that a later chunk reads; slots are used again when their last reader is done."""
    nodes = program.nodes
    home: dict[int, int] = {}
    last: dict[int, int] = {}
    for s, step in enumerate(steps):
        if isinstance(step, Code):
            for i in step.order:
                home[i] = s
                if nodes[i][0] not in ("const", "input"):
                    for a in nodes[i][1:]:
                        if a in home and home[a] != s and nodes[a][0] != "const":
                            last[a] = s
    free: list[int] = []
    expiring: dict[int, list[int]] = {}
    for s, step in enumerate(steps):
        free.extend(expiring.pop(s, ()))
        if not isinstance(step, Code):
            continue
        for i in step.order:
            if i in last and i not in loads:
                if free:
                    slot = free.pop()
                else:
                    slot, cursor = cursor, cursor + 1
                loads[i] = slot
                stores.setdefault(i, []).append(slot)
                expiring.setdefault(last[i] + 1, []).append(slot)
    return cursor
