"""`linkwork bench show` and `compare`: what earlier runs measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkwork_bench import records
from linkwork_bench.commands.options import HtmlOption, MarkdownOption
from linkwork_bench.commands.show import print_circumstances, print_results, terminal, write_reports
from linkwork_bench.measure import geometric_mean
from linkwork_bench.tables import changes_table


def show(
    file: Annotated[Path, typer.Argument(help="A file that --json wrote.")],
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
) -> None:
    """Print the tables of an earlier run, or write them as a page."""
    results = records.read(file)
    if html is None and markdown is None:
        print_circumstances(results.circumstances)
        print_results(results)
    write_reports(results, html, markdown)


def compare(
    before: Annotated[Path, typer.Argument(help="A file that --json wrote.")],
    after: Annotated[Path, typer.Argument(help="Another, usually later.")],
    all_figures: Annotated[bool, typer.Option("--all", help="Also what did not change for certain.")] = False,
) -> None:
    """Put two runs side by side: what became faster, what slower."""
    first, second = records.read(before), records.read(after)
    for results in (first, second):
        print_circumstances(results.circumstances)
    changes = records.compare(first, second)
    if not changes:
        terminal().print("the two runs have no figure in common")
        raise typer.Exit(1)
    terminal().print(changes_table([c for c in changes if all_figures or c.certain]))
    ours = [c for c in changes if c.key[4] == "ours"]
    for who, group in (("ours", ours), ("peers", [c for c in changes if c not in ours])):
        if group:
            mean = geometric_mean([c.ratio for c in group])
            certain = sum(c.certain for c in group)
            terminal().print(f"{who}: {len(group)} figures, {certain} changed for certain, geometric mean {mean:.3f} x")
