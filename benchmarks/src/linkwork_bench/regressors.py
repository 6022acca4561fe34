"""`linkwork bench regressors`: joint-torque regressors beside Pinocchio's, called from Python.

Both compute the same states. Results are compared before anything is timed; then all run in turns, in processor time,
one thread. A call for one state makes new arrays; on bound buffers (`bind`) it overwrites its own, as Pinocchio's does.
Batches are calls on bound buffers of as many states as leave their results in a cache. `linkwork bench terms --term
regressor` compares with its C++.
"""

from __future__ import annotations

import json as written
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import typer

import linkwork as lw
from linkwork.cli.bench import words
from linkwork.errors import InputError, KernelError
from linkwork.functions.function import Function
from linkwork.io.zoo import find
from linkwork_bench.commands.options import JsonOption, RobotsOption
from linkwork_bench.ours import BLOCK_BYTES

ROBOTS = ("ur5", "panda", "go1", "talos_reduced")
GOALS = {"one": 5.0, "batch": 20.0}
LOOP, BATCH, ROUNDS, NEAR = 1000, 1024, 11, 1e-12
"""Calls in a round, states of a batch at most, rounds for a median, how near results are, relative to the largest."""


@dataclass(frozen=True)
class Figure:
    """Medians in us for one state: a call and a batch, both dense and packed, and Pinocchio's call.

    `one` makes new arrays, `bound` overwrites its own, as Pinocchio's call does.
    """

    robot: str
    shape: tuple[int, int]
    nonzeros: int
    operations: int
    one: float
    one_packed: float
    bound: float
    batch: float
    batch_packed: float
    pinocchio: float


def figure(robot: str, rounds: int = ROUNDS, size: int = BATCH) -> Figure:
    """The figures of a robot that `lw.load` finds."""
    try:
        import pinocchio as pin
    except ImportError:
        raise InputError("regressors are compared with Pinocchio's: pip install pin") from None
    from linkwork.interop import pinocchio, to_pinocchio

    model = lw.load(robot, base=find(robot).base, passive=False).without_constraints()
    theirs = to_pinocchio(model)
    data, at, rng = theirs.createData(), pinocchio(model, theirs), np.random.default_rng(0)
    Q, (V, A) = model.random_q(0, batch=size), rng.normal(size=(2, size, model.nv))
    q, v, a = Q[0].copy(), V[0].copy(), A[0].copy()
    dense, packed = (lw.regressor(model, packed=p, threads=1) for p in (False, True))
    state = at.q_to(q), at.v_to(q, v), at.v_to(q, a)
    ours, known = dense(q, v, a).Y, pin.computeJointTorqueRegressor(theirs, data, *state)
    rows, columns = lw.regressor_pattern(model)
    off = max(abs(ours - known).max(), abs(packed(q, v, a).entries - known[rows, columns]).max()) / abs(known).max()
    if not off <= NEAR:
        raise KernelError(f"regressors of {robot}: Linkwork and Pinocchio are {off:.1e} apart; nothing is timed")
    bound, *many = _bound(dense, 1, q, v, a), _bound(dense, size, Q, V, A), _bound(packed, size, Q, V, A)
    calls: list[tuple[Callable[[], Any], int]] = [
        (lambda: dense(q, v, a), 1),
        (lambda: packed(q, v, a), 1),
        bound,
        *many,
        (lambda: pin.computeJointTorqueRegressor(theirs, data, *state), 1),
    ]
    took = np.array([[_timed(call, states) for call, states in calls] for _ in range(1 + rounds)])[1:]
    return Figure(robot, ours.shape, len(rows), dense.operations, *np.median(took, axis=0).tolist())


def _bound(f: Function[Any], size: int, *states: np.ndarray) -> tuple[Callable[[], Any], int]:
    """A call on bound buffers for one state, or some of many, and how many these are."""
    width = 8 * sum(port.size for port in f.program.outputs)
    count = max(min(BLOCK_BYTES // width // 8 * 8, size), 8) if size > 1 else 1
    call = f.bind(count) if size > 1 else f.bind()
    for buffer, x in zip(call.inputs, states, strict=True):
        buffer[...] = np.resize(x, buffer.shape)
    return call, count


def _timed(call: Callable[[], Any], states: int) -> float:
    """Processor time of this thread in us, for one state."""
    times = max(10, LOOP // states)
    begin = time.thread_time()
    for _ in range(times):
        call()
    return 1e6 * (time.thread_time() - begin) / (times * states)


def regressors(
    robots: RobotsOption = None,
    json: JsonOption = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds, of which the median counts.")] = ROUNDS,
) -> None:
    """Joint-torque regressors beside Pinocchio's from Python: one state and batches, dense and packed."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"us for one state, one thread (processor time, median of {rounds} rounds)")
    for heading in ("robot", "Y", "nonzero", "operations", "one", "packed", "bound", "batch", "packed", "Pinocchio"):
        table.add_column(heading, justify="left" if heading == "robot" else "right")
    found = list[Figure]()
    for name in words(robots) or ROBOTS:
        found.append(f := figure(name, rounds))
        us = [f"{x:.2f} ({f.pinocchio / x:.1f}x)" for x in (f.one, f.one_packed, f.bound, f.batch, f.batch_packed)]
        shape = f"{f.shape[0]} x {f.shape[1]}"
        table.add_row(f.robot, shape, str(f.nonzeros), str(f.operations), *us, f"{f.pinocchio:.2f}")
        if json is not None:
            json.write_text("".join(written.dumps(asdict(x)) + "\n" for x in found))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for key, goal in GOALS.items():
        for form in (key, f"{key}_packed", *(("bound",) if key == "one" else ())):
            ratios = [f.pinocchio / getattr(f, form) for f in found]
            enough = sum(x >= goal for x in ratios)
            print(f"{form}: {enough} of {len(ratios)} at least {goal:g} x; least {min(ratios):.1f}")
