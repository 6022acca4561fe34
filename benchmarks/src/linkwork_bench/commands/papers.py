"""`linkwork bench papers`: the papers' tables and figures, beside what was published."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from linkwork.cli.bench import words
from linkwork.errors import not_found
from linkwork_bench import measure
from linkwork_bench.commands.options import (
    CpuOption,
    HtmlOption,
    JsonOption,
    MarkdownOption,
    PeersOption,
    ProcessorOption,
    clock,
    settings_of,
)
from linkwork_bench.commands.show import (
    STOPPED,
    print_circumstances,
    print_papers,
    print_peers,
    terminal,
    write_reports,
)
from linkwork_bench.papers import chosen
from linkwork_bench.papers.experiment import Bench, Paper
from linkwork_bench.papers.run import count_steps
from linkwork_bench.papers.run import measure as run
from linkwork_bench.peers import Peers
from linkwork_bench.peers import find as find_peers
from linkwork_bench.records import Results


def papers(
    paper: Annotated[list[str] | None, typer.Option("--paper", "-p", help="Papers, comma-separated; all.")] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Experiments such as pv_lqr/table2, comma-separated; all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few cases, short rounds: under five minutes.")] = False,
    peers: PeersOption = None,
    alone: Annotated[bool, typer.Option("--alone", help="Leave Pinocchio and MuJoCo out.")] = False,
    json: JsonOption = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    cpu: CpuOption = None,
    processor_time: ProcessorOption = False,
) -> None:
    """Measure the papers' experiments: ours, what was published, and which of their relations hold here."""
    asked = _chosen(words(paper), words(only))
    found = Peers([], None, python=False) if alone else find_peers(peers or [])
    settings = settings_of(quick, cpu=cpu)
    facts = {**measure.circumstances(), "clock": clock(processor_time), "quick": quick}
    results = Results(facts, file=json)
    print_circumstances(facts)
    print_peers(found)
    stopped = False
    try:
        with (
            measure.processor_time() if processor_time else nullcontext() as environment,
            tempfile.TemporaryDirectory() as folder,
            _Progress(asked, quick) as progress,
        ):
            bench = Bench(replace(settings, environment=environment), found, Path(folder), quick)
            run(asked, bench, results, progress.tick)
    except KeyboardInterrupt:
        stopped = True
        terminal().print(STOPPED)
    print_papers(results)
    write_reports(results, html, markdown)
    if stopped:
        raise typer.Exit(130)


def _chosen(names: list[str], only: list[str]) -> list[Paper]:
    """The papers that are asked for, with the experiments that are."""
    papers = chosen(names)
    known = [e.id for p in papers for e in p.experiments]
    for name in only:
        if name not in known:
            raise not_found("experiment", name, known)
    if not only:
        return papers
    cut = [replace(p, experiments=tuple(e for e in p.experiments if e.id in only)) for p in papers]
    return [p for p in cut if p.experiments]


class _Progress:
    """A bar over all steps with the time left."""

    def __init__(self, papers: Sequence[Paper], quick: bool) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=terminal(), transient=True, speed_estimate_period=120)
        self._task = self._bar.add_task("papers", total=count_steps(papers, quick))
        self._begun = False

    def tick(self, title: str) -> None:
        """The next step begins."""
        if self._begun:
            self._bar.advance(self._task)
        self._begun = True
        self._bar.update(self._task, description=title[:60])

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
