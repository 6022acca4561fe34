"""`linkwork bench robot`: all methods on the user's own robot and the peers, as tables and reports."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from linkwork.cli.arguments import BaseOption, ConnectOption, ContactOption, FileArg, constrained, load_robot
from linkwork.cli.bench import defaults, tasks, words
from linkwork.errors import UnsupportedError
from linkwork.model import Model
from linkwork_bench import suites
from linkwork_bench.commands.options import (
    CpuOption,
    HtmlOption,
    JsonOption,
    MarkdownOption,
    PeersOption,
    QuickOption,
    clock,
    settings_of,
)
from linkwork_bench.commands.run import run_jobs
from linkwork_bench.commands.show import print_circumstances, print_peers, print_robot, write_reports
from linkwork_bench.inputs import Robot
from linkwork_bench.loops import CASE, harness_robot
from linkwork_bench.measure import circumstances
from linkwork_bench.papers.experiment import random_states
from linkwork_bench.peers import Peers
from linkwork_bench.peers import find as find_peers
from linkwork_bench.records import Results
from linkwork_bench.report.robot import SUITE

STATES = 64
Jobs = Callable[[Sequence[Robot], Sequence[str], Sequence[str]], list[suites.Job]]
JOBS: dict[str, Jobs] = {"forward_dynamics": suites.constrained_jobs, "delassus": suites.delassus_jobs}


def robot(
    file: FileArg,
    contact: ContactOption = None,
    connect: ConnectOption = None,
    base: BaseOption = None,
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="Methods; all that can handle it.")] = None,
    peers: PeersOption = None,
    json: JsonOption = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    quick: QuickOption = False,
    cpu: CpuOption = None,
) -> None:
    """Your robot with its contacts: operations and times of every method, and the default."""
    model = constrained(load_robot(file, base), contact, connect)
    found = find_peers(peers or [])
    facts = {**circumstances(), "clock": clock(False), "robot": model.name, "default": defaults(model)}
    results = Results(facts, file=json)
    print_circumstances(results.circumstances)
    print_peers(found)
    with tempfile.TemporaryDirectory() as folder:
        jobs = robot_jobs(model, words(method), found, Path(folder))
        complete = run_jobs(jobs, found, settings_of(quick, cpu=cpu), results)
    print_robot(results)
    write_reports(results, html, markdown)
    if not complete:
        raise typer.Exit(130)


def robot_jobs(model: Model, methods: Sequence[str], peers: Peers, folder: Path) -> list[suites.Job]:
    """Forward dynamics by all methods that can handle the model.

    Its Delassus matrix if it has contacts only.
    """
    wanted = list(tasks(model, methods))
    made = as_robot(model, peers, folder)
    return [replace(job, suite=SUITE) for task, names in wanted for job in JOBS[task]([made], [CASE], names)]


def as_robot(model: Model, peers: Peers, folder: Path) -> Robot:
    """The model with states to run it on, in a form that the harness reads if there is one and it can."""
    states = random_states(model, STATES)
    q, v, tau = (states[k] for k in ("q", "v", "tau"))
    if peers.builds:
        try:
            name = "".join(x if x.isalnum() else "_" for x in model.name) or "robot"
            return harness_robot(name, model, np.hstack([q, v, tau]), peers, folder)
        except UnsupportedError:
            pass
    return Robot(model.name, model.without_constraints(), {CASE: tuple(model.constraints)}, q, v, tau)
