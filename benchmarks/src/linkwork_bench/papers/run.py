"""Run the papers' experiments step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwork_bench.papers.experiment import Bench, Experiment, Figures, Paper
from linkwork_bench.papers.relations import Relation, Verdict
from linkwork_bench.records import Record, Results


@dataclass(frozen=True)
class Judged:
    """A relation of an experiment with its verdict.

    `cause` is the verdict on the reason why it does not hold.
    """

    experiment: Experiment
    relation: Relation
    verdict: Verdict
    cause: Verdict | None = None

    @property
    def explained(self) -> bool:
        """Whether it does not hold, for a reason that the figures prove."""
        return self.verdict.holds is False and self.cause is not None and self.cause.holds is True


def measure(papers: Sequence[Paper], bench: Bench, results: Results, tick: Callable[[str], None]) -> None:
    """All steps of all experiments; each is in the results as soon as it is done."""
    for paper in papers:
        for experiment in paper.experiments:
            for step in experiment.steps(bench.quick):
                tick(f"{experiment.id} {step.title}")
                results.add(step.run(bench))


def count_steps(papers: Sequence[Paper], quick: bool) -> int:
    return sum(len(e.steps(quick)) for p in papers for e in p.experiments)


def judge(papers: Sequence[Paper], records: Sequence[Record]) -> list[Judged]:
    """Every relation of the papers on what was measured."""
    out = []
    for e in (e for p in papers for e in p.experiments):
        figures = Figures(e, records)
        for r in e.relations:
            verdict = r.judge(figures)
            asked = r.proof is not None and verdict.holds is False
            out.append(Judged(e, r, verdict, r.proof(figures) if asked and r.proof else None))
    return out


def tally(judged: Sequence[Judged]) -> str:
    """How many relations hold, and how many do not."""
    holds, fails = ([j for j in judged if j.verdict.holds is x] for x in (True, False))
    known = sum(j.explained for j in fails)
    open_ = len(judged) - len(holds) - len(fails)
    text = f"{len(holds)} of {len(holds) + len(fails)} relations hold, {len(fails)} do not"
    if fails:
        text += f" ({known} for a reason that is measured)"
    return text + (f"; {open_} not measured in this run" if open_ else "")
