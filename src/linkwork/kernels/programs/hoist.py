"""From one program with a step in it to a start, a loop and a finish.

The program takes the user's inputs and a state `x`, and gives

    x_first, residual_first     of the first step, which need no x,
    x_next, residual            of a step from x,
    anything else               the outputs, from x.

Whatever a step or the outputs need that does not depend on x is computed once, at the start, and handed on: this moves
the factorisations of an iterative solver to the start.

For each further loop (iterate.py), called b, c and so on, it also gives

    z_first_b                   what it has besides x at its beginning: its input z_b,
    x_next_b, z_next_b, residual_b    of a step from x and z_b,

and, as one of the outputs, `excess`. What only the steps of that loop need is computed where it begins. A loop that
does not begin anew runs only where the one before has run, and reads what that one has computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.kernels.programs.iterate import Further, IterativeProgram, Loop
from linkwork.kernels.programs.program import Node, Port, Program

STATE, HANDED_ON = "x", "handed_on"
LEAVES = ("const", "input")

Leaves = dict[int, tuple[str, int]]
"""Nodes that are read from ports: the port, and the element."""


def hoist(
    program: Program, hand_on: bool = True, further: Sequence[Further] = (), uneven: bool = False
) -> IterativeProgram:
    """Cut a program by what depends on its input `x`.

    Unless it may `hand_on` what the start computes, every further step computes all of it again: right for methods that
    rarely take one, because values that are handed on occupy the first data cache of the start. `uneven` as of
    `IterativeProgram`.
    """
    place = {port.name: k for k, port in enumerate(program.inputs)}
    results = {port.name: list(nodes) for port, nodes in zip(program.outputs, program.results, strict=True)}
    shapes = {port.name: port.shape for port in program.outputs}
    nodes = program.nodes

    letters = [f"_{chr(ord('b') + k)}" for k in range(len(further))]
    states = {place[n] for n in (STATE, *("z" + key for key in letters))}
    varies: list[bool] = []
    for node in nodes:
        from_x = node[0] == "input" and node[1] in states
        varies.append(from_x or (node[0] not in LEAVES and any(varies[a] for a in node[1:])))

    loops = [n + key for key in letters for n in ("x_next", "z_next", "residual")]
    ends = [n for n in results if n not in (*STEP, *loops, *("z_first" + key for key in letters))]

    def needed(names: Sequence[str]) -> list[int]:
        wanted = [n for name in names for n in results[name]]
        return [n for n in boundary(nodes, varies, wanted) if nodes[n][0] not in LEAVES]

    # what the start hands on; all else that further loops need they compute themselves, most of it once more
    handed_on = needed(["x_next", "residual", *ends]) if hand_on else []
    early = set(handed_on)
    own, shared, last = dict[str, list[int]](), dict[str, Leaves](), Leaves()
    for key, how in zip(letters, further, strict=True):
        last = shared[key] = {} if how.anew else last
        wanted = needed([n + key for n in ("x_next", "z_next", "residual")])
        own[key] = [n for n in wanted if n not in early and n not in last]
        last = last | {n: (HANDED_ON + key, e) for e, n in enumerate(own[key])}

    state = Port(STATE, program.inputs[place[STATE]].shape)
    users = [port for k, port in enumerate(program.inputs) if k not in states]
    known = {n: (HANDED_ON, e) for e, n in enumerate(handed_on)}
    sizes = {STATE: state.shape, HANDED_ON: (max(len(handed_on), 1),)}
    sizes |= {HANDED_ON + key: (max(len(names), 1),) for key, names in own.items()}
    sizes |= {"z" + key: program.inputs[place["z" + key]].shape for key in letters}

    def part(name: str, after: Sequence[str], outputs: dict[str, list[int]], leaves: Leaves) -> Program:
        inputs = [*users, *(Port(n, sizes[n]) for n in after)]
        ports = [Port(n, shapes[n] if n in ends else sizes.get(n, ONE)) for n in outputs]
        return extract(program, name, inputs, ports, list(outputs.values()), leaves)

    def loop(key: str, how: Further) -> Loop:
        prepared, earlier = {n: (HANDED_ON + key, e) for e, n in enumerate(own[key])}, shared[key]
        ports = sorted({port for port, _ in earlier.values()})
        again = {
            n: results[name + key] for n, name in ((STATE, "x_next"), ("z" + key, "z_next"), ("residual", "residual"))
        }
        begun = {HANDED_ON + key: own[key] or [0], "z" + key: results["z_first" + key]}
        return Loop(
            part("prepare", (STATE, HANDED_ON, *ports), begun, known | earlier),
            part("iterate", (STATE, "z" + key, HANDED_ON, *ports, HANDED_ON + key), again, known | earlier | prepared),
            how,
        )

    first = {STATE: results["x_first"], "residual": results["residual_first"], HANDED_ON: handed_on or [0]}
    start = part("start", (), first, {})
    step = part("iterate", (STATE, HANDED_ON), {STATE: results["x_next"], "residual": results["residual"]}, known)
    finish = part("finish", (STATE, HANDED_ON), {n: results[n] for n in ends}, known)
    loops_after = [loop(key, how) for key, how in zip(letters, further, strict=True)]
    return IterativeProgram(
        start, step, finish, name=program.name, rarely=not hand_on, further=loops_after, uneven=uneven
    )


ONE = (1,)
STEP = ("x_first", "residual_first", "x_next", "residual")
"""The outputs of the first loop that are not the user's."""

FURTHER = ("x_next_", "z_first_", "z_next_", "residual_")
"""How the names of those of further loops begin."""


def is_result(name: str) -> bool:
    """Whether an output is the user's: it is computed for every state, whichever loops run."""
    return name not in STEP and not name.startswith(FURTHER)


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
    leaves: Leaves,
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
