"""`linkwork bench planner`: predictions of the planner beside measured times."""

from __future__ import annotations

import json as text
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from linkwork.cli.bench import words
from linkwork.errors import InputError
from linkwork.simulation.records.progress import bar
from linkwork_bench import planning
from linkwork_bench.commands.options import JsonOption, ProcessorOption


def planner(
    mechanisms: Annotated[
        list[str] | None, typer.Option("--mechanisms", help="Parts of names; default: every available mechanism.")
    ] = None,
    use: Annotated[str, typer.Option(help="state or batch.")] = "state",
    independent: Annotated[bool, typer.Option("--independent", help="Rows are promised to be independent.")] = False,
    largest: Annotated[int, typer.Option(help="Leave out mechanisms with more degrees of freedom.")] = 80,
    rounds: Annotated[
        int, typer.Option(min=1, help="Rounds, in sweeps over all mechanisms, of which the first decile counts.")
    ] = 200,
    json: JsonOption = None,
    processor_time: ProcessorOption = False,
) -> None:
    """Predicted and measured times of the planner's pick and of every method predicted to be near it."""
    trials: list[planning.Trial] = []
    _save(json, trials)
    chosen = [(n, m) for n, m in planning.mechanisms(words(mechanisms)) if m.nv <= largest]
    try:
        with bar(None, "planning and compiling", len(chosen)) as advance:
            for done, (name, model) in enumerate(chosen, 1):
                if (found := planning.trial(name, model, use, independent, processor_time)) is not None:
                    trials.append(found)
                advance(done)
        sweeps = [min(planning.SWEEP, rounds - k) for k in range(0, rounds, planning.SWEEP)]
        with bar(None, "measuring", len(sweeps) * len(trials)) as advance:
            for k, sweep in enumerate(sweeps):
                for done, each in enumerate(trials, 1):
                    each.measure(sweep)
                    advance(k * len(trials) + done)
                _save(json, trials)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped: what was measured is shown")
    verdicts = [t.verdict for t in trials if t.took]
    console = Console()
    console.print(_table(use, verdicts))
    for what, value in (planning.summary(verdicts) if verdicts else {}).items():
        console.print(f"{what}: {value:.3g}", highlight=False)


def _save(file: Path | None, trials: Sequence[planning.Trial]) -> None:
    """Write the figures measured so far."""
    if file is not None:
        found = (t.verdict for t in trials if t.took)
        try:
            file.write_text("".join(text.dumps({**asdict(v), "loss": v.loss}) + "\n" for v in found))
        except OSError as problem:
            raise InputError(f"cannot write results to '{file}': {problem.strerror}") from None


def _table(use: str, verdicts: Sequence[planning.Verdict]) -> Table:
    table = Table(title=f"the planner's picks for use '{use}': predicted and measured us per state")
    for head in ("mechanism", "pick", "predicted", "measured", "fastest", "measured", "loss"):
        table.add_column(head, justify="left" if head in ("mechanism", "pick", "fastest") else "right")
    for v in verdicts:
        measured = [f"{x:.4f}" for x in (v.predicted[v.picked], v.measured[v.picked], v.measured[v.best])]
        table.add_row(escape(v.mechanism), v.picked, *measured[:2], v.best, measured[2], f"{v.loss:.3f}")
    return table
