"""The order of operations, and which values stay in registers.

A processor with 32 registers runs a program of thousands of operations; every value that does not fit is stored and
loaded again. Two classic ideas keep that traffic low, and compilers apply neither to blocks of this size:

- *Order*: of all operations that could come next, take one that leaves the fewest values alive (ties: the earliest
  in program order). A chain of uses is followed while it lasts, and branches of a tree finish one after another.
- *Eviction* (Belady): when registers run out, the value whose next use is furthest away goes to the workspace, and
  comes back as an operand in memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from linkwork.kernels.program import Node, Program

MEMORY = frozenset({"input", "sin_of", "cos_of"})
"""Kinds whose values are found in the workspace from the start."""


def order(program: Program, block: Sequence[int]) -> list[int]:
    """The nodes of a block, topologically sorted again so that few values are alive at any time."""
    nodes = program.nodes
    rank = {v: t for t, v in enumerate(block)}
    operands = {v: [a for a in arguments(nodes[v]) if nodes[a][0] != "const"] for v in block}
    users: dict[int, list[int]] = {}
    for v, used in operands.items():
        for a in used:
            users.setdefault(a, []).append(v)
    left = {a: len(u) for a, u in users.items()}
    missing = {v: sum(a in rank and nodes[a][0] != "const" for a in used) for v, used in operands.items()}
    alive: set[int] = set()

    def growth(v: int) -> int:
        """How many more values are alive after this operation."""
        change = 1 if v in users else 0
        for a in operands[v]:
            if a in alive:
                change -= left[a] == 1
            else:
                change += left[a] > 1
        return change

    current: dict[int, int] = {}
    heap: list[tuple[int, int]] = []

    def offer(v: int) -> None:
        current[v] = growth(v)
        heapq.heappush(heap, (current[v], rank[v]))

    for v in block:
        if not missing[v]:
            offer(v)
    result: list[int] = []
    while heap:
        score, place = heapq.heappop(heap)
        v = block[place]
        if current.get(v) != score:
            continue  # an old offer
        del current[v]
        result.append(v)
        touched: set[int] = set()
        for a in operands[v]:
            left[a] -= 1
            if a not in alive or left[a] == 1:
                touched.update(u for u in users[a] if u in current)
            if left[a]:
                alive.add(a)
            else:
                alive.discard(a)
        if v in users:
            alive.add(v)
            for u in users[v]:
                missing[u] -= 1
                if not missing[u]:
                    touched.add(u)
        for u in touched:
            offer(u)
    return result


@dataclass(frozen=True)
class Allocation:
    """For each operation of a chunk, the values that leave their registers after it; and those that need a slot."""

    drops: tuple[tuple[int, ...], ...]
    spilled: frozenset[int]


def allocate(program: Program, chunk: Sequence[int], registers: int) -> Allocation:
    """Belady's choice of what to keep. A value that is in memory anyway is the better one to drop."""
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
        for a in arguments(nodes[v]):
            if a in uses:
                uses[a].pop()
                held.add(a)
        held.add(v)
        gone = [a for a in held if not uses.get(a)]
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
    return () if node[0] in ("const", "input") else tuple(dict.fromkeys(node[1:]))
