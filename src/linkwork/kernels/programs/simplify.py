"""The algebraic pass: shared values, folded constants, one reciprocal per divisor, no dead code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from linkwork.kernels.programs.program import Node, Program
from linkwork.kernels.programs.value_numbering import Values

LEAVES = frozenset({"const", "input"})
"""Kinds that use no other value."""


def simplify(program: Program) -> Program:
    """The same function with fewer operations."""
    values = Values()
    signed = values.replay(program.nodes, lambda node: 2 * values.number(node))
    return finished(program, values, [[signed[v] for v in result] for result in program.results])


def finished(program: Program, values: Values, results: Sequence[Sequence[int]]) -> Program:
    """A program with the ports of `program` that gives these values."""
    plain = [[values.plain(x) for x in result] for result in results]
    return share_reciprocals(remove_dead(program.derive(values.nodes, plain))).check()


def share_reciprocals(program: Program) -> Program:
    """``x / d, y / d, ...`` become ``r = 1 / d; x * r, y * r, ...``: a division costs sixteen products.

    CasADi turns ``x * (1 / d)`` into ``x / d``; this reverses it, at one more rounding per quotient.
    """
    quotients = Counter([node[2] for node in program.nodes if node[0] == "div"])
    if all(count == 1 for count in quotients.values()):
        return program
    nodes: list[Node] = []
    place: list[int] = []
    reciprocals: dict[int, int] = {}
    for node in program.nodes:
        new = moved(node, place)
        if node[0] == "div" and quotients[node[2]] > 1:
            divisor = new[2]
            if divisor not in reciprocals:
                nodes += [("const", 1.0), ("div", len(nodes), divisor)]
                reciprocals[divisor] = len(nodes) - 1
            if program.nodes[node[1]] == ("const", 1.0):
                place.append(reciprocals[divisor])
                continue
            new = ("mul", new[1], reciprocals[divisor])
        nodes.append(new)
        place.append(len(nodes) - 1)
    results = tuple(tuple(place[v] for v in result) for result in program.results)
    return program.derive(nodes, results)


def remove_dead(program: Program) -> Program:
    """Keep what the outputs need, in the same order."""
    nodes = program.nodes
    alive = bytearray(len(nodes))
    for result in program.results:
        for v in result:
            alive[v] = 1
    for i in range(len(nodes) - 1, -1, -1):
        if alive[i]:
            node = nodes[i]
            if node[0] in LEAVES:
                continue
            if len(node) == 3:
                alive[node[1]] = alive[node[2]] = 1
            else:
                for a in node[1:]:
                    alive[a] = 1
    if all(alive):
        return program
    place = [0] * len(nodes)
    kept: list[Node] = []
    for i, node in enumerate(nodes):
        if alive[i]:
            place[i] = len(kept)
            kept.append(moved(node, place))
    results = tuple(tuple([place[v] for v in result]) for result in program.results)
    return program.derive(kept, results)


def moved(node: Node, place: Sequence[int]) -> Node:
    """The node with its arguments where they are now."""
    kind = node[0]
    if kind in LEAVES:
        return node
    if len(node) == 3:  # most have two arguments, and a tuple of these is made in a third of the time
        return (kind, place[node[1]], place[node[2]])
    return (kind, *[place[a] for a in node[1:]])
