"""Serialising a step for a worker: its operations as plain data, no code.

What is sent is the traced program, a list of scalar operations in JSON, compressed. Neither the model nor any function
of the user is sent: a `Custom` constraint has been traced with the rest. A worker checks every operation, compiles the
program for its own CPU and puts the machine code into its own cache.
"""

from __future__ import annotations

import json
import zlib

from linkwork.errors import ClusterError, KernelError
from linkwork.kernels.program import Port, Program
from linkwork.kernels.rollout import RolloutProgram


def packed(program: RolloutProgram) -> bytes:
    """The program as bytes."""
    step = program.step
    content = {
        "name": step.name,
        "inputs": step.inputs,
        "outputs": step.outputs,
        "nodes": list(step.nodes),
        "results": step.results,
        "state": [p.name for p in program.state if p not in program.guessed],
        "timed": [p.name for p in program.timed],
        "guessed": [p.name for p in program.guessed],
    }
    return zlib.compress(json.dumps(content).encode(), 1)


def unpacked(data: bytes) -> RolloutProgram:
    """The program that was packed; anything else is refused."""
    try:
        content = json.loads(zlib.decompress(data))
        inputs, outputs = ([Port(n, tuple(shape)) for n, shape in content[x]] for x in ("inputs", "outputs"))
        nodes = [tuple(node) for node in content["nodes"]]
        step = Program(inputs, outputs, nodes, content["results"], content["name"]).check()
        return RolloutProgram(step, content["state"], content["timed"], content["guessed"])
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, KernelError) as problem:
        raise ClusterError(f"what arrived is not a program: {problem}") from None
