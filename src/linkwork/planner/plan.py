"""A plan: methods by predicted time, and the treatment of each constraint by the chosen one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from linkwork.model import Model
from linkwork.structure.constraint_treatment import Mixture

USES = ("state", "batch")

NEAR = 1.6
"""Methods that are predicted to take so many times as long as the fastest are not measured."""


@dataclass(frozen=True)
class Step:
    """Links that are eliminated at once (one, or a cluster), their parent and their neighbours.

    Neighbours are links that penalties couple them with when they are eliminated.
    """

    links: tuple[str, ...]
    parent: str
    neighbours: tuple[str, ...] = ()

    def __str__(self) -> str:
        near = f" ~ {', '.join(self.neighbours)}" if self.neighbours else ""
        return f"{', '.join(self.links)} -> {self.parent}{near}"


@dataclass(frozen=True)
class Decisions:
    """The treatment of a model's constraints, by name, and the order in which links are eliminated.

    `propagated` pairs each propagated constraint with the link at which its multipliers are eliminated.
    """

    embedded: tuple[str, ...] = ()
    penalised: tuple[str, ...] = ()
    propagated: tuple[tuple[str, str], ...] = ()
    order: tuple[Step, ...] = ()

    @classmethod
    def of(cls, model: Model, mix: Mixture) -> Decisions:
        """A treatment of a model's constraints by name."""
        link, constraint = [l.name for l in model.links], [c.name for c in model.constraints]
        return cls(
            tuple(constraint[c] for c in sorted(mix.embedded)),
            tuple(constraint[c] for c in sorted(mix.penalised)),
            tuple((constraint[c], link[end]) for c, end in sorted(mix.ends.items())),
            tuple(
                Step(tuple(link[i] for i in node.bodies), link[node.output], tuple(link[n] for n in near))
                for node, near in mix.order
            ),
        )

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Decisions:
        """The decisions of plain data."""
        steps = (Step(tuple(s["links"]), s["parent"], tuple(s["neighbours"])) for s in data["order"])
        propagated = tuple((constraint, link) for constraint, link in data["propagated"])
        return cls(tuple(data["embedded"]), tuple(data["penalised"]), propagated, tuple(steps))

    @property
    def clusters(self) -> tuple[Step, ...]:
        """The links that are eliminated together."""
        return tuple(s for s in self.order if len(s.links) > 1)

    @property
    def most_neighbours(self) -> int:
        return max((len(s.neighbours) for s in self.order), default=0)

    def explain(self) -> str:
        """One line for each kind of treatment, and the order where it is not that of the tree."""
        at = [f"{name} (at {link})" for name, link in self.propagated]
        kinds = {"embedded": self.embedded, "penalised": self.penalised, "propagated": at}
        lines = [f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names]
        if self.clusters:
            lines.append(f"clusters: {'; '.join(map(str, self.clusters))}")
        if self.most_neighbours:
            lines.append(f"order of elimination (-> parent, ~ neighbours), at most {self.most_neighbours} neighbours:")
            lines += [f"{n:4d}  {step}" for n, step in enumerate(self.order, 1)]
        return "\n".join(lines)


@dataclass(frozen=True)
class Candidate:
    """A method, its operations up to the first solution, and those of one more solver iteration.

    `iterations` are the solver iterations that are expected, the first included, and `unconverged` is the share of the
    configurations on which they were counted in which it did not converge. `predicted` and `measured` have us per
    state by use. `decisions` is None for methods that solve for all rows at once, in joint space. `reason`: why it
    cannot be chosen, "" if it can.
    """

    method: str
    operations: int = 0
    operations_per_iteration: int = 0
    iterations: float = 1.0
    unconverged: float = 0.0
    predicted: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    decisions: Decisions | None = None
    reason: str = ""

    @property
    def possible(self) -> bool:
        return not self.reason

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Candidate:
        """The candidate of plain data."""
        found = data["decisions"]
        return cls(**{**data, "decisions": None if found is None else Decisions.from_data(found)})


@dataclass(frozen=True)
class Plan:
    """The methods for one task and use, the fastest first, and those that cannot be chosen last."""

    model: str
    task: str
    use: str
    candidates: tuple[Candidate, ...]

    @classmethod
    def ordered(cls, model: str, task: str, use: str, candidates: Iterable[Candidate]) -> Plan:
        """Those that converge first, then by measured and by predicted time."""
        last = float("inf")

        def key(c: Candidate) -> tuple[bool, float, float, float]:
            return bool(c.reason), c.unconverged, c.measured.get(use, last), c.predicted.get(use, last)

        return cls(model, task, use, tuple(sorted(candidates, key=key)))

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    @property
    def method(self) -> str:
        return self.best.method

    @property
    def decisions(self) -> Decisions | None:
        """What the chosen method does with the constraints, and in which order."""
        return self.best.decisions

    @property
    def near(self) -> list[Candidate]:
        """Those that are predicted to take at most NEAR times as long as the fastest."""
        able = [c for c in self.candidates if c.possible and c.unconverged <= self.best.unconverged]
        least = min((c.predicted[self.use] for c in able), default=0.0)
        return [c for c in able if c.predicted[self.use] <= NEAR * least]

    @property
    def measured(self) -> bool:
        """Whether the order is one of measured times."""
        return self.use in self.best.measured

    def timed(self, took: Mapping[str, Mapping[str, float]]) -> Plan:
        """The plan in the order of measured us per state, by use and method; others follow in their order."""
        found = (
            replace(c, measured={use: of[c.method] for use, of in took.items() if c.method in of})
            for c in self.candidates
        )
        return Plan.ordered(self.model, self.task, self.use, found)

    def to_data(self) -> dict[str, Any]:
        """The plan as plain data: dictionaries, tuples, strings and numbers."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Plan:
        """The plan of plain data."""
        return cls(**{**data, "candidates": tuple(map(Candidate.from_data, data["candidates"]))})

    @property
    def title(self) -> str:
        how = "one state at a time" if self.use == "state" else "batches"
        return f"{self.task.replace('_', ' ')} of '{self.model}' for {how}: {self.method}"

    def table(self) -> list[dict[str, str]]:
        """The possible methods with their figures, as text by column."""
        uses = USES if self.measured else ()
        return [
            {
                "method": c.method,
                "operations": str(c.operations),
                "per iteration": str(c.operations_per_iteration or ""),
                "iterations": f"{c.iterations:.1f}" if c.operations_per_iteration else "",
                "state us": f"{c.predicted['state']:.3f}",
                "batch us": f"{c.predicted['batch']:.4f}",
                **{f"measured {use}": f"{c.measured[use]:.4f}" if use in c.measured else "" for use in uses},
            }
            for c in self.candidates
            if c.possible
        ]

    def explain(self) -> str:
        """A table of methods, operations and times; reasons against others; the treatment of constraints."""
        rows = self.table()
        width = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
        lines = [self.title, ""]
        for row in ({name: name for name in width}, *rows):
            lines.append("  ".join(f"{row[n]:{'<' if n == 'method' else '>'}{w}s}" for n, w in width.items()).rstrip())
        lines += [f"{c.method}: {c.reason}" for c in self.candidates if c.reason]
        treatment = self.decisions.explain() if self.decisions else ""
        return "\n".join([*lines, "", treatment] if treatment else lines)
