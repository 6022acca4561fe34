"""One case of an experiment on the clock.

Kernels checked against a reference, then timed in turns with the peers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwork.algorithms.constrained.kkt import joint_space
from linkwork.algorithms.tree.crba import crba
from linkwork.backends import get
from linkwork.cli.bench import ACCURACY
from linkwork.constraints import Closure
from linkwork.errors import LinkworkError, NotFound, UnsupportedError
from linkwork.kernels import Kernel
from linkwork.kernels.iterate import IterativeProgram
from linkwork.kernels.order import LATENCY, USUAL_LATENCY, arguments
from linkwork.kernels.program import Program
from linkwork.model import Model, Motion
from linkwork_bench.inputs import Robot
from linkwork_bench.loops import CASE, harness_robot
from linkwork_bench.measure import Conditions, Contender, Reading, interleave
from linkwork_bench.ours import Entry
from linkwork_bench.papers.experiment import Bench, Case, Figures, Times, random_states
from linkwork_bench.peers import Peer
from linkwork_bench.records import Record
from linkwork_bench.suites import errors

STATES, QUICK_STATES, CHECKED = 64, 24, 8
REPEATS = 4
"""How often rounds are repeated at most until intervals decide the relations of a case."""
PER_CYCLE = 2
"""Operations per cycle, the unit of LATENCY."""
CONDITION = 1e7
"""The condition of the rows' inertia up to which a state is timed, with rows of unit length."""
SPAN = 2e-4
"""Least seconds of a pass over the states: single passes of small robots are too short to measure."""


def run(experiment: Times, case: Case, bench: Bench) -> list[Record]:
    """Check and time all methods of a case."""
    try:
        model = case.make()
        states = regular(model, random_states(model, QUICK_STATES if bench.quick else STATES))
    except NotFound as problem:
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


def regular(model: Model, states: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The states whose rows are independent by far.

    Direct methods refuse others, and are timed on what they solve.

    Where loops make rows redundant in every state, all of them.
    """
    if not model.rows or any(sum(l > 0 for l in c.touches(model)) != 1 for c in model.constraints):
        return dict(states)
    keep = []
    for q, v in zip(states["q"], states["v"], strict=True):
        motion = Motion(model, q[:, None], v[:, None], get("numpy"))
        J, _ = joint_space(motion)
        A = J @ np.linalg.solve(crba(motion), J.T)
        size = np.sqrt(np.diag(A))
        keep.append(np.linalg.cond(A / np.outer(size, size)) < CONDITION)
    return {name: x[keep] for name, x in states.items()}


def _undecided(experiment: Times, case: Case, records: list[Record]) -> bool:
    """Whether a relation of this case is within noise of its bound."""
    figures = Figures(experiment, records)
    return any(case.name in r.judge(figures).undecided for r in experiment.relations)


def _about(program: Program | IterativeProgram) -> dict[str, float]:
    """What else is known of a program: cycles that wait, or operations of a further solver iteration."""
    if isinstance(program, Program):
        return {"chain": chain(program)}
    return {"chain": chain(program.start) + chain(program.finish), "iteration": float(program.iterate.operations)}


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
        return errors(np.asarray(out[0])[:CHECKED], reference(model, few))

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
