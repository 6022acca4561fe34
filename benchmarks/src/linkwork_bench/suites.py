"""The jobs of each suite, and how one job is run.

A job is one function of one robot in one case. Its contenders are first checked against the reference accelerations of
the states they will be timed on; those that disagree are reported and not timed. The rest run in interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

import linkwork as lw
from linkwork.cli.bench import ACCURACY, able, relative_errors
from linkwork.errors import LinkworkError, not_found
from linkwork.functions.function import Function
from linkwork.kernels import Kernel
from linkwork.planner.plan import USES
from linkwork_bench.inputs import STATES, Robot, harness_robots, installed_robot, read_robot
from linkwork_bench.measure import Conditions, Contender, cores, interleave
from linkwork_bench.ours import CALLS, Calls, Entry, compile_times
from linkwork_bench.peers import Host, Peers, checked_states
from linkwork_bench.records import Record

ENTRYWISE, ENTRYWISE_FLOAT32 = 1e-3, 1e-2
"""Largest error of any single entry, relative to it if it is above one: a second check, because the accuracy required
of all libraries is relative to the largest entry. In float32 it is asked of the median state."""

KERNEL_ROBOTS = ("ur5", "panda", "solo12", "anymal_b", "go1", "allegro", "cassie", "icub_reduced", "talos_reduced")
KERNEL_MEASURES = ("latency", "batch", "limit", "float32", "threads")
CONSTRAINED_ROBOTS = ("ur5", "panda", "solo12", "anymal_b", "go1", "icub_reduced", "talos_reduced")


@dataclass(frozen=True)
class Settings:
    """How to measure. `cpu` is the core that single-threaded loops stay on."""

    rounds: int = 11
    budget: float = 0.02
    cpu: int | None = None
    threads: int = field(default_factory=lambda: len(cores()))
    compile: bool = False
    environment: Mapping[str, str] | None = None
    """Of the peers' programs, when both sides are measured in processor time."""

    @property
    def host(self) -> Host:
        return Host(self.cpu, self.environment)


@dataclass(frozen=True)
class Job:
    """One function of one robot in one case.

    `make(method)` is our function, `entry` adds states and a check.
    """

    suite: str
    function: str
    robot: Robot
    case: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    make: Callable[[str], Function]
    entry: Callable[[str, Function], Entry]
    quick: bool = False
    """Only the methods that the planner picks: most of the time is spent on compiling the others."""

    def contenders(self) -> Sequence[str]:
        """Our methods to be measured."""
        if not self.quick:
            return self.methods
        model = self.robot.constrained(self.case)
        picked = {lw.plan(model, self.function, use=use).method for use in USES}
        return [name for name in self.methods if name in picked] or self.methods

    @property
    def title(self) -> str:
        return f"{self.robot.name} {self.case} {self.function}"


def kernel_jobs(robots: Sequence[Robot], functions: Sequence[str] = ()) -> list[Job]:
    """rnea, crba and aba without constraints."""
    known = {"rnea": _rnea_job, "crba": _crba_job, "aba": _aba_job}
    for name in functions:
        if name not in known:
            raise not_found("function", name, known)
    return [known[name](robot) for robot in robots for name in functions or known]


def constrained_jobs(
    robots: Sequence[Robot],
    cases: Sequence[str] = (),
    methods: Sequence[str] = (),
    suite: str = "constrained",
    quick: bool = False,
) -> list[Job]:
    """Forward dynamics, by the methods named or by all that can handle the case; `quick`: see `Job`."""
    jobs = []
    for robot, case in _cases(robots, cases):
        model = robot.constrained(case)
        names = tuple(able("forward_dynamics", model, methods))
        make = _maker(lw.forward_dynamics, model)
        entry = _accelerations(robot, case)
        few = quick and not methods
        jobs.append(Job(suite, "forward_dynamics", robot, case, names, ("latency", "batch"), make, entry, few))
    return jobs


def chain_jobs(robots: Sequence[Robot], case: str) -> list[Job]:
    """`aba` of long chains, checked against itself in NumPy: dense algebra would take hours."""

    def entry(robot: Robot) -> Callable[[str, Function], Entry]:
        known = cache(
            lambda: lw.forward_dynamics(robot.model, method="aba", backend="numpy")(robot.q, robot.v, robot.tau)[0]
        )
        return lambda method, function: Entry(
            method, function, (robot.q, robot.v, robot.tau), lambda out, kernel: errors(out[0], known())
        )

    return [
        Job(
            "chains",
            "forward_dynamics",
            robot,
            case,
            ("aba",),
            ("latency", "batch"),
            _maker(lw.forward_dynamics, robot.model),
            entry(robot),
        )
        for robot in robots
    ]


