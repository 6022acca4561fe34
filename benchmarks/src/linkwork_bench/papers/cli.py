"""`linkwork bench papers`: the papers' tables and figures, beside what was published."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwork_bench.papers.experiment import Paper
    from linkwork_bench.records import Results
    from linkwork_bench.report.page import Sheet

HtmlOption = Annotated[Path | None, typer.Option("--html", help="Write a self-contained page with tables and plots.")]
MarkdownOption = Annotated[Path | None, typer.Option("--markdown", help="Write the tables as Markdown.")]


def papers_command(
    paper: Annotated[list[str] | None, typer.Option("--paper", "-p", help="Papers, comma-separated; all.")] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Experiments such as pv_lqr/table2, comma-separated; all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few cases, short rounds: under five minutes.")] = False,
    peers: Annotated[list[Path] | None, typer.Option("--peers", help="A build folder of the peers' harness.")] = None,
    alone: Annotated[bool, typer.Option("--alone", help="Leave Pinocchio and MuJoCo out.")] = False,
    json: Annotated[Path | None, typer.Option("--json", help="Write every figure to this file (JSON lines).")] = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    cpu: Annotated[int | None, typer.Option("--cpu", help="The core for timing; default: the last. -1: any.")] = None,
    processor_time: Annotated[
        bool, typer.Option("--processor-time", help="Processor time, for busy machines (needs Linux, cc).")
    ] = False,
) -> None:
    """Measure the papers' experiments: ours, what was published, and which of their relations hold here."""
    from dataclasses import replace

    from linkwork_bench import cli, measure
    from linkwork_bench import peers as others
    from linkwork_bench.papers.experiment import Bench
    from linkwork_bench.papers.run import measure as run
    from linkwork_bench.records import Results

    papers = _chosen(cli._words(paper), cli._words(only))
    found = others.Peers([], None, python=False) if alone else others.find(peers or [])
    settings = cli._settings(quick, None, cpu, None, False)
    facts = {**measure.circumstances(), "clock": "processor time" if processor_time else "time", "quick": quick}
    results = Results(facts, file=json)
    cli._print_circumstances(facts)
    cli._say_peers(found)
    stopped = False
    try:
        with (
            measure.processor_time() if processor_time else nullcontext() as environment,
            tempfile.TemporaryDirectory() as folder,
            _Progress(papers, quick) as progress,
        ):
            bench = Bench(replace(settings, environment=environment), found, Path(folder), quick)
            run(papers, bench, results, progress.tick)
    except KeyboardInterrupt:
        stopped = True
        cli._console().print("[yellow]stopped: these are the figures that were complete[/]")
    show_papers(results)
    write_reports(results, html, markdown)
    if stopped:
        raise typer.Exit(130)


def show_papers(results: Results) -> None:
    """The experiments' tables and the relations in the terminal."""
    from linkwork_bench.cli import _console
    from linkwork_bench.papers import PAPERS
    from linkwork_bench.papers.experiment import SUITE
    from linkwork_bench.papers.run import judge, tally
    from linkwork_bench.report.build import page_of

    mine = [r for r in results.records if r.suite == SUITE]
    for section in page_of(results).sections:
        if section.id.startswith(("suite-", "robot-")):
            continue
        for sheet in section.sheets:
            print_sheet(section.title, sheet)
    seen = [p for p in PAPERS.values() if any(r.function.startswith(f"{p.name}/") for r in mine)]
    _console().print(tally(judge(seen, mine)))


def print_sheet(title: str, sheet: Sheet) -> None:
    """A table of a report in the terminal."""
    from rich.markup import escape
    from rich.table import Table

    from linkwork_bench.cli import _console

    table = Table(title=escape(title), title_justify="left", caption=escape(sheet.title), caption_justify="left")
    for head in sheet.heads:
        table.add_column(escape(head.text), justify="right" if head.number else "left")
    colours = {"good": "green", "bad": "red", "open": "dim", "paper": "dim", "ratio": "cyan"}
    for row in sheet.rows:
        table.add_row(
            *(
                f"[{colours[c.kind]}]{escape(c.text)}[/]" if c.kind in colours and c.text else escape(c.text)
                for c in row.cells
            )
        )
    _console().print(table)


def write_reports(results: Results, html: Path | None, markdown: Path | None) -> None:
    """The files that were asked for."""
    from linkwork.errors import InputError
    from linkwork_bench import report
    from linkwork_bench.cli import _console

    writers = ((html, report.html), (markdown, report.markdown))
    for file, write in writers:
        if file is not None:
            try:
                file.write_text(write(report.page_of(results)), encoding="utf-8")
            except OSError as problem:
                raise InputError(f"cannot write the report to '{file}': {problem.strerror}") from None
            _console().print(f"wrote {file}", markup=False)


def _chosen(names: list[str], only: list[str]) -> list[Paper]:
    """The papers that are asked for, with the experiments that are."""
    from dataclasses import replace

    from linkwork.errors import not_found
    from linkwork_bench.papers import chosen

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
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        from linkwork_bench.cli import _console
        from linkwork_bench.papers.run import count_steps

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            Remaining(),
        )
        self._bar = Progress(*columns, console=_console(), transient=True, speed_estimate_period=120)
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
