"""Results as JSON lines: the first line says where and when, every other line is one figure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from linkwork.errors import InputError
from linkwork.planner.stopwatch import undisturbed
from linkwork_bench.measure import FAIR, Summary, summary

FORMAT = "linkwork-bench-1"


@dataclass(frozen=True)
class Record:
    """One contender on one case.

    `measure` is latency, batch, threads, ...; `samples` are us per state, by round, and `shares` how much of a core
    each of them got.

    `role` is "ours", or the peer's build: "best" (compiled for this machine), "wheel" (as pip installs it), "python";
    "wheel-python" and "proxLTL" are their constraintDynamics alone, in the wheel's build and in the best.
    A contender whose results are wrong has no samples, and a note.
    """

    suite: str
    function: str
    robot: str
    case: str
    nv: int
    rows: int
    role: str
    library: str
    method: str
    measure: str
    samples: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    error: float | None = None
    operations: int | None = None
    note: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """The key by which figures of different runs are compared."""
        return (self.suite, self.function, self.robot, self.case, self.role, self.method, self.measure)

    @property
    def summary(self) -> Summary:
        return summary(self.samples)

    @property
    def disturbed(self) -> bool:
        """Whether most of its rounds had to share the core with other work."""
        return bool(self.shares) and sorted(self.shares)[len(self.shares) // 2] < FAIR

    @property
    def us(self) -> float:
        return self.summary.median

    @property
    def undisturbed(self) -> float:
        """The first decile: the time without other work on the core, its caches or its other thread."""
        return undisturbed(self.samples)

    def line(self) -> str:
        return json.dumps(asdict(self))


@dataclass
class Results:
    """What a run has measured so far; with a file, every figure is on disk as soon as it is measured."""

    circumstances: dict[str, Any]
    records: list[Record] = field(default_factory=list)
    file: Path | None = None

    def __post_init__(self) -> None:
        if self.file is not None:
            try:
                self.file.write_text(json.dumps({"format": FORMAT, **self.circumstances}) + "\n")
            except OSError as problem:
                raise InputError(f"cannot write results to '{self.file}': {problem.strerror}") from None

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            self.records.append(record)
            if self.file is not None:
                with self.file.open("a") as stream:
                    stream.write(record.line() + "\n")


def read(file: Path) -> Results:
    """A file of results."""
    try:
        first, *lines = file.read_text().splitlines()
        head = json.loads(first)
        if head.pop("format", None) != FORMAT:
            raise ValueError(f"its first line does not say {FORMAT}")
        return Results(head, [Record(**json.loads(line)) for line in lines])
    except OSError as problem:
        raise InputError(f"cannot read results from '{file}': {problem.strerror}") from None
    except (ValueError, TypeError) as problem:
        raise InputError(f"'{file}' is not a file of benchmark results: {problem}") from None


@dataclass(frozen=True)
class Change:
    """One figure in two runs; `certain` if the two intervals do not overlap."""

    key: tuple[str, ...]
    before: Summary
    after: Summary

    @property
    def ratio(self) -> float:
        """How many times faster it has become."""
        return self.before.median / self.after.median

    @property
    def certain(self) -> bool:
        return self.before.high < self.after.low or self.after.high < self.before.low


def compare(before: Results, after: Results) -> list[Change]:
    """The figures that both runs have, in the order of the second."""
    known = {r.key: r for r in before.records if r.samples}
    return [Change(r.key, known[r.key].summary, r.summary) for r in after.records if r.samples and r.key in known]