def delassus_jobs(
    robots: Sequence[Robot], cases: Sequence[str] = (), methods: Sequence[str] = (), quick: bool = False
) -> list[Job]:
    """The Delassus matrix J M^-1 J^T, by the same methods."""
    jobs = []
    for robot, case in _cases(robots, cases):
        model = robot.constrained(case)
        if model.rows:
            names = tuple(able("delassus", model, methods))
            make = _maker(lw.delassus, model)
            entry = _matrices(robot, case)
            few = quick and not methods
            jobs.append(Job("delassus", "delassus", robot, case, names, ("latency", "batch"), make, entry, few))
    return jobs


def find_robots(names: Sequence[str], peers: Peers, default: Sequence[str], states: int = STATES) -> list[Robot]:
    """The robots of these names: the harness's, or those installed on this machine, with so many states."""
    if peers.inputs is not None:
        there = harness_robots(peers.inputs)
        for name in names:
            if name not in there:
                raise not_found("robot in the harness's inputs", name, there)
        return [read_robot(peers.inputs, name) for name in names or [n for n in default if n in there]]
    return [installed_robot(name, states) for name in names] if names else list(_installed(default, states))


def run(job: Job, peers: Peers, settings: Settings, tick: Callable[[], None] = lambda: None) -> list[Record]:
    """Check every contender of a job, then time those that are right, all in turns."""
    model, records = job.robot.constrained(job.case), []
    contenders: dict[str, Contender] = {}
    waiting: dict[str, dict[str, Any]] = {}
    common: dict[str, Any] = {
        "suite": job.suite,
        "function": job.function,
        "robot": job.robot.name,
        "case": job.case,
        "nv": model.nv,
        "rows": model.rows,
    }

    def enter(contender: Contender, **facts: Any) -> None:
        name = str(len(contenders))
        contenders[name], waiting[name] = contender, {**common, **facts}

    rivals = peers.fastest(job.function, job.robot, job.case, settings.host)
    span = len(job.robot.q) * min((p.us for p in rivals if p.role != "mujoco"), default=2.0) * 1e-6
    conditions = Conditions(settings.cpu, span, settings.environment is not None)
    for method in job.contenders():
        facts: dict[str, Any] = {"role": "ours", "library": f"linkwork-{lw.__version__}", "method": method}
        try:
            entry = job.entry(method, job.make(method))
            made = entry.contenders(job.measures, settings.threads, conditions)
            checked = {name: _checked(entry, kernel) for name, (_, kernel) in made.items()}
        except LinkworkError as problem:
            records.append(Record(**common, **facts, measure="latency", note=f"not timed: {problem}"))
            continue
        for name, (contender, kernel) in made.items():
            error, refusal, note = checked[name]
            if refusal:
                records.append(Record(**common, **facts, measure=name, error=error, note=refusal))
            else:
                enter(contender, **facts, measure=name, error=error, operations=kernel.operations, note=note)
        if settings.compile:
            for way in CALLS:
                enter(Calls(entry, way, conditions), **facts, measure=way)
            for name, seconds in compile_times(partial(job.make, method)).items():
                records.append(Record(**common, **facts, measure=name, samples=[seconds * 1e6], note="in all"))
    for p in rivals:
        enter(
            p.contender,
            role=p.role,
            library=p.library,
            method=p.algorithm,
            measure="latency",
            error=p.error,
            note=p.note,
        )
    if job.suite in ("constrained", "loops") and model.rows:
        for p in peers.fastest("constraintDynamics", job.robot, job.case, settings.host):
            role, note = {
                "wheel": ("wheel-python", "the solver that Python users have"),
                "best": ("proxLTL", "their sparse factor, where theirs is another"),
            }.get(p.role, ("", ""))
            if role == "wheel-python" or (role and job.suite == "loops"):
                enter(
                    p.contender,
                    role=role,
                    library=p.library,
                    method=p.algorithm,
                    measure="latency",
                    error=p.error,
                    note=note,
                )
    for name, readings in interleave(contenders, settings.rounds, settings.budget, tick).items():
        us, shares = zip(*readings, strict=True)
        records.append(Record(**waiting[name], samples=list(us), shares=[round(x, 3) for x in shares]))
    return records


