"""The time of a program on this machine, predicted from its operations.

    time = edges + sqrt(work^2 + waiting^2)       each a sum over features of (count x cost)

    work      products and sums (a sum takes up a product), a share of them again in a large workspace, values KEPT for
              long, quotients and roots
    waiting   the longest chain of dependent operations, in cycles
    edges     sine-cosine pairs, numbers in and out, and one each for the call, for sines at all, and for a loop

A processor overlaps work with waiting for results: the longer of the two counts, and where they are equally long
something of both. A value that is used after more than KEPT operations does
not stay in a register, and a workspace of more than LARGE registers not in the first data cache. The costs of a machine
are fitted once to measured kernels (`linkwork plan --calibrate`); until then those of a common server apply.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import hypot
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwork.kernels.programs.iterate import IterativeProgram
    from linkwork.kernels.programs.program import Program

WORK, WAITING = ("arithmetic", "large", "kept", "slow"), ("chain",)
FEATURES = (*WORK, *WAITING, "pairs", "numbers", "sines", "loop", "call")
LARGE, KEPT = 600, 40
SLOW = ("div", "sqrt")
LATENCY = {"div": 14, "sqrt": 18, "sin": 40, "cos": 40}
"""Cycles until a result is available; 4 for all else."""


@dataclass(frozen=True)
class Machine:
    """ns per feature, for one state at a time and for batches.

    `yardstick`: us that aba of a chain of twelve links took when they were fitted, by use; clocks vary.
    """

    state: Mapping[str, float]
    batch: Mapping[str, float]
    yardstick: Mapping[str, float]
    name: str = "a server with AVX-512"

    def us(self, features: Mapping[str, float], use: str) -> float:
        """The predicted time of a program in microseconds per state."""
        costs = self.state if use == "state" else self.batch
        took = {f: costs[f] * features[f] for f in FEATURES}
        busy = hypot(sum(took[f] for f in WORK), sum(took[f] for f in WAITING))
        return 1e-3 * (busy + sum(took[f] for f in FEATURES if f not in (*WORK, *WAITING)))


USUAL = Machine(
    state={
        "arithmetic": 0.16,
        "large": 0.026,
        "kept": 0.0597,
        "slow": 0,
        "chain": 0.193,
        "pairs": 0,
        "numbers": 0.112,
        "sines": 23.3,
        "loop": 2.54,
        "call": 5.05,
    },
    batch={
        "arithmetic": 0.0221,
        "large": 0.0273,
        "kept": 0.035,
        "slow": 0.0566,
        "chain": 0.0225,
        "pairs": 1.11,
        "numbers": 0.102,
        "sines": 0,
        "loop": 9.35,
        "call": 9.68,
    },
    yardstick={"state": 0.382, "batch": 0.0836},
)
"""Fitted to 1197 kernels of 88 mechanisms: 99 % of them within 15 % for one state (off by 5 % in the root mean square),
97 % in batches (7 %), with the solver iterations that they need."""


@cache
def machine() -> Machine:
    """The costs of this machine: those fitted here, or the usual ones."""
    from linkwork.kernels.cache.object_cache import load_note

    note = load_note(_key())
    return USUAL if note is None else Machine(**note)


def save_machine(fitted: Machine) -> None:
    """Use fitted costs for this processor from now on, in this process and in later ones."""
    from linkwork.kernels.cache.object_cache import save_note

    save_note(_key(), asdict(fitted))
    machine.cache_clear()


def _key() -> str:
    from linkwork.kernels.codegen.target import Target

    host = Target.host()
    return hashlib.sha256(json.dumps(["costs", *FEATURES, str(host), os.cpu_count()]).encode()).hexdigest()


def features(program: Program) -> dict[str, float]:
    """The features of a program: how often each occurs."""
    nodes, counts = program.nodes, program.counts()
    uses, last, place, depth = ([0] * len(nodes) for _ in range(4))
    now = 0
    for i, (kind, *operands) in enumerate(nodes):
        if kind not in ("const", "input"):
            now += 1
            place[i], depth[i] = now, max([depth[a] for a in operands]) + LATENCY.get(kind, 4)
            for a in operands:
                uses[a] += 1
                last[a] = now
    for result in program.results:
        for v in result:
            uses[v] += 1
    fused = sum(
        kind in ("add", "sub") and any(nodes[a][0] == "mul" and uses[a] == 1 for a in operands)
        for kind, *operands in nodes
    )
    slow = sum(counts.get(k, 0) for k in SLOW)
    pairs = max(counts.get("sin", 0), counts.get("cos", 0))
    arithmetic = program.operations - slow - counts.get("sin", 0) - counts.get("cos", 0) - fused
    return {
        "arithmetic": arithmetic,
        "slow": slow,
        "pairs": pairs,
        "kept": sum(begin > 0 and end - begin > KEPT for begin, end in zip(place, last, strict=True)),
        "numbers": sum(port.size for port in (*program.inputs, *program.outputs)),
        "chain": max(depth, default=0),
    }


def all_features(program: Program | IterativeProgram, iterations: float = 1.0) -> dict[str, float]:
    """The same of a program with so many solver iterations, the first of them in its start."""
    return in_all(parts_of(program), iterations)


def parts_of(program: Program | IterativeProgram) -> list[dict[str, float]]:
    """The features of a program, or of start, iterate and finish of one with a loop."""
    loop = getattr(program, "iterate", None)
    if loop is None:
        return [features(program)]  # type: ignore[arg-type]
    blended = 3 * sum(port.size for port in loop.outputs)  # old and new state to the next, lane by lane
    start, again, finish = map(features, (program.start, loop, program.finish))  # type: ignore[union-attr]
    return [start, {**again, "numbers": blended}, {**finish, "numbers": 0}]  # start keeps numbers that both read again


def in_all(parts: Sequence[Mapping[str, float]], iterations: float = 1.0) -> dict[str, float]:
    """The features of all parts together, with so many solver iterations, the first of them in the start."""
    times = (1.0, iterations - 1.0, 1.0) if len(parts) > 1 else (1.0,)
    total = {f: sum(n * part[f] for n, part in zip(times, parts, strict=True)) for f in parts[0]}
    beyond = 1 - min(1.0, LARGE / max(1.0, workspace(parts)))
    return {
        **total,
        "large": beyond * total["arithmetic"],
        "sines": float(total["pairs"] > 0),
        "loop": float(len(parts) > 1),
        "call": 1.0,
    }


def workspace(parts: Sequence[Mapping[str, float]]) -> float:
    """Estimated registers that a program keeps in memory: ports, states, sines, and values alive at once.

    (Root mean square error 20 %, fitted to 446 scheduled programs.)
    """
    return sum(1.5 * part["numbers"] + 3 * part["pairs"] + 0.13 * part["kept"] for part in parts)
