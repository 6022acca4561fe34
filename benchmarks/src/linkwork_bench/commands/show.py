"""Output of commands: the machine, the peers, tables, reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from linkwork.errors import InputError
from linkwork_bench import clusters, report
from linkwork_bench.papers import PAPERS
from linkwork_bench.papers import experiment as papers
from linkwork_bench.papers.run import judge, tally
from linkwork_bench.peers import Peers
from linkwork_bench.records import Record, Results
from linkwork_bench.report.page import Sheet
from linkwork_bench.report.robot import SUITE as ROBOT
from linkwork_bench.report.robot import robot_sections
from linkwork_bench.tables import table

COLOURS = {"good": "green", "bad": "red", "open": "dim", "paper": "dim", "ratio": "cyan"}
STOPPED = "[yellow]stopped: these are the figures that were complete[/]"


def terminal() -> Console:
    """Where commands print; files and pipes get whole rows."""
    console = Console()
    return console if console.is_terminal else Console(width=240)


def print_circumstances(facts: dict[str, Any]) -> None:
    """Machine and date of a run, in one line."""
    versions = ", ".join(f"{k} {v}" for k, v in facts.get("versions", {}).items())
    machine = f"{facts.get('cpu')}, {facts.get('cores')} cores, governor {facts.get('governor')}"
    text = f"{facts.get('date')}  {machine}, load {facts.get('load')}, in {facts.get('clock')}; {versions}"
    terminal().print(text, highlight=False)


def print_peers(found: Peers) -> None:
    """Print which peers are missing, if any."""
    if found.note:
        terminal().print(f"[yellow]{escape(found.note)}[/]", highlight=False)


def print_results(results: Results) -> None:
    """The tables of every suite."""
    suites: dict[str, list[Record]] = {}
    for r in results.records:
        suites.setdefault(clusters.SUITE if r.suite == clusters.GROWTH else r.suite, []).append(r)
    for suite, records in suites.items():
        if suite == papers.SUITE:
            print_papers(results)
        elif suite == ROBOT:
            print_robot(results)
        else:
            print_suite(suite, records)


def print_suite(suite: str, records: Sequence[Record]) -> None:
    """The tables of a suite, if anything was measured."""
    if records:
        terminal().print(clusters.table(records) if suite == clusters.SUITE else table(suite, records))


def print_papers(results: Results) -> None:
    """The experiments' tables and how many relations hold."""
    mine = [r for r in results.records if r.suite == papers.SUITE]
    for section in report.page_of(results).sections:
        if not section.id.startswith(("suite-", "robot-")):
            for sheet in section.sheets:
                print_sheet(section.title, sheet)
    seen = [p for p in PAPERS.values() if any(r.function.startswith(f"{p.name}/") for r in mine)]
    terminal().print(tally(judge(seen, mine)))


def print_robot(results: Results) -> None:
    """The methods on one's own robot, best first, and which is the default."""
    for section in robot_sections(results):
        for sheet in section.sheets:
            print_sheet(section.title, sheet)
        for text in [*section.text, *section.notes]:
            terminal().print(text, highlight=False, markup=False)


def print_sheet(title: str, sheet: Sheet) -> None:
    """A table of a report."""
    out = Table(title=escape(title), title_justify="left", caption=escape(sheet.title), caption_justify="left")
    for head in sheet.heads:
        out.add_column(escape(head.text), justify="right" if head.number else "left")
    for row in sheet.rows:
        out.add_row(
            *(
                f"[{COLOURS[c.kind]}]{escape(c.text)}[/]" if c.kind in COLOURS and c.text else escape(c.text)
                for c in row.cells
            )
        )
    terminal().print(out)


def write_reports(results: Results, html: Path | None, markdown: Path | None) -> None:
    """The files that were asked for."""
    for file, write in ((html, report.html), (markdown, report.markdown)):
        if file is not None:
            try:
                file.write_text(write(report.page_of(results)), encoding="utf-8")
            except OSError as problem:
                raise InputError(f"cannot write the report to '{file}': {problem.strerror}") from None
            terminal().print(f"wrote {file}", markup=False)
