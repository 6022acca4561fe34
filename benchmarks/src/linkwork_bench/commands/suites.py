"""`linkwork bench kernels | constrained | loops | chains | clusters | delassus`.

Suites beside the peers.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from linkwork.cli.bench import words
from linkwork.errors import InputError
from linkwork_bench import clusters as geared
from linkwork_bench import inputs, measure, suites
from linkwork_bench.commands.options import CasesOption, Measuring, MethodsOption, RobotsOption, clock, measuring
from linkwork_bench.commands.run import run_jobs
from linkwork_bench.commands.show import print_circumstances, print_peers, print_suite
from linkwork_bench.inputs import Robot
from linkwork_bench.loops import CASE, FEW_STATES, STATES, chain_robots, scenario_robots
from linkwork_bench.peers import find as find_peers
from linkwork_bench.records import Results
from linkwork_bench.suites import Job


@measuring()
def kernels(
    robots: RobotsOption = None,
    functions: Annotated[list[str] | None, typer.Option("--functions", "-f", help="Of rnea, crba, aba.")] = None,
    *,
    how: Measuring,
) -> None:
    """rnea, crba and aba: one state, batch on one thread, float32, all threads."""
    found = _robots(robots, suites.KERNEL_ROBOTS, how)
    _run("kernels", suites.kernel_jobs(found, words(functions)), how)


@measuring()
def constrained(
    robots: RobotsOption = None, cases: CasesOption = None, methods: MethodsOption = None, *, how: Measuring
) -> None:
    """Forward dynamics with 0 to 4 contacts or closed loops: our methods against the fastest of theirs."""
    found = _robots(robots, suites.CONSTRAINED_ROBOTS, how)
    _run("constrained", suites.constrained_jobs(found, words(cases), words(methods), quick=how.quick), how)


@measuring()
def loops(
    scenarios: Annotated[list[str] | None, typer.Option("--scenarios", "-s", help="Of robots.scenarios.")] = None,
    methods: MethodsOption = None,
    *,
    how: Measuring,
) -> None:
    """Closed loops: hands that hold a cube, Digit on its feet, two Digits with a box."""
    with tempfile.TemporaryDirectory() as folder:
        count = FEW_STATES if how.quick else STATES
        robots = scenario_robots(words(scenarios), find_peers(how.peers), Path(folder), count)
        _run("loops", suites.constrained_jobs(robots, [CASE], words(methods), "loops", how.quick), how)


@measuring("threads", "compiling")
def chains(
    links: Annotated[str, typer.Option(help="Numbers of links, comma-separated.")] = "30,100,300,1000",
    *,
    how: Measuring,
) -> None:
    """Long chains: seconds to trace and compile their aba, and its speed."""
    with tempfile.TemporaryDirectory() as folder:
        robots = chain_robots([_links(word) for word in links.split(",")], find_peers(how.peers), Path(folder))
        timed = replace(how, settings=replace(how.settings, compile=True))
        _run("chains", suites.chain_jobs(robots, CASE), timed)


@measuring("threads", "compiling")
def clusters(robots: RobotsOption = None, *, how: Measuring) -> None:
    """Gears, belts, differentials: cluster methods beside projection, exact rotors beside Pinocchio."""
    with tempfile.TemporaryDirectory() as folder:
        _run(geared.SUITE, geared.jobs(words(robots), find_peers(how.peers), Path(folder), how.quick), how)


@measuring()
def delassus(
    robots: RobotsOption = None, cases: CasesOption = None, methods: MethodsOption = None, *, how: Measuring
) -> None:
    """The Delassus matrix J M^-1 J^T (inverse operational-space inertia) by all methods."""
    found = _robots(robots, suites.CONSTRAINED_ROBOTS, how)
    _run("delassus", suites.delassus_jobs(found, words(cases), words(methods), how.quick), how)


def _links(word: str) -> int:
    if not word.isdigit() or not int(word):
        raise typer.BadParameter(f"'{word}' is not a number of links", param_hint="--links")
    return int(word)


def _robots(names: list[str] | None, default: tuple[str, ...], how: Measuring) -> list[Robot]:
    states = inputs.FEW_STATES if how.quick else inputs.STATES  # each is solved by dense algebra in NumPy first
    return suites.find_robots(words(names), find_peers(how.peers), default, states)


def _run(suite: str, jobs: list[Job], how: Measuring) -> None:
    """Measure all jobs of a suite, with progress; ctrl-C ends it early and keeps complete figures."""
    found = find_peers(how.peers)
    if not jobs:
        raise InputError(
            "no robot to measure: give the harness's build folders with --peers, install the package "
            "example-robot-data, or name robot files with --robots"
        )
    results = Results({**measure.circumstances(), "clock": clock(how.processor_time)}, file=how.json)
    print_circumstances(results.circumstances)
    print_peers(found)
    complete = run_jobs(jobs, found, how.settings, results, how.processor_time)
    print_suite(suite, results.records)
    if not complete:
        raise typer.Exit(130)
