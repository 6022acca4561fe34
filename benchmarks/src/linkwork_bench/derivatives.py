"""`linkwork bench derivatives`: Jacobians of dynamics beside Pinocchio's C++, on the same states.

Ours solve the dynamics too, and give derivatives by q, v and tau, as Pinocchio's do. One state: machine code in a loop
over states. Batches: `BATCH` states in one call, on one thread, per state; fewer if their results are larger than half
of a second-level cache, where Pinocchio's are, too. `large` are `BATCH` states in any case, whose results leave that
cache. Contenders run in turns; medians of rounds.
`solve` is forward dynamics in batches, by the planner's method; `vjp x` is the time of its `vjp`, in times of that.
"""

from __future__ import annotations

import json as written
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import linkwork as lw
from linkwork.cli.bench import words
from linkwork.functions.function import Function
from linkwork.kernels.calls.kernel import Kernel
from linkwork_bench.commands.options import (
    CasesOption,
    JsonOption,
    PeersOption,
    ProcessorOption,
    RobotsOption,
    RoundsOption,
)
from linkwork_bench.inputs import Robot, installed_robot, read_robot
from linkwork_bench.measure import processor_time as in_processor_time
from linkwork_bench.ours import BLOCK_BYTES
from linkwork_bench.peers import Harness, Host, Peers, find
from linkwork_bench.suites import KERNEL_ROBOTS

ROUNDS, BUDGET, STATES, BATCH = 5, 0.01, 16, 256
"""Rounds; seconds of each for every contender; states of a loop and of a batch."""

ALGORITHMS = {
    "inverse": r"computeRNEADerivatives",
    "forward": r"computeABADerivatives|constraintDynamics\+Derivatives-mu1e-6-conv",
}


@dataclass
class Figure:
    """Medians in us for one state, and what was computed; the function itself and its vjp in batches."""

    robot: str
    case: str
    task: str
    rows: int
    operations: int
    compiled: float
    one: float
    batch: float
    large: float
    pinocchio: float | None = None
    solve: float | None = None
    vjp: float | None = None


def functions(robot: Robot, case: str) -> dict[str, Function]:
    """The derivatives of a case; those of inverse dynamics for trees only."""
    model = robot.constrained(case)
    forward = lw.forward_dynamics(model, threads=1, method=None if not model.rows else "prox_ltl").derivatives()
    if model.rows:
        return {"forward": forward}
    return {"inverse": lw.inverse_dynamics(model, threads=1).derivatives(("q", "v")), "forward": forward}


def contenders(f: Function, robot: Robot) -> list[Callable[[], Any]]:
    """Our kernel on a few states, one at a time, on a batch, and on a large one."""
    out: list[Callable[[], Any]] = []
    for lanes, states in zip((1, None, None), counts(f), strict=True):
        bound = Kernel(f.program, lanes=lanes, threads=1, defaults=f.defaults).bind(states)
        rows = np.arange(states) % len(robot.q)
        for buffer, x in zip(bound.inputs, (robot.q, robot.v, robot.tau), strict=False):
            buffer[...] = x[rows]
        out.append(bound)
    return out


