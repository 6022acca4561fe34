"""The schedule of a program: steps, chunks, and the workspace that connects them.

A scheduled program is a list of *steps*. A code step is a chunk of straight-line operations that compiles to one
function; a sincos step evaluates all sines and cosines whose arguments are known by then in one call, so that even
a single state fills the vector registers. Values that outlive their chunk pass through the workspace, whose layout
(in vectors of W lanes) is: inputs, outputs, then slots for everything else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from linkwork.kernels.programs.operations import ARITY
from linkwork.kernels.programs.order import Allocation, allocate, arguments, order
from linkwork.kernels.programs.output_stores import Outlet
from linkwork.kernels.programs.program import Program
from linkwork.kernels.programs.recent import cached_of_recent


@dataclass(frozen=True)
class Code:
    """A chunk: node numbers in order of execution, and the values evicted from registers after each."""

    order: tuple[int, ...]
    allocation: Allocation


@dataclass(frozen=True)
class Sincos:
    """``count`` arguments at slot ``argument`` give sines and cosines at slots ``sine`` and ``cosine``."""

    argument: int
    sine: int
    cosine: int
    count: int


class Layout:
    """The workspace while it is laid out: regions of slots, some of them named."""

    def __init__(self, padding: int = 1) -> None:
        self.padding, self.size = padding, 0
        self.named: dict[str, int] = {}

    def region(self, count: int) -> int:
        """The first of ``count`` new slots; regions are whole registers, so that these can be moved as such."""
        start = self.size
        self.size += self.padded(count)
        return start

    def padded(self, count: int) -> int:
        """So many slots, up to whole registers."""
        return -(-count // self.padding) * self.padding

    def port(self, name: str, count: int) -> int:
        """The region of this name, allocated if new."""
        if name not in self.named:
            self.named[name] = self.region(count)
        return self.named[name]


@dataclass(frozen=True)
class Schedule:
    """The steps of a program and the workspace slot of every value that needs one."""

    program: Program
    steps: tuple[Code | Sincos, ...]
    loads: dict[int, int] = field(repr=False)  # node -> slot where other chunks find it
    stores: dict[int, tuple[int, ...]] = field(repr=False)  # node -> slots that it must fill
    outputs: tuple[tuple[int, ...], ...] = field(repr=False)  # the slot of every element of every output
    outlet: Outlet | None = field(default=None, repr=False)  # how outputs leave that have no slots


def schedule(
    program: Program,
    chunk: int,
    registers: int,
    layout: Layout,
    suffix: str = "'",
    keep: bool = True,
    blanks: Sequence[Collection[int]] = (),
    unstored: Sequence[Collection[int]] = (),
    outlet: Outlet | None = None,
) -> Schedule:
    """Order the program, cut it into chunks of about ``chunk`` operations, and lay out the workspace.

    ``registers`` is how many values a chunk may hold at once. Inputs are found in the layout under their names,
    outputs under their names with ``suffix``. Unless inputs must stay for other programs, their slots are reused once
    they have been read for the last time: the smaller the workspace, the better it fits the cache. Elements of outputs
    that are ``blanks`` have no slot, and those that are ``unstored`` have one that is not filled.
    """
    codes, batches = allocated(program, chunk, registers)
    inputs = [layout.port(port.name, port.size) for port in program.inputs]
    left = blanks or [()] * len(program.results)
    results = [[v for e, v in enumerate(r) if e not in skip] for r, skip in zip(program.results, left, strict=True)]
    outputs = [
        tuple(range(first, first + len(result)))
        for port, result in zip(program.outputs, results, strict=True)
        for first in [layout.port(port.name + suffix, len(result))]
    ]
    loads: dict[int, int] = {}
    stores: dict[int, list[int]] = {}
    steps: list[Code | Sincos] = []
    for i, node in enumerate(program.nodes):
        if node[0] == "input":
            loads[i] = inputs[node[1]] + node[2]
    idle = {slots[e] for slots, elements in zip(outputs, unstored, strict=False) for e in elements}
    for slots, result in zip(outputs, results, strict=True):
        for slot, v in zip(slots, result, strict=True):
            if slot not in idle and slot not in stores.setdefault(v, []):
                stores[v].append(slot)
    halves = {"sin_of": 0, "cos_of": 1}
    pair_slots: dict[int, tuple[int, int]] = {}
    for code, batch in zip(codes, batches, strict=True):
        steps += code
        if batch:
            argument, sine, cosine = (layout.region(len(batch)) for _ in range(3))
            steps.append(Sincos(argument, sine, cosine, len(batch)))
            for k, pair in enumerate(batch):
                stores.setdefault(program.nodes[pair][1], []).append(argument + k)
                pair_slots[pair] = (sine + k, cosine + k)
    for i, node in enumerate(program.nodes):
        if node[0] in halves:
            loads[i] = pair_slots[node[1]][halves[node[0]]]
    written = {
        v: slot
        for slots, result in zip(outputs, results, strict=True)
        for slot, v in zip(slots, result, strict=True)
        if slot not in idle
    }
    _connect(program, steps, loads, stores, layout, keep, written)
    fixed = {v: tuple(slots) for v, slots in stores.items()}
    return Schedule(program, tuple(steps), loads, fixed, tuple(outputs), outlet)


@cached_of_recent
def allocated(program: Program, chunk: int, registers: int) -> tuple[list[list[Code]], list[list[int]]]:
    """The chunks of every block, with their registers, and the batches between blocks; for any lanes."""
    blocks, batches = arranged(program)
    cut = [_cut(block, chunk) for block in blocks]
    return [[Code(part, allocate(program, part, registers)) for part in parts] for parts in cut], batches


@cached_of_recent
def arranged(program: Program) -> tuple[list[list[int]], list[list[int]]]:
    """Blocks of code in the order of their execution, and the sincos batches between them.

    The same for any lanes.
    """
    blocks, batches = _stages(program)
    return [order(program, block) for block in blocks], batches


def _stages(program: Program) -> tuple[list[list[int]], list[list[int]]]:
    """Blocks of code and the sincos batches between them.

    What a batch needs, the batch, the next, ..., the rest.
    """
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
        direct = {nodes[pair][1] for pair in batch}
        for a in direct:
            needed[a] = 1
        block = []
        for i in range(len(nodes) - 1, -1, -1):
            half = nodes[i][0] in ("sin_of", "cos_of")
            if needed[i] and not placed[i] and (i in direct if half else nodes[i][0] != "sincos"):
                block.append(i)
                placed[i] = 1
                if not half:
                    for a in arguments(nodes[i]):
                        needed[a] = 1
        blocks.append(block[::-1])
    used = {v for result in program.results for v in result}
    rest = [
        i
        for i, node in enumerate(nodes)
        if not placed[i] and (i in used or node[0] not in ("const", "input", "sincos", "sin_of", "cos_of"))
    ]
    return [*blocks, rest], [*ordered, []]


def _cut(block: list[int], chunk: int) -> list[tuple[int, ...]]:
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
    layout: Layout,
    keep: bool,
    written: dict[int, int],
) -> None:
    """Give a slot to every value that is read from memory; slots are reused after their last reader.

    What is `written` to a slot of its own is read again there.
    """
    nodes = program.nodes
    flat = [i for step in steps if isinstance(step, Code) for i in step.order]
    home: dict[int, int] = {}
    last: dict[int, int] = {}  # the last operation that uses a value, counted over all chunks
    wanted: set[int] = set()
    expiring: dict[int, list[int]] = {}
    clock = 0
    for s, step in enumerate(steps):
        if isinstance(step, Sincos):
            expiring.setdefault(clock, []).extend(range(step.argument, step.argument + step.count))
            continue
        wanted |= step.allocation.spilled
        for i in step.order:
            home[i] = s
            for a in arguments(nodes[i]):
                last[a] = clock
                if home.get(a, s) != s and nodes[a][0] in ARITY:
                    wanted.add(a)
            clock += 1
    wanted -= loads.keys()
    passed_on = {i for i in flat if nodes[i][0] not in ARITY or i in loads}
    for i, slot in loads.items():
        if i in last and i not in passed_on and not (keep and nodes[i][0] == "input"):
            expiring.setdefault(last[i], []).append(slot)
    for i in wanted & written.keys():
        loads[i] = written[i]
    wanted -= written.keys()
    lines = _Lines(program, flat, loads)
    free: list[int] = []
    for clock, i in enumerate(flat):
        free.extend(expiring.pop(clock, ()))
        lines.advance(clock)
        if i in wanted:
            if not free:
                first = layout.region(layout.padding)
                free.extend(range(first + layout.padding - 1, first - 1, -1))
            slot = lines.choose(free)
            stores.setdefault(i, []).append(slot)
            loads[i] = slot
            expiring.setdefault(last[i], []).append(slot)


class _Lines:
    """Choose slots so that loads do not soon follow a store at the same distance from a page boundary.

    A processor compares loads with earlier stores by the low twelve address bits first; a match is taken for a
    dependency until proven otherwise. With vectors as long as a cache line there are only 64 such classes.
    """

    CLASSES, AHEAD = 64, 100

    def __init__(self, program: Program, flat: list[int], loads: dict[int, int]) -> None:
        self.nodes, self.flat, self.loads = program.nodes, flat, loads
        self.soon = [0] * self.CLASSES
        self.counted: deque[list[int]] = deque()
        self.reach = 0

    def advance(self, clock: int) -> None:
        """Look ahead from this operation on."""
        while self.reach < min(clock + self.AHEAD, len(self.flat)):
            operands = arguments(self.nodes[self.flat[self.reach]])
            classes = [self.loads[a] % self.CLASSES for a in operands if a in self.loads]
            for c in classes:
                self.soon[c] += 1
            self.counted.append(classes)
            self.reach += 1
        while len(self.counted) > self.reach - clock:
            for c in self.counted.popleft():
                self.soon[c] -= 1

    def choose(self, free: list[int]) -> int:
        """The slot freed last whose class is not read soon."""
        for k in range(len(free) - 1, max(len(free) - 1 - self.CLASSES, -1), -1):
            if not self.soon[free[k] % self.CLASSES]:
                return free.pop(k)
        return free.pop()
