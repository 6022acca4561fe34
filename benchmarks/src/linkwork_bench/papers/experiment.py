"""An experiment of a paper as a declaration.

Mechanisms, methods, what is measured, and what the paper found.

Three kinds: `Counts` (exact operations of traced programs), `Times` (compiled kernels in native loops, in turns with
the peers), `Study` (anything else: accuracy, convergence, simulations). Each is run in steps, so that progress is shown
and no figure is lost. Figures are records of the suite "papers" (see `bench.records`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from linkwork.errors import LinkworkError, LoadError, NotFound
from linkwork.functions.function import Function
from linkwork.model import Model
from linkwork_bench.inputs import SEED
from linkwork_bench.measure import Summary, ratio
from linkwork_bench.papers.sources import absent_robot, where_to_get
from linkwork_bench.records import Record

if TYPE_CHECKING:
    from linkwork_bench.papers.relations import Relation
    from linkwork_bench.peers import Peers
    from linkwork_bench.suites import Settings

Way = Callable[[Model], Function]
"""How a method becomes a function of a model."""


class Counted(Protocol):
    """What can be counted: a function, or a tally."""

    @property
    def operations(self) -> int: ...


@dataclass(frozen=True)
class Tally:
    """Operations that are counted by other means than one trace."""

    operations: int


SUITE = "papers"
ABSENT = (NotFound, LoadError)
"""What is raised if a robot is not installed, or has no link of that name."""
OTHER_MACHINE = "times are of another machine: compare the ratios between methods, not microseconds"
NO_NUMBERS = "the paper shows it as a plot and prints no numbers"


@dataclass(frozen=True)
class Case:
    """A mechanism with its constraints. `x` is its abscissa in a plot; `quick`: part of a quick run.

    `twin` is an equivalent for peers that cannot take the model's own rows.
    """

    robot: str
    case: str
    make: Callable[[], Model]
    x: float | None = None
    quick: bool = True
    twin: Callable[[], Model] | None = None

    @property
    def name(self) -> str:
        return f"{self.robot} {self.case}".strip()


@dataclass(frozen=True)
class Bench:
    """The setup of experiments: how to measure, which peers, and a folder for the peers' inputs."""

    settings: Settings
    peers: Peers
    folder: Path
    quick: bool = False


@dataclass(frozen=True)
class Step:
    """A part of an experiment that is done in one go."""

    title: str
    run: Callable[[Bench], list[Record]]


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """What all kinds share. `id` is "paper/experiment", `where` the place in the paper.

    `published` has the paper's figures by case and method, in the same `unit` as ours; with `relative_to` both are per
    cent above that method. `axis` names the x of the cases; then there is a plot. `caveat` says what cannot be
    compared.
    """

    id: str
    title: str
    where: str
    cases: tuple[Case, ...]
    measure: str = ""
    unit: str = ""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    relative_to: str = ""
    axis: str = ""
    caveat: str = ""

    LOG: ClassVar[bool] = True

    @property
    @abstractmethod
    def methods(self) -> tuple[str, ...]:
        """The names of the methods, in the order of the table's columns."""

    @abstractmethod
    def steps(self, quick: bool) -> list[Step]:
        """What is to be done."""

    def chosen(self, quick: bool) -> list[Case]:
        return [c for c in self.cases if c.quick or not quick]

    def record(self, case: Case, method: str, measure: str, model: Model | None = None, **facts: Any) -> Record:
        """One figure of ours."""
        nv, rows = (model.nv, model.rows) if model else (0, 0)
        facts = {"role": "ours", "library": _library(), **facts}
        return Record(SUITE, self.id, case.robot, case.case, nv, rows, method=method, measure=measure, **facts)

    def missing(self, case: Case, problem: LinkworkError) -> Record:
        """The record of a case whose robot is not installed, or has other links than expected."""
        absent = absent_robot(problem)
        if not absent:
            return self.record(case, "", self.measure, note=f"another robot file: {problem}")
        return self.record(
            case, "", self.measure, note=f"robot file missing: '{absent}'. {where_to_get(absent)}".strip()
        )


@dataclass(frozen=True, kw_only=True)
class Counts(Experiment):
    """Exact operations. `parts` splits a method's count.

    Each way computes what the ones before it do, and more.
    """

    ways: Mapping[str, Callable[[Model], Counted]]
    parts: Mapping[str, Mapping[str, Way]] = field(default_factory=dict)
    measure: str = "operations"
    unit: str = "operations"

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.ways)

    def steps(self, quick: bool) -> list[Step]:
        return [
            Step(f"{case.name} {method}", partial(self._count, case, method))
            for case in self.chosen(quick)
            for method in self.ways
        ]

    def _count(self, case: Case, method: str, bench: Bench) -> list[Record]:
        del bench
        try:
            model = case.make()
        except ABSENT as problem:
            return [self.missing(case, problem)]
        try:
            count = self.ways[method](model).operations
        except LinkworkError as problem:
            return [self.record(case, method, self.measure, model, note=f"not counted: {problem}")]
        records = [self.record(case, method, self.measure, model, samples=[float(count)], operations=count)]
        done = 0
        for part, way in self.parts.get(method, {}).items():
            upto = way(model).operations
            records.append(self.record(case, method, f"part: {part}", model, samples=[float(max(upto - done, 0))]))
            done = upto
        return records


