"""Serialising a step for a worker: its operations as plain data, no code.

What is sent is the traced program, a list of scalar operations in JSON, compressed. Neither the model nor any function
of the user is sent: a `Custom` constraint has been traced with the rest. A worker checks every operation, compiles the
program for its own CPU and puts the machine code into its own cache.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from linkwork.errors import ClusterError, KernelError
from linkwork.kernels.calls.rollout import RolloutProgram
from linkwork.kernels.programs.iterate import Further, IterativeProgram, Loop
from linkwork.kernels.programs.program import Port, Program

PARTS = ("start", "iterate", "finish")
"""The programs of a step with a loop of its own; two more for each of its further loops."""


def packed(program: RolloutProgram) -> bytes:
    """The program as bytes."""
    step = getattr(program.step, "whole", program.step)
    further = step.further if isinstance(step, IterativeProgram) else ()
    parts = [getattr(step, n) for n in PARTS] if isinstance(step, IterativeProgram) else [step]
    content = {
        "parts": [_written(part) for part in (*parts, *(part for loop in further for part in loop[:2]))],
        "further": [loop.how for loop in further],
        "state": [p.name for p in program.state if p not in program.carried],
        "timed": [p.name for p in program.timed],
        "carried": [p.name for p in program.carried],
    }
    return zlib.compress(json.dumps(content).encode(), 1)


def unpacked(data: bytes) -> RolloutProgram:
    """The program that was packed; anything else is refused."""
    try:
        content = json.loads(zlib.decompress(data))
        first, *others = (_read(part) for part in content["parts"])
        pairs = [others[k : k + 2] for k in range(2, len(others), 2)]
        how = [Further(int(limit), bool(anew)) for limit, anew in content["further"]]
        loops = [Loop(a, b, c) for (a, b), c in zip(pairs, how, strict=True)]
        step = IterativeProgram(first, others[0], others[1], further=loops) if others else first
        return RolloutProgram(step, *(content[n] for n in ("state", "timed", "carried")))
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, KernelError) as problem:
        raise ClusterError(f"what arrived is not a program: {problem}") from None


def _written(program: Program) -> dict[str, Any]:
    ports = {"inputs": program.inputs, "outputs": program.outputs}
    return {"name": program.name, **ports, "nodes": list(program.nodes), "results": program.results}


def _read(part: dict[str, Any]) -> Program:
    inputs, outputs = ([Port(n, tuple(shape)) for n, shape in part[x]] for x in ("inputs", "outputs"))
    nodes = [tuple(node) for node in part["nodes"]]
    return Program(inputs, outputs, nodes, part["results"], part["name"]).check()
