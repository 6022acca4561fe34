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
        self.users: list[list[int]] = [[] for _ in block]
        for k, v in enumerate(block):
            operands = []
            for a in arguments(nodes[v]):
                if nodes[a][0] != "const":
                    at = place.setdefault(a, len(self.users))
                    if at == len(self.users):
                        self.users.append([])
                    self.users[at].append(k)
                    operands.append(at)
            self.operands.append(operands)
        self.uses = [len(u) for u in self.users]
        self.inside = [sum([a < self.size for a in used]) for used in self.operands]


def _forward(graph: _Graph, ties: Sequence[int]) -> list[int]:
    """From the beginning: the operation that leaves the fewest values alive, of those that need not wait."""
    size, operands, users, latency = graph.size, graph.operands, graph.users, graph.latency
    rank = [0] * size
    for t, v in enumerate(ties):
        rank[v] = t
    left, missing, alive = graph.uses.copy(), graph.inside.copy(), bytearray(len(users))
    # how many more values are alive after an operation; it only falls as others are placed
    growth = [
        (left[v] > 0) + (0 if missing[v] == len(used) else sum([left[a] > 1 for a in used if a >= size]))
        for v, used in enumerate(operands)
    ]
    placed, could = bytearray(size), bytearray(size)  # what could come next
    start = [0] * size  # when its operands are there
    # heaps of pairs (a, b) as numbers a * size + b
    ready: list[int] = []  # (growth, rank): need not wait
    early: list[int] = []  # (growth, rank): would have to wait
    alarm: list[int] = []  # (time, operation): until then
    now, touched, result = 0, [v for v in range(size) if not missing[v]], list[int]()
    for v in touched:
        could[v] = 1
    while len(result) < size:
        horizon = now + AHEAD
        for u in touched:  # offer these again
            heappush(ready if start[u] <= horizon else early, growth[u] * size + rank[u])
        while alarm and alarm[0] < (horizon + 1) * size:
            v = heappop(alarm) % size
            if could[v]:
                heappush(ready, growth[v] * size + rank[v])
        v = -1
        for heap in (ready, early):
            while v < 0 and heap:
                change, t = divmod(heappop(heap), size)
                u = ties[t]
                v = u if could[u] and growth[u] == change else -1  # otherwise an old offer
        placed[v], could[v] = 1, 0
        result.append(v)
        begun = start[v]
        now = max(now, begun - AHEAD) + 1
        finish = max(now, begun) + latency[v]
        touched = []
        for a in operands[v]:
            left[a] = others = left[a] - 1
            if not others or (alive[a] and others > 1):
                continue
            less = 1 if alive[a] or others > 1 else 2  # the last use ends it, and a value from outside is there now
            alive[a] = 1
            for u in users[a]:
                if not placed[u]:
                    growth[u] -= less
                    if could[u]:
                        touched.append(u)
        if users[v]:
            alive[v] = 1
            if left[v] == 1:
                growth[users[v][0]] -= 1
            for u in users[v]:
                missing[u] -= 1
                if finish > start[u]:
                    start[u] = finish
                if not missing[u]:
                    could[u] = 1
                    touched.append(u)
                    if start[u] > now + AHEAD:
                        heappush(alarm, start[u] * size + u)
    return result


def _backward(graph: _Graph, sign: int) -> list[int]:
    """From the end: of operations whose users are placed, the one that needs the fewest new values.

    Ties: the last of the program, or with ``sign`` -1 the first.
    """
    size, operands, users = graph.size, graph.operands, graph.users
    left = graph.uses.copy()
    alive, could = bytearray(len(users)), bytearray(size)
    growth = [len(used) - (left[v] > 0) for v, used in enumerate(operands)]  # values alive before it, not after it
    tie = range(size - 1, -1, -1) if sign > 0 else range(size)
    heap: list[int] = []  # pairs (growth, tie) as numbers growth * size + tie

    def offer(v: int) -> None:
        heappush(heap, growth[v] * size + tie[v])

    for v in range(size):
        if not left[v]:
            could[v] = 1
            offer(v)
    result: list[int] = []
    while heap:
        change, t = divmod(heappop(heap), size)
        v = tie[t]
        if not could[v] or growth[v] != change:
            continue  # an old offer
        could[v] = 0
        result.append(v)
        for a in operands[v]:
            left[a] -= 1
            if not alive[a]:
                alive[a] = 1
                for u in users[a]:
                    growth[u] -= 1
                    if could[u]:
                        offer(u)
            if not left[a] and a < size:
                could[a] = 1
                offer(a)
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
    if len(node) == 3:
        return node[1:] if node[1] != node[2] else node[1:2]
    return node[1:] if len({*node[1:]}) == len(node) - 1 else tuple(dict.fromkeys(node[1:]))
