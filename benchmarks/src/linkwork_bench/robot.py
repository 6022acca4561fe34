"""`linkwork bench robot`: all methods on the user's own robot, with the contacts and loops it has today."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkwork.cli.arguments import BaseOption, ConnectOption, ContactOption, FileArg, constrained, load_robot
from linkwork_bench.papers.cli import HtmlOption, MarkdownOption, write_reports

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork_bench.inputs import Robot
    from linkwork_bench.peers import Peers
    from linkwork_bench.records import Results
    from linkwork_bench.suites import Job

SUITE, CASE, STATES = "robot", "loops", 64


def robot_command(
    file: FileArg,
    contact: ContactOption = None,
    connect: ConnectOption = None,
    base: BaseOption = None,
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="Methods; all that can handle it.")] = None,
    peers: Annotated[list[Path] | None, typer.Option("--peers", help="A build folder of the peers' harness.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write every figure to this file (JSON lines).")] = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Five short rounds: a first impression.")] = False,
    cpu: Annotated[int | None, typer.Option("--cpu", help="The core for timing; default: the last. -1: any.")] = None,
) -> None:
    """Your robot with its contacts: every method's operations, times for one state and in a batch, and the default."""
    from rich.progress import Progress

    from linkwork_bench import cli, suites
    from linkwork_bench import peers as others
    from linkwork_bench.measure import circumstances
    from linkwork_bench.records import Results

    model = constrained(load_robot(file, base), contact, connect)
    found = others.find(peers or [])
    settings = cli._settings(quick, None, cpu, None, False)
    facts = {**circumstances(), "clock": "time", "robot": model.name, "default": defaults(model)}
    results = Results(facts, file=json)
    cli._print_circumstances(results.circumstances)
    cli._say_peers(found)
    stopped = False
    try:
        with tempfile.TemporaryDirectory() as folder, Progress(console=cli._console(), transient=True) as progress:
            jobs = robot_jobs(model, cli._words(method), found, Path(folder))
            task = progress.add_task(model.name, total=len(jobs) * settings.rounds)
            for k, job in enumerate(jobs):
                progress.update(task, description=job.title, completed=k * settings.rounds)
                results.add(suites.run(job, found, settings, lambda: progress.advance(task)))
    except KeyboardInterrupt:
        stopped = True
        cli._console().print("[yellow]stopped: these are the figures that were complete[/]")
    show_robot(results)
    write_reports(results, html, markdown)
    if stopped:
        raise typer.Exit(130)


def robot_jobs(model: Model, methods: Sequence[str], peers: Peers, folder: Path) -> list[Job]:
    """Forward dynamics by all methods that can handle the model; its Delassus matrix if it has contacts only."""
    from linkwork.algorithms import registry
    from linkwork.errors import not_found
    from linkwork_bench import suites

    known = list(dict.fromkeys(n for task in ("forward_dynamics", "delassus") for n in registry.methods(task)))
    for name in methods:
        if name not in known:
            raise not_found("method", name, known)
    robot = as_robot(model, peers, folder)
    jobs = []
    for make, task in ((suites.constrained_jobs, "forward_dynamics"), (suites.delassus_jobs, "delassus")):
        here = registry.methods(task)
        wanted = [n for n in methods if n in here]
        if methods and not wanted:
            continue
        if task == "delassus" and any(not _on_one_link(model, k) for k in range(len(model.constraints))):
            continue
        jobs += [replace(job, suite=SUITE) for job in make([robot], [CASE], wanted)]
    return jobs


def defaults(model: Model) -> dict[str, str]:
    """The methods that Linkwork takes by itself."""
    import linkwork as lw

    made = {"forward_dynamics": lw.forward_dynamics(model).method}
    return {**made, "delassus": lw.delassus(model).method} if model.rows else made


def as_robot(model: Model, peers: Peers, folder: Path) -> Robot:
    """The model with states to run it on, in a form that the harness reads if there is one and it can."""
    import numpy as np

    from linkwork.errors import UnsupportedError
    from linkwork_bench.inputs import Robot
    from linkwork_bench.loops import harness_robot
    from linkwork_bench.papers.experiment import random_states

    states = random_states(model, STATES)
    q, v, tau = (states[k] for k in ("q", "v", "tau"))
    if peers.builds:
        try:
            name = "".join(x if x.isalnum() else "_" for x in model.name) or "robot"
            return harness_robot(name, model, np.hstack([q, v, tau]), peers, folder)
        except UnsupportedError:
            pass
    return Robot(model.name, model.without_constraints(), {CASE: tuple(model.constraints)}, q, v, tau)


def show_robot(results: Results) -> None:
    """The methods in the terminal, best first, and what is the default."""
    from linkwork_bench.cli import _console
    from linkwork_bench.papers.cli import print_sheet
    from linkwork_bench.report.build import robot_sections

    for section in robot_sections(results):
        for sheet in section.sheets:
            print_sheet(section.title, sheet)
        for text in [*section.text, *section.notes]:
            _console().print(text, highlight=False, markup=False)


def _on_one_link(model: Model, k: int) -> bool:
    return sum(link > 0 for link in model.constraints[k].touches(model)) == 1