def _checked(entry: Entry, kernel: Kernel) -> tuple[float, str, str]:
    """The worst error relative to each state's largest entry; why it is not timed; a note.

    Iterative methods on either side may stop early in a few states that are nearly singular: the note says how often
    over all states, and the decision is made on the states on which the peers are checked.
    """
    norm, entrywise = entry.error(kernel)
    chosen = checked_states(len(norm))
    worst, middle = float(norm[chosen].max()), float(np.median(entrywise))
    if kernel.dtype == np.float32:
        return worst, "" if middle <= ENTRYWISE_FLOAT32 else f"not timed: wrong by {middle:.1e} in the median state", ""
    off = int(np.count_nonzero(norm > ACCURACY))
    note = f"{off} of {len(norm)} states are off by more than {ACCURACY:g}" if off else ""
    if not np.isfinite(norm[chosen]).all():
        return worst, "not timed: no solution in some states (rows or postures that are singular for it)", note
    wrong = max(worst / ACCURACY, float(entrywise[chosen].max()) / ENTRYWISE)
    if wrong <= 1:
        return worst, "", note
    return worst, f"not timed: wrong by {worst:.1e} ({entrywise[chosen].max():.1e} in single entries)", note


def errors(x: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By state: relative to the largest entry, and the worst entry relative to itself.

    NaN is infinitely wrong.
    """
    x, reference = (y.reshape(len(y), -1) for y in (x, reference))
    entrywise = (np.abs(x - reference) / np.maximum(1, np.abs(reference))).max(axis=1, initial=0)
    norm, entrywise = (np.where(np.isnan(e), np.inf, e) for e in (relative_errors(x, reference), entrywise))
    return norm, entrywise


def _rnea_job(robot: Robot) -> Job:
    reference = cache(lambda: robot.reference("none"))

    def entry(method: str, function: Function) -> Entry:
        # timed with tau in the place of accelerations, as the harness does; checked where the answer is known
        def wrong(out: Sequence[np.ndarray], kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
            del out
            tau = kernel(*(np.asarray(x, kernel.dtype) for x in (robot.q, robot.v, reference())))[0]
            return errors(np.asarray(tau, float), robot.tau)

        return Entry(method, function, (robot.q, robot.v, robot.tau), wrong)

    return Job(
        "kernels",
        "rnea",
        robot,
        "none",
        ("rnea",),
        KERNEL_MEASURES,
        lambda method: lw.inverse_dynamics(robot.model, method=method),
        entry,
    )


def _crba_job(robot: Robot) -> Job:
    reference = cache(lambda: robot.reference("none"))

    def entry(method: str, function: Function) -> Entry:
        bias = lw.inverse_dynamics(robot.model)(robot.q, robot.v, np.zeros_like(robot.v))[0]

        def wrong(out: Sequence[np.ndarray], kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
            rows, columns = lw.mass_pattern(robot.model)
            M = np.zeros((len(out[0]), robot.model.nv, robot.model.nv))
            M[:, rows, columns] = M[:, columns, rows] = out[0]
            return errors(np.einsum("bij,bj->bi", M, reference()) + bias, robot.tau)

        return Entry(method, function, (robot.q,), wrong)

    return Job(
        "kernels",
        "crba",
        robot,
        "none",
        ("crba",),
        KERNEL_MEASURES,
        lambda method: lw.mass_matrix(robot.model, packed=True),
        entry,
    )


def _aba_job(robot: Robot) -> Job:
    return Job(
        "kernels",
        "aba",
        robot,
        "none",
        ("aba",),
        KERNEL_MEASURES,
        _maker(lw.forward_dynamics, robot.model),
        _accelerations(robot, "none"),
    )


def _maker(factory: Callable[..., Function], model: lw.Model) -> Callable[[str], Function]:
    return lambda method: factory(model, method=method)


def _accelerations(robot: Robot, case: str) -> Callable[[str, Function], Entry]:
    reference = cache(lambda: robot.reference(case))
    return lambda method, function: Entry(
        method, function, (robot.q, robot.v, robot.tau), lambda out, kernel: errors(out[0], reference())
    )


def _matrices(robot: Robot, case: str) -> Callable[[str, Function], Entry]:
    @cache
    def reference() -> np.ndarray:
        model = robot.constrained(case)
        J, M = lw.constraint_jacobian(model)(robot.q)[0], lw.mass_matrix(robot.model)(robot.q)[0]
        return np.asarray(J @ np.linalg.solve(M, J.transpose(0, 2, 1)))

    return lambda method, function: Entry(method, function, (robot.q,), lambda out, kernel: errors(out[0], reference()))


def _cases(robots: Sequence[Robot], cases: Sequence[str]) -> Iterable[tuple[Robot, str]]:
    known = sorted({c for robot in robots for c in robot.cases})
    for case in cases:
        if case not in known:
            raise not_found("case", case, known)
    return [(robot, case) for robot in robots for case in robot.cases if not cases or case in cases]


def _installed(names: Sequence[str], states: int) -> Iterable[Robot]:
    for name in names:
        try:
            yield installed_robot(name, states)
        except LinkworkError:
            continue
