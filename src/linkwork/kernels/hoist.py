"""From one program with a step in it to a start, a loop and a finish.

The program takes the user's inputs and a state `x`, and gives

    x_first, residual_first     of the first step, which need no x,
    x_next, residual            of a step from x,
    anything else               the outputs, from x.

Whatever a step or the outputs need that does not depend on x is computed once, at the start, and handed on: this moves
the factorisations of an iterative solver to the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.kernels.iterate import IterativeProgram
from linkwork.kernels.program import Node, Port, Program

STATE, HANDED_ON = "x", "handed_on"
LEAVES = ("const", "input")


def hoist(program: Program, hand_on: bool = True) -> IterativeProgram:
    """Cut a program by what depends on its input `x`.

    Unless it may `hand_on` what the start computes, every further step computes all of it again: right for methods that
    rarely take one, because values that are handed on occupy the first data cache of the start.
    """
    place = {port.name: k for k, port in enumerate(program.inputs)}
    results = {port.name: list(nodes) for port, nodes in zip(program.outputs, program.results, strict=True)}
    shapes = {port.name: port.shape for port in program.outputs}
    nodes = program.nodes

    varies: list[bool] = []
    for node in nodes:
        from_x = node[0] == "input" and node[1] == place[STATE]
        varies.append(from_x or (node[0] not in LEAVES and any(varies[a] for a in node[1:])))

    loop, ends = ["x_next", "residual"], [n for n in results if n not in STEP]
    wanted = [n for name in (*loop, *ends) for n in results[name]]
    handed_on = [n for n in boundary(nodes, varies, wanted) if nodes[n][0] not in LEAVES] if hand_on else []

    state = Port(STATE, program.inputs[place[STATE]].shape)
    handed = Port(HANDED_ON, (max(len(handed_on), 1),))
    users = [port for port in program.inputs if port.name != STATE]
    known = {n: (HANDED_ON, e) for e, n in enumerate(handed_on)}

    def part(
        name: str, inputs: list[Port], outputs: dict[str, list[int]], leaves: dict[int, tuple[str, int]]
    ) -> Program:
        ports = [Port(n, shapes.get(n, state.shape if n == STATE else handed.shape)) for n in outputs]
        return extract(program, name, inputs, ports, list(outputs.values()), leaves)

    first = {STATE: results["x_first"], "residual": results["residual_first"], HANDED_ON: handed_on or [0]}
    start = part("start", users, first, {})
    step = part("iterate", [*users, state, handed], {STATE: results["x_next"], "residual": results["residual"]}, known)
    finish = part("finish", [*users, state, handed], {n: results[n] for n in ends}, known)
    return IterativeProgram(start, step, finish, name=program.name, rarely=not hand_on)


STEP = ("x_first", "residual_first", "x_next", "residual")
"""The outputs that are not the user's."""


def boundary(nodes: Sequence[Node], varies: list[bool], wanted: list[int]) -> list[int]:
    """The nodes that do not vary and are needed by those that do, or are wanted themselves."""
    found: set[int] = set()
    stack, seen = list(wanted), set(wanted)
    while stack:
        n = stack.pop()
        if not varies[n]:
            found.add(n)
            continue
        for a in nodes[n][1:] if nodes[n][0] not in LEAVES else ():
            if a not in seen:
                seen.add(a)
                stack.append(a)
    return sorted(found)


def extract(
    program: Program,
    name: str,
    inputs: list[Port],
    outputs: list[Port],
    results: list[list[int]],
    leaves: dict[int, tuple[str, int]],
) -> Program:
    """The part of a program that computes `results`, with some nodes read from ports instead."""
    place = {port.name: k for k, port in enumerate(inputs)}
    old = program.nodes
    needed = bytearray(len(old))
    for result in results:
        for n in result:
            needed[n] = 1
    for n in range(len(old) - 1, -1, -1):
        if needed[n] and n not in leaves and old[n][0] not in LEAVES:
            for a in old[n][1:]:
                needed[a] = 1
    nodes: list[Node] = []
    new = [0] * len(old)
    for n, node in enumerate(old):
        if not needed[n]:
            continue
        if n in leaves:
            port, element = leaves[n]
            node = ("input", place[port], element)
        elif node[0] == "input":
            node = ("input", place[program.inputs[node[1]].name], node[2])
        elif node[0] != "const":
            node = (node[0], *[new[a] for a in node[1:]])
        new[n] = len(nodes)
        nodes.append(node)
    return Program(inputs, outputs, nodes, [[new[n] for n in result] for result in results], name)