def counts(f: Function) -> tuple[int, int, int]:
    """The states of each contender."""
    width = sum(port.size for port in f.program.outputs) * np.dtype(f.dtype).itemsize
    return STATES, min(max(BLOCK_BYTES // max(width, 1) // 8 * 8, 8), BATCH), BATCH


def measured(robot: Robot, case: str, peers: Peers, host: Host, rounds: int) -> list[Figure]:
    """The figures of a case."""
    found = []
    for task, f in functions(robot, case).items():
        begin = time.process_time()
        ours = contenders(f, robot)
        for call in ours:
            call()
        compiled = time.process_time() - begin
        theirs = _harness(task, robot, case, peers, host)
        took: list[list[float]] = [[], [], []]
        peer: list[float] = []
        for _ in range(rounds):
            for times, call, states in zip(took, ours, counts(f), strict=True):
                times.append(_timed(call) / states)
            if theirs is not None:
                peer.append(theirs.round(BUDGET).us)
        model, (one, batch, large) = robot.constrained(case), [float(np.median(x)) for x in took]
        beside = float(np.median(peer)) if peer else None
        found.append(Figure(robot.name, case, task, model.rows, f.operations, compiled, one, batch, large, beside))
        if task == "forward":
            solve = lw.forward_dynamics(model, threads=1, use="batch")
            calls = [_in_batches(g, robot) for g in (solve, solve.vjp())]
            medians = np.median([[_timed(call) / BATCH for call in calls] for _ in range(rounds)], axis=0)
            found[-1].solve, found[-1].vjp = float(medians[0]), float(medians[1])
    return found


def _in_batches(f: Function, robot: Robot) -> Callable[[], Any]:
    """A function on a batch; weights of a product are ones."""
    kernel = Kernel(f.program, threads=1, defaults=f.defaults, settings=f._settings)
    bound, rows = kernel.bind(BATCH), np.arange(BATCH) % len(robot.q)
    for name, buffer in zip(f.inputs, bound.inputs, strict=False):
        buffer[...] = getattr(robot, name)[rows] if name in ("q", "v", "tau") else 1.0
    bound()
    return bound


def _timed(call: Callable[[], Any]) -> float:
    """Processor time of a call in us, repeated for a while.

    Reading that clock takes 1 us, and is done a few times.
    """
    begin, calls, more = time.thread_time(), 0, 1
    while (spent := time.thread_time() - begin) < BUDGET:
        for _ in range(more):
            call()
        calls += more
        more = min(2 * more, calls)
    return 1e6 * spent / calls


def _harness(task: str, robot: Robot, case: str, peers: Peers, host: Host) -> Harness | None:
    """Pinocchio's C++, if there is a build of it and it has these inputs."""
    for build in peers.builds:
        if robot.folder is not None and build.role == "best":
            for name, peer in build.scout("pin_bench", robot.folder, robot.name, case, host).items():
                if re.fullmatch(ALGORITHMS[task], name) and isinstance(peer.contender, Harness):
                    return peer.contender
    return None


def derivatives(
    robots: RobotsOption = None,
    cases: CasesOption = None,
    peers: PeersOption = None,
    json: JsonOption = None,
    rounds: RoundsOption = None,
    processor_time: ProcessorOption = False,
) -> None:
    """Derivatives of dynamics, one state and batches, beside Pinocchio's C++ (one thread)."""
    known, found = find(peers or ()), list[Figure]()
    with in_processor_time() if processor_time else nullcontext() as environment:
        host = Host(None, environment)
        for name in words(robots) or KERNEL_ROBOTS:
            robot = read_robot(known.inputs, name) if known.inputs is not None else installed_robot(name)
            for case in words(cases) or list(robot.cases):
                found += measured(robot, case, known, host, rounds or ROUNDS)
                if json is not None:
                    json.write_text("".join(written.dumps(asdict(f)) + "\n" for f in found))
    _show(found)


def _show(found: Sequence[Figure]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="derivatives: us for one state (our processor time), s to compile both forms (processor time)")
    for heading in (
        "robot",
        "case",
        "of",
        "rows",
        "operations",
        "compile",
        "one",
        "batch",
        "large",
        "Pinocchio",
        "one x",
        "batch x",
        "solve",
        "vjp x",
    ):
        table.add_column(heading, justify="left" if heading in ("robot", "case", "of") else "right")
    for f in found:
        theirs = ["", "", ""]
        if f.pinocchio is not None:
            theirs = [f"{f.pinocchio:.1f}", f"{f.pinocchio / f.one:.1f}", f"{f.pinocchio / f.batch:.1f}"]
        ours = [str(f.rows), str(f.operations), f"{f.compiled:.1f}", *(f"{x:.2f}" for x in (f.one, f.batch, f.large))]
        own = [] if f.solve is None or f.vjp is None else [f"{f.solve:.2f}", f"{f.vjp / f.solve:.1f}"]
        table.add_row(f.robot, f.case, f.task, *ours, *theirs, *own)
    Console(width=None if sys.stdout.isatty() else 130).print(table)