@dataclass(frozen=True, kw_only=True)
class Times(Experiment):
    """Times per state of compiled kernels, checked against a reference before they are timed.

    `reference` gives the right results for rows of states; `unchecked` methods are meant to be off (one iteration,
    approximations). `compete`: Pinocchio and MuJoCo, where present, run in the same rounds on the case or its twin;
    `yardstick` says which of Pinocchio's algorithms (see `peers.ALGORITHMS`).
    """

    ways: Mapping[str, Way]
    reference: Callable[[Model, Mapping[str, np.ndarray]], np.ndarray]
    unchecked: frozenset[str] = frozenset()
    references: Mapping[str, Callable[[Model, Mapping[str, np.ndarray]], np.ndarray]] = field(default_factory=dict)
    measures: tuple[str, ...] = ("latency", "batch")
    compete: bool = False
    yardstick: str = "forward_dynamics"
    measure: str = "latency"
    unit: str = "us"

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.ways)

    def steps(self, quick: bool) -> list[Step]:
        from linkwork_bench.papers.timing import run

        return [Step(case.name, partial(run, self, case)) for case in self.chosen(quick)]


Finding = tuple[str, str, Sequence[float]]
"""Method, measure and samples."""


@dataclass(frozen=True, kw_only=True)
class Study(Experiment):
    """The figures that `ask` returns for a case."""

    names: tuple[str, ...]
    ask: Callable[[Case, bool], Iterable[Finding]]

    @property
    def methods(self) -> tuple[str, ...]:
        return self.names

    def steps(self, quick: bool) -> list[Step]:
        return [Step(case.name, partial(self._found, case)) for case in self.chosen(quick)]

    def _found(self, case: Case, bench: Bench) -> list[Record]:
        try:
            return [
                self.record(case, method, measure, samples=[float(x) for x in samples])
                for method, measure, samples in self.ask(case, bench.quick)
            ]
        except ABSENT as problem:
            return [self.missing(case, problem)]
        except LinkworkError as problem:  # the other cases and experiments continue
            return [self.record(case, "", self.measure, note=f"failed: {problem}")]


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments."""

    name: str
    short: str
    citation: str
    machine: str
    experiments: tuple[Experiment, ...]


class Figures:
    """The medians of one experiment, by case, method and measure."""

    def __init__(self, experiment: Experiment, records: Iterable[Record]) -> None:
        self.experiment, self.all = experiment, list(records)
        self.records = [r for r in self.all if r.suite == SUITE and r.function == experiment.id]

    @cached_property
    def ours(self) -> list[Record]:
        """The records of our own methods: a peer's algorithm may have the same name."""
        return [r for r in self.records if r.role == "ours"]

    @cached_property
    def _medians(self) -> dict[tuple[str, str, str, str], float]:
        return {(r.robot, r.case, r.method, r.measure): r.us for r in self.ours if r.samples}

    def of(self, case: Case, method: str, measure: str = "") -> float | None:
        return self._medians.get((case.robot, case.case, method, measure or self.experiment.measure))

    @cached_property
    def _timed(self) -> dict[tuple[str, str, str, str], list[float]]:
        timed = isinstance(self.experiment, Times)
        return {(r.robot, r.case, r.method, r.measure): r.samples for r in self.ours if timed and len(r.samples) > 2}

    def interval(
        self, case: Case, over: str, under: str, measure: str = "", under_measure: str | None = None
    ) -> Summary | None:
        """The interval of a ratio of times, from rounds that belong together; None for other figures."""
        first = measure or self.experiment.measure
        a = self._timed.get((case.robot, case.case, over, first))
        b = self._timed.get((case.robot, case.case, under, under_measure or first))
        return ratio(a, b) if a and b else None

    def operations(self, case: Case, method: str) -> int | None:
        """The operations of a timed kernel."""
        return self._operations.get((case.robot, case.case, method))

    @cached_property
    def _operations(self) -> dict[tuple[str, str, str], int]:
        return {(r.robot, r.case, r.method): r.operations for r in self.ours if r.operations}

    def shown(self, case: Case, method: str) -> float | None:
        """Our figure in the unit of the published one."""
        value, to = self.of(case, method), self.experiment.relative_to
        if not to or value is None:
            return value
        base = self.of(case, to)
        return None if not base else 100 * (value / base - 1)

    @property
    def measured(self) -> list[Case]:
        """The cases of which there is any figure."""
        known = {(robot, case) for robot, case, *_ in self._medians}
        return [c for c in self.experiment.cases if (c.robot, c.case) in known]

    @property
    def notes(self) -> list[str]:
        """What was not measured, and why."""
        found = (f"{r.robot} {r.case} {r.method}: {r.note}" for r in self.records if not r.samples and r.note)
        return list(dict.fromkeys(" ".join(text.split()) for text in found))


def random_states(model: Model, count: int) -> dict[str, np.ndarray]:
    """Rows of q, v, tau and a; loops are closed, and velocities keep them so."""
    from linkwork.closure.random_states import random_state

    rng = np.random.default_rng(SEED)
    if any(sum(l > 0 for l in c.touches(model)) != 1 for c in model.constraints):
        inside = [c.name for c in model.constraints if sum(l > 0 for l in c.touches(model)) != 1]
        q, v = random_state(model, SEED, batch=count, only=inside)
    else:
        q = np.array([model.random_q(rng) for _ in range(count)])
        v = rng.uniform(-1, 1, (count, model.nv))
    tau, a = (rng.uniform(-1, 1, (count, model.nv)) for _ in range(2))
    return {"q": q, "v": v, "tau": tau, "a": a}


def _library() -> str:
    import linkwork

    return f"linkwork-{linkwork.__version__}"
