"""One case of an experiment on the clock.

Kernels checked against a reference, then timed in turns with the peers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwork.cli.bench import ACCURACY
from linkwork.constraints import Closure
from linkwork.errors import LinkworkError, NotFound, UnsupportedError
from linkwork.kernels import Kernel
from linkwork.model import Model
from linkwork_bench.inputs import Robot
from linkwork_bench.loops import CASE, harness_robot
from linkwork_bench.measure import Conditions, Contender, interleave
from linkwork_bench.ours import Entry
from linkwork_bench.papers.experiment import Bench, Case, Times, random_states
from linkwork_bench.peers import Peer
from linkwork_bench.records import Record
from linkwork_bench.suites import errors

STATES, QUICK_STATES, CHECKED = 64, 24, 8
SPAN = 2e-4
"""Least seconds of a pass over the states: single passes of small robots are too short to measure."""


def run(experiment: Times, case: Case, bench: Bench) -> list[Record]:
    """Check and time all methods of a case."""
    try:
        model = case.make()
        states = random_states(model, QUICK_STATES if bench.quick else STATES)
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
    for p in _rivals(case, model, states, bench) if experiment.compete else []:
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
    for name, readings in interleave(contenders, bench.settings.rounds, bench.settings.budget).items():
        us, shares = zip(*readings, strict=True)
        records.append(experiment.record(case, **waiting[name], samples=list(us), shares=[round(x, 3) for x in shares]))
    return records


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


def _rivals(case: Case, model: Model, states: Mapping[str, np.ndarray], bench: Bench) -> list[Peer]:
    """The peers on the case or its twin: their C++ where the harness is built, else their Python bindings."""
    twin = case.twin() if case.twin else model
    if not all(isinstance(c, Closure) and c.joint in ("spherical", "fixed") for c in twin.constraints):
        return []
    name = "".join(x if x.isalnum() else "_" for x in case.name)
    rows = np.hstack([states[k] for k in ("q", "v", "tau")])
    if bench.peers.builds:
        try:
            robot = harness_robot(name, twin, rows, bench.peers, bench.folder)
            return bench.peers.fastest("forward_dynamics", robot, CASE, bench.settings.host)
        except UnsupportedError:
            return []
    q, v, tau = (states[k][:QUICK_STATES] for k in ("q", "v", "tau"))
    robot = Robot(name, twin.without_constraints(), {CASE: tuple(twin.constraints)}, q, v, tau)
    return bench.peers.fastest("forward_dynamics", robot, CASE, bench.settings.host)
