"""One case of an experiment on the clock.

Kernels checked against a reference, then timed in turns with the peers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwork.cli.bench import ACCURACY
from linkwork.constraints import Closure
from linkwork.errors import LinkworkError, UnsupportedError
from linkwork.kernels import Kernel
from linkwork.kernels.programs.iterate import IterativeProgram
from linkwork.kernels.programs.order import LATENCY, USUAL_LATENCY, arguments
from linkwork.kernels.programs.program import Program
from linkwork.model import Model
from linkwork_bench.inputs import Robot
from linkwork_bench.loops import CASE, harness_robot
from linkwork_bench.measure import Conditions, Contender, Reading, interleave
from linkwork_bench.ours import Entry
from linkwork_bench.papers.experiment import ABSENT, Bench, Case, Figures, Times, random_states
from linkwork_bench.peers import Peer
from linkwork_bench.records import Record
from linkwork_bench.suites import errors

STATES, QUICK_STATES, CHECKED = 64, 24, 8
REPEATS = 4
"""How often rounds are repeated at most until intervals decide the relations of a case."""
PER_CYCLE = 2
"""Operations per cycle, the unit of LATENCY."""
SOLVED = 0.5
"""The share of states that a direct method must solve: it refuses those whose rows it cannot tell from dependent ones,
which functions then solve by other means."""
SPAN = 2e-4
"""Least seconds of a pass over the states: single passes of small robots are too short to measure."""


def run(experiment: Times, case: Case, bench: Bench) -> list[Record]:
    """Check and time all methods of a case."""
    try:
        model = case.make()
        states = random_states(model, QUICK_STATES if bench.quick else STATES)
    except ABSENT as problem:
        return [experiment.missing(case, problem)]
    records: list[Record] = []
    contenders: dict[str, Contender] = {}
    waiting: dict[str, dict[str, Any]] = {}
    conditions = Conditions(bench.settings.cpu, SPAN, bench.settings.environment is not None)
    measures = experiment.measures[:1] if bench.quick else experiment.measures

    def enter(contender: Contender, **facts: Any) -> None:
        name = str(len(contenders))
        contenders[name], waiting[name] = contender, facts

    for method in experiment.methods:
        try:
            entry = _entry(experiment, model, method, states)
            made = entry.contenders(measures, bench.settings.threads, conditions)
            wrong = {name: float(entry.error(kernel)[0].max(initial=0)) for name, (_, kernel) in made.items()}
        except LinkworkError as problem:
            records.append(experiment.record(case, method, experiment.measure, model, note=f"not timed: {problem}"))
            continue
        for name, (contender, kernel) in made.items():
            facts: dict[str, Any] = {
                "method": method,
                "measure": name,
                "model": model,
                "error": wrong[name],
                "operations": kernel.operations,
            }
            if method not in experiment.unchecked and not wrong[name] <= ACCURACY:
                records.append(experiment.record(case, **facts, note=f"not timed: wrong by {wrong[name]:.1e}"))
            else:
                enter(contender, **facts)
                about = _about(kernel.program) if name == "latency" else {}
                records += [
                    experiment.record(case, **{**facts, "measure": what}, samples=[x]) for what, x in about.items()
                ]
    for p in _rivals(experiment.yardstick, case, model, states, bench) if experiment.compete else []:
        enter(
            p.contender,
            method=p.algorithm,
            measure="latency",
            model=model,
            role=p.role,
            library=p.library,
            error=p.error,
            note=p.note,
        )
    timed: list[Record] = []
    readings: dict[str, list[Reading]] = {name: [] for name in contenders}
    for attempt in range(1 if bench.quick else REPEATS):
        if attempt and not _undecided(experiment, case, timed):
            break
        for name, more in interleave(contenders, bench.settings.rounds, bench.settings.budget).items():
            readings[name] += more
        timed = []
        for name, found in readings.items():
            us, shares = zip(*found, strict=True)
            rounded = [round(x, 3) for x in shares]
            timed.append(experiment.record(case, **waiting[name], samples=list(us), shares=rounded))
    return records + timed


def _undecided(experiment: Times, case: Case, records: list[Record]) -> bool:
    """Whether a relation of this case is within noise of its bound."""
    figures = Figures(experiment, records)
    return any(case.name in r.judge(figures).undecided for r in experiment.relations)


def _about(program: Program | IterativeProgram) -> dict[str, float]:
    """What else is known of a program: cycles that wait; operations and cycles of a further iteration."""
    if isinstance(program, Program):
        return {"chain": chain(program)}
    return {
        "chain": chain(program.start) + chain(program.finish),
        "iteration": float(program.iterate.operations),
        "iteration chain": chain(program.iterate),
    }


def chain(program: Program) -> float:
    """Cycles of the longest chain of operations that wait for each other: no core is faster for one state."""
    done: list[int] = []
    for node in program.nodes:
        own = 0 if node[0] in ("const", "input") else LATENCY.get(node[0], USUAL_LATENCY)
        done.append(own + max((done[a] for a in arguments(node)), default=0))
    return max(done, default=0) / PER_CYCLE


def _entry(experiment: Times, model: Model, method: str, states: Mapping[str, np.ndarray]) -> Entry:
    """A method's function with its inputs; an approximation has states of its own."""
    function = experiment.ways[method](model)
    own = states if function.model.nq == model.nq else random_states(function.model, len(states["q"]))
    inputs = tuple(own[name] for name in function.inputs)
    few = {name: x[:CHECKED] for name, x in states.items()}
    reference = experiment.references.get(method, experiment.reference)

    def wrong(out: Any, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        if method in experiment.unchecked:
            return np.zeros(1), np.zeros(1)
        found, right = np.asarray(out[0])[:CHECKED], reference(model, few)
        solved = np.isfinite(found).reshape(len(found), -1).all(axis=1)
        return errors(found[solved], right[solved]) if solved.mean() >= SOLVED else errors(found, right)

    return Entry(method, function, inputs, wrong)


def _rivals(yardstick: str, case: Case, model: Model, states: Mapping[str, np.ndarray], bench: Bench) -> list[Peer]:
    """The peers on the case or its twin: their C++ where the harness is built, else their Python bindings."""
    twin = case.twin() if case.twin else model
    if not all(isinstance(c, Closure) and c.joint in ("spherical", "fixed") for c in twin.constraints):
        return []
    name = "".join(x if x.isalnum() else "_" for x in case.name)
    rows = np.hstack([states[k] for k in ("q", "v", "tau")])
    if bench.peers.builds:
        try:
            robot = harness_robot(name, twin, rows, bench.peers, bench.folder)
            return bench.peers.fastest(yardstick, robot, CASE, bench.settings.host)
        except UnsupportedError:
            return []
    q, v, tau = (states[k][:QUICK_STATES] for k in ("q", "v", "tau"))
    robot = Robot(name, twin.without_constraints(), {CASE: tuple(twin.constraints)}, q, v, tau)
    return bench.peers.fastest(yardstick, robot, CASE, bench.settings.host)
