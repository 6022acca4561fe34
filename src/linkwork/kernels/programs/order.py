"""The order of operations, and which values stay in registers.

A processor with 32 registers runs a program of thousands of operations; every value that does not fit is stored and
loaded again. Three classic methods keep that traffic low; compilers apply none of them to blocks of this size:

- *Order*: of all operations that could come next, take one that leaves the fewest values alive. A chain of uses is
  followed while it lasts, and branches of a tree finish one after another. Ties matter: they follow the program, or one
  of two orders made likewise from the end (of all operations whose users are placed, the one that needs the fewest new
  values), whichever needs the fewest values in memory.
- *Latency*: a result is ready some cycles after its operation began. Operations that would wait for longer than the
  processor looks ahead are postponed while others are ready: up to a fifth less time for one state.
- *Eviction* (Belady): when registers run out, the value whose next use is furthest away is stored in the workspace, and
  read back as a memory operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush

from linkwork.kernels.programs.program import Node, Program

MEMORY = frozenset({"input", "sin_of", "cos_of"})
"""Kinds whose values are found in the workspace from the start."""

LEAVES = ("const", "input")
"""Kinds that use no other value."""

LATENCY = {"div": 32, "sqrt": 40}
USUAL_LATENCY = 8
"""Latency of a result, in operations that could begin meanwhile: two per cycle."""

AHEAD = 40
"""How far the processor looks ahead for an operation that need not wait, in the same unit."""

KEPT = 100
"""A value that is used again after more operations than this will have lost its register."""


def order(program: Program, block: Sequence[int]) -> list[int]:
    """The nodes of a block, sorted again so that few values are alive at any time and few wait."""
    graph = _Graph(program, block)
    ties = [range(len(block)), _backward(graph, 1), _backward(graph, -1)]
    best = min((_forward(graph, each) for each in ties), key=partial(_in_memory, graph))
    return [block[k] for k in best]


class _Graph:
    """Users and operands in a block, by place.

    Its nodes have the first places, values from outside the next ones.
    """

    def __init__(self, program: Program, block: Sequence[int]) -> None:
        nodes, self.size = program.nodes, len(block)
        place = {v: k for k, v in enumerate(block)}
        self.latency = [LATENCY.get(nodes[v][0], USUAL_LATENCY) for v in block]
        self.operands: list[list[int]] = []
        for v in block:
            used = [a for a in arguments(nodes[v]) if nodes[a][0] != "const"]
            self.operands.append([place.setdefault(a, len(place)) for a in used])
        self.users: list[list[int]] = [[] for _ in place]
        for k, used in enumerate(self.operands):
            for a in used:
                self.users[a].append(k)


def _forward(graph: _Graph, ties: Sequence[int]) -> list[int]:
    """From the beginning: the operation that leaves the fewest values alive, of those that need not wait."""
    size, operands, users, latency = graph.size, graph.operands, graph.users, graph.latency
    rank = [0] * size
    for t, v in enumerate(ties):
        rank[v] = t
    left = [len(u) for u in users]
    missing = [sum([a < size for a in used]) for used in operands]
    alive = bytearray(len(users))
    growth: dict[int, int] = {}  # of every operation that could come next: how many more values are alive after it
    start = [0] * size  # when its operands are there
    finish = [0] * len(users)
    # heaps of pairs (a, b) as numbers a * size + b
    ready: list[int] = []  # (growth, rank): need not wait
    early: list[int] = []  # (growth, rank): would have to wait
    alarm: list[int] = []  # (time, operation): until then
    now, touched, result = 0, {v for v in range(size) if not missing[v]}, list[int]()
    while touched or growth:
        horizon = now + AHEAD
        for u in touched:  # offer these again
            change = 1 if users[u] else 0
            for a in operands[u]:
                if alive[a]:
                    change -= left[a] == 1
                else:
                    change += left[a] > 1
            if growth.get(u) != change:
                growth[u] = change
                heappush(ready if start[u] <= horizon else early, change * size + rank[u])
        while alarm and alarm[0] < (horizon + 1) * size:
            v = heappop(alarm) % size
            if v in growth:
                heappush(ready, growth[v] * size + rank[v])
        v = -1
        for heap in (ready, early):
            while v < 0 and heap:
                change, t = divmod(heappop(heap), size)
                v = ties[t] if growth.get(ties[t]) == change else -1  # otherwise an old offer
        del growth[v]
        result.append(v)
        now = max(now, start[v] - AHEAD) + 1
        finish[v] = max(now, start[v]) + latency[v]
        touched = set()
        for a in operands[v]:
            left[a] -= 1
            if not alive[a] or left[a] == 1:
                touched.update([u for u in users[a] if u in growth])
            alive[a] = left[a] > 0
        if users[v]:
            alive[v] = 1
            for u in users[v]:
                missing[u] -= 1
                if not missing[u]:
                    start[u] = max([finish[a] for a in operands[u]])
                    touched.add(u)
                    if start[u] > now + AHEAD:
                        heappush(alarm, start[u] * size + u)
    return result


def _backward(graph: _Graph, sign: int) -> list[int]:
    """From the end: of operations whose users are placed, the one that needs the fewest new values.

    Ties: the last of the program, or with ``sign`` -1 the first.
    """
    size, operands, users = graph.size, graph.operands, graph.users
    left = [len(u) for u in users]
    alive = bytearray(len(users))
    growth: dict[int, int] = {}
    heap: list[tuple[int, int]] = []

    def offer(v: int) -> None:
        change = -alive[v]
        for a in operands[v]:
            change += not alive[a]
        if growth.get(v) != change:
            growth[v] = change
            heappush(heap, (change, -sign * v))

    for v in range(size):
        if not left[v]:
            offer(v)
    result: list[int] = []
    while heap:
        change, v = heappop(heap)
        v *= -sign
        if growth.get(v) != change:
            continue  # an old offer
        del growth[v]
        result.append(v)
        alive[v] = 0
        touched: set[int] = set()
        for a in operands[v]:
            left[a] -= 1
            if not alive[a]:
                alive[a] = 1
                touched.update([u for u in users[a] if u in growth])
            if not left[a] and a < size:
                touched.add(a)
        for u in touched:
            offer(u)
    return result[::-1]


def _in_memory(graph: _Graph, sequence: Sequence[int]) -> int:
    """About how many slots and stores an order needs: the most values alive at once, and long-lived ones."""
    begin, end = [0] * len(graph.users), [0] * len(graph.users)
    for t, v in enumerate(sequence):
        begin[v] = t
        for a in graph.operands[v]:
            end[a] = t
    change = [0] * (len(sequence) + 1)
    kept = 0
    for first, last in zip(begin, end, strict=True):
        if last > first:
            change[first] += 1
            change[last] -= 1
            kept += last - first > KEPT
    alive = most = 0
    for step in change:
        alive += step
        most = max(most, alive)
    return most + kept


@dataclass(frozen=True)
class Allocation:
    """For each operation of a chunk, the values that leave their registers after it.

    And those that need a slot.
    """

    drops: tuple[tuple[int, ...], ...]
    spilled: frozenset[int]


def allocate(program: Program, chunk: Sequence[int], registers: int) -> Allocation:
    """Belady's choice of registers; the next use of a value in memory counts as twice as far."""
    nodes = program.nodes
    uses: dict[int, list[int]] = {}
    for t in range(len(chunk) - 1, -1, -1):
        for a in arguments(nodes[chunk[t]]):
            if nodes[a][0] != "const":
                uses.setdefault(a, []).append(t)  # latest first: the next use is popped from the end
    inside = {v for v in chunk if nodes[v][0] not in MEMORY}
    stored: set[int] = set()
    held: set[int] = set()
    drops = []
    for t, v in enumerate(chunk):
        used = [a for a in arguments(nodes[v]) if a in uses]
        for a in used:
            uses[a].pop()
        held.update(used)
        held.add(v)
        gone = [a for a in (*used, v) if not uses.get(a)]
        held.difference_update(gone)
        while len(held) > registers:
            far = max(held, key=lambda a: (uses[a][-1] - t) * (2 if a in stored or a not in inside else 1))
            held.discard(far)
            gone.append(far)
            if far in inside:
                stored.add(far)
        drops.append(tuple(gone))
    return Allocation(tuple(drops), frozenset(stored))


def arguments(node: Node) -> tuple[int, ...]:
    """The nodes that a node uses, each once."""
    if node[0] in LEAVES:
        return ()
    return node[1:] if len({*node[1:]}) == len(node) - 1 else tuple(dict.fromkeys(node[1:]))
