"""Fused operations: multiply-add, sine with cosine, and signs that cost nothing.

A product is fused into the sums that use it when *all* of its uses can take it; a sum takes one product, of two the one
that is ready last, so that the other is computed before it. Fusing is decided here and not by the compiler, so that one
lane, eight lanes and every chunk round alike.
"""

from __future__ import annotations

from linkwork.kernels.programs.program import Node, Program
from linkwork.kernels.programs.recent import cached_of_recent
from linkwork.kernels.programs.simplify import LEAVES, moved, remove_dead

_NEGATED = {"fma": "fnms", "fnms": "fma", "fms": "fnma", "fnma": "fms"}
LATENCY = {"div": 14, "sqrt": 18, "const": 0, "input": 0, "sin_of": 0, "cos_of": 0, "sincos": 40}


@cached_of_recent
def fuse(program: Program) -> Program:
    """Sincos pairs, fused multiply-adds, swallowed signs. (Cached: both forms of a kernel start from it.)"""
    return remove_dead(swallow_signs(fuse_products(pair_sines(program)))).check()


def users(program: Program) -> list[list[int]]:
    """The nodes that use each node, with repetition; an output counts as user -1."""
    table: list[list[int]] = [[] for _ in program.nodes]
    for i, node in enumerate(program.nodes):
        if node[0] in LEAVES:
            continue
        if len(node) == 3:
            table[node[1]].append(i)
            table[node[2]].append(i)
        else:
            for a in node[1:]:
                table[a].append(i)
    for result in program.results:
        for v in result:
            table[v].append(-1)
    return table


def pair_sines(program: Program) -> Program:
    """Every sin and cos becomes half of a ``sincos``.

    The argument reduction is most of the work of either.
    """
    nodes: list[Node] = []
    place: list[int] = []
    pairs: dict[int, int] = {}
    for node in program.nodes:
        if node[0] in ("sin", "cos"):
            argument = place[node[1]]
            if argument not in pairs:
                pairs[argument] = len(nodes)
                nodes.append(("sincos", argument))
            node = (node[0] + "_of", pairs[argument])
        else:
            node = moved(node, place)
        place.append(len(nodes))
        nodes.append(node)
    if not pairs:
        return program
    return program.derive(nodes, [[place[v] for v in result] for result in program.results])


def fuse_products(program: Program) -> Program:
    """Sums take up products: a*b+c, a*b-c, c-a*b."""
    nodes = list(program.nodes)
    uses = users(program)
    depth = depths(program)
    taken: dict[int, int] = {}  # sum -> the product that it takes

    def ready(product: int) -> int:
        return max(depth[nodes[product][1]], depth[nodes[product][2]])

    for i, node in enumerate(nodes):  # products used once
        if (node[0] == "add" or node[0] == "sub") and node[1] != node[2]:
            single = [a for a in node[1:] if nodes[a][0] == "mul" and len(uses[a]) == 1]
            if single:
                taken[i] = max(single, key=ready)
    for p, node in enumerate(nodes):  # products used several times, if every use can take them
        if node[0] == "mul" and len(uses[p]) > 1:
            sums = uses[p]
            if all(u >= 0 and nodes[u][0] in ("add", "sub") and u not in taken for u in sums) and len(set(sums)) == len(
                sums
            ):
                taken.update(dict.fromkeys(sums, p))
    for i, p in taken.items():
        kind, x, y = nodes[i]
        a, b = nodes[p][1:]
        if p == x:
            nodes[i] = ("fma" if kind == "add" else "fms", a, b, y)
        else:
            nodes[i] = ("fma" if kind == "add" else "fnma", a, b, x)
    return program.derive(nodes)


def swallow_signs(program: Program) -> Program:
    """``-(a - b)`` is ``b - a``, and a fused operation negates at no cost, if the sign is its only user."""
    nodes = list(program.nodes)
    if not any(node[0] == "neg" for node in nodes):
        return program
    uses = users(program)
    for i, node in enumerate(nodes):
        if node[0] != "neg" or len(uses[node[1]]) != 1:
            continue
        inner = nodes[node[1]]
        if inner[0] == "sub":
            nodes[i] = ("sub", inner[2], inner[1])
        elif inner[0] in _NEGATED:
            nodes[i] = (_NEGATED[inner[0]], *inner[1:])
    return program.derive(nodes)


def depths(program: Program) -> list[int]:
    """The cycle at which each value is ready on a machine of unlimited width."""
    depth: list[int] = []
    for node in program.nodes:
        kind = node[0]
        if kind in LEAVES:
            start = 0
        elif len(node) == 3:
            a, b = depth[node[1]], depth[node[2]]
            start = a if a > b else b
        else:
            start = max([depth[a] for a in node[1:]])
        depth.append(start + LATENCY.get(kind, 4))
    return depth
