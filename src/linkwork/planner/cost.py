"""What a program will take on this machine, predicted from what it consists of.

    time = sum over features of (count x cost),   features: products and sums, quotients and roots, sine-cosine pairs,
                                                  numbers in and out, the longest chain of dependent operations,
                                                  operations beyond LARGE, and one each for the call, for having
                                                  sines at all, and for having a loop

The longest chain matters for one state, where the processor waits for it; lanes fill the waiting. Code of over
LARGE operations does not stay in the first instruction cache. The costs of a machine are fitted once to measured
kernels (`linkwork plan --calibrate`); until then those of a common server apply.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache as remember
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwork.kernels.iterate import IterativeProgram
    from linkwork.kernels.program import Program

FEATURES = ("arithmetic", "large", "slow", "pairs", "numbers", "chain", "sines", "loop", "call")
LARGE = 4000
SLOW = ("div", "sqrt")
LATENCY = {"div": 14, "sqrt": 18, "sin": 40, "cos": 40}
"""Cycles until a result is there; 4 for all else."""


@dataclass(frozen=True)
class Machine:
    """ns per feature, for one state at a time and for batches."""

    state: Mapping[str, float]
    batch: Mapping[str, float]
    name: str = "a server with AVX-512"

    def us(self, features: Mapping[str, float], use: str) -> float:
        """The predicted time of a program in microseconds per state."""
        costs = self.state if use == "state" else self.batch
        return 1e-3 * sum(costs[f] * features[f] for f in FEATURES)


USUAL = Machine(
    state={"arithmetic": 0.155, "large": 0.0385, "slow": 0, "pairs": 0, "numbers": 0.15, "chain": 0.0231, "sines": 51,
           "loop": 18.4, "call": 23.5},
    batch={"arithmetic": 0.0261, "large": 0.0096, "slow": 0.29, "pairs": 2.4, "numbers": 0.0935, "chain": 0,
           "sines": 21.3, "loop": 7.1, "call": 25.8},
)
"""Fitted to 238 kernels of 43 mechanisms, of which it has four fifths within 15 %."""


@remember
def machine() -> Machine:
    """The costs of this machine: those fitted here, or the usual ones."""
    from linkwork.kernels import cache

    note = cache.load_note(_key())
    return USUAL if note is None else Machine(**note)


def remember_machine(fitted: Machine) -> None:
    """Keep fitted costs for this processor, in this process and later ones."""
    from linkwork.kernels import cache

    cache.save_note(_key(), asdict(fitted))
    machine.cache_clear()


def _key() -> str:
    from linkwork.kernels.target import Target

    host = Target.host()
    return hashlib.sha256(json.dumps(["costs", *FEATURES, str(host), os.cpu_count()]).encode()).hexdigest()


def features(program: Program) -> dict[str, float]:
    """How much of everything a program has."""
    counts = program.counts()
    slow = sum(counts.get(k, 0) for k in SLOW)
    pairs = max(counts.get("sin", 0), counts.get("cos", 0))
    depth: list[int] = []
    for node in program.nodes:
        kind = node[0]
        start = 0 if kind in ("const", "input") else max([depth[a] for a in node[1:]]) + LATENCY.get(kind, 4)
        depth.append(start)
    numbers = sum(port.size for port in (*program.inputs, *program.outputs))
    arithmetic = program.operations - slow - counts.get("sin", 0) - counts.get("cos", 0)
    return {"arithmetic": arithmetic, "large": max(0, arithmetic - LARGE), "slow": slow, "pairs": pairs,
            "numbers": numbers, "chain": max(depth, default=0), "sines": float(pairs > 0), "loop": 0.0, "call": 1.0}


def all_features(program: Program | IterativeProgram, solves: float = 1.0) -> dict[str, float]:
    """The same of a program with a loop that runs `solves` times, the first time included in its start."""
    return in_all(parts_of(program), solves)


def parts_of(program: Program | IterativeProgram) -> list[dict[str, float]]:
    """The features of a program, or of start, iterate and finish of one with a loop."""
    loop = getattr(program, "iterate", None)
    parts = [program] if loop is None else [program.start, loop, program.finish]  # type: ignore[union-attr]
    return [features(part) for part in parts]  # type: ignore[arg-type]


def in_all(parts: Sequence[Mapping[str, float]], solves: float = 1.0) -> dict[str, float]:
    """The features of all parts together, where the loop runs `solves` times."""
    times = (1.0, solves - 1.0, 1.0) if len(parts) > 1 else (1.0,)
    total = {f: sum(n * part[f] for n, part in zip(times, parts, strict=True)) for f in FEATURES}
    return {**total, "sines": float(total["pairs"] > 0), "loop": float(len(parts) > 1), "call": 1.0}
