"""The target figures of each suite, and what a run has reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwork_bench.lines import Line, by_method, overhead, ratios
from linkwork_bench.measure import geometric_mean
from linkwork_bench.records import Record


@dataclass(frozen=True)
class Target:
    """A target figure; `value` is None if this run has not measured it."""

    text: str
    value: float | None
    goal: float
    at_most: bool = False
    where: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal


def targets(suite: str, rows: Sequence[Line], records: Sequence[Record] = ()) -> list[Target]:
    """The targets of this suite, and what was reached."""

    def of(*functions: str) -> list[Line]:
        return [line for line in rows if not functions or line.function in functions]

    def mean(text: str, goal: float, theirs: str, ours: str, *functions: str) -> Target:
        found = ratios(of(*functions), theirs, ours)
        return Target(f"{text}, geometric mean", geometric_mean(list(found.values())) if found else None, goal)

    def least(text: str, goal: float, theirs: str, ours: str, *functions: str) -> Target:
        found = ratios(of(*functions), theirs, ours)
        where = min(found, key=lambda k: found[k], default="")
        return Target(f"{text}, every case", found.get(where), goal, where=where)

    if suite == "kernels":
        return [
            least("one state: rnea and aba against the best build", 2.0, "best", "latency", "rnea", "aba"),
            least("one state: crba against the best build", 1.5, "best", "latency", "crba"),
            mean("one state: aba against the best build", 2.3, "best", "latency", "aba"),
            mean("one state: aba against the wheel", 3.5, "wheel", "latency", "aba"),
            mean("batch, one thread", 14.0, "best", "batch"),
            least("batch, one thread", 9.0, "best", "batch"),
            mean("float32 against our float64", 1.7, "batch", "float32"),
            Target(
                "talos_reduced aba in a batch, share of the machine's vector operations",
                next((line.of_limit for line in of("aba") if line.robot == "talos_reduced"), None),
                0.55,
            ),
            _threads_target(rows),
            *_compile_targets(records),
        ]
    if suite == "constrained":
        return [
            mean("one state against the fastest solver", 2.5, "best", "latency"),
            least("one state against the fastest solver", 1.8, "best", "latency"),
            mean("batch, one thread", 18.0, "best", "batch"),
            least("batch, one thread", 10.0, "best", "batch"),
            mean("one state against constraintDynamics of the wheel", 5.0, "users", "latency"),
            mean("batch against constraintDynamics of the wheel", 40.0, "users", "batch"),
        ]
    if suite == "chains":
        by = by_method(records)
        found = {
            robot: sum(of[m].us for m in ("trace", "cold batch")) / 1e6
            for (robot, _, _), of in by.items()
            if "trace" in of
        }
        return [
            Target(f"{n} links: seconds to trace and compile", found.get(f"chain{n}"), goal, True)
            for n, goal in ((300, 12.0), (1000, 45.0))
        ]
    if suite == "loops":
        digits = [line for line in rows if "digit" in line.robot]
        against = ratios(digits, "proxLTL", "latency")
        where = min(against, key=lambda k: against[k], default="")
        return [
            mean("one state against the fastest solver", 2.5, "best", "latency"),
            mean("batch, one thread", 16.0, "best", "batch"),
            Target("one state: Digits against proxLTL, every case", against.get(where), 10.0, where=where),
        ]
    return [mean("one state", 2.5, "best", "latency"), mean("batch, one thread", 15.0, "best", "batch")]


def _threads_target(rows: Sequence[Line]) -> Target:
    """Scaling with threads, where they got their cores: on a busy machine it is not measured."""
    text = "all threads against one, geometric mean"
    found = ratios(rows, "one", "threads")
    if any(line.threads is not None and line.threads.disturbed for line in rows):
        return Target(f"{text} (the machine is busy: not measurable)", None, 1.85)
    return Target(text, geometric_mean(list(found.values())) if found else None, 1.85)


def _compile_targets(records: Sequence[Record]) -> list[Target]:
    found = by_method(records).get(("talos_reduced", "none", "aba"), {})

    def value(of: Callable[[], float | None]) -> float | None:
        return of() if "trace" in found else None

    return [
        Target(
            "talos_reduced aba, compile cold, with tracing, s",
            value(lambda: (found["trace"].us + found["cold batch"].us) / 1e6),
            1.5,
            True,
        ),
        Target(
            "talos_reduced aba, from the cache, as a new process finds it, ms",
            value(lambda: found["again"].us / 1e3),
            50,
            True,
        ),
        Target("call from Python, function, us", value(lambda: overhead(found, "function")), 1.5, True),
        Target("call from Python, kernel, us", value(lambda: overhead(found, "kernel")), 1.5, True),
        Target("call from Python, bound, us", value(lambda: overhead(found, "bound")), 0.5, True),
    ]
