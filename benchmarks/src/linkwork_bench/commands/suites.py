"""`linkwork bench kernels | constrained | loops | chains | clusters | delassus`: suites beside the peers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from linkwork.cli.bench import words
from linkwork.errors import InputError
from linkwork_bench import clusters as geared
from linkwork_bench import measure, suites
from linkwork_bench.commands.options import (
    CasesOption,
    CompileOption,
    CpuOption,
    JsonOption,
    MethodsOption,
    PeersOption,
    ProcessorOption,
    QuickOption,
    RobotsOption,
    RoundsOption,
    ThreadsOption,
    clock,
    settings_of,
)
from linkwork_bench.commands.run import run_jobs
from linkwork_bench.commands.show import print_circumstances, print_peers, print_suite
from linkwork_bench.inputs import Robot
from linkwork_bench.loops import CASE, chain_robots, scenario_robots
from linkwork_bench.peers import find as find_peers
from linkwork_bench.records import Results
from linkwork_bench.suites import Job, Settings


def kernels(
    robots: RobotsOption = None,
    functions: Annotated[list[str] | None, typer.Option("--functions", "-f", help="Of rnea, crba, aba.")] = None,
    peers: PeersOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    threads: ThreadsOption = None,
    compiling: CompileOption = False,
    processor_time: ProcessorOption = False,
) -> None:
    """rnea, crba and aba: one state, batch on one thread, float32, all threads."""
    settings = settings_of(quick, rounds, cpu, threads, compiling)
    _run(
        "kernels",
        robots,
        suites.KERNEL_ROBOTS,
        lambda found: suites.kernel_jobs(found, words(functions)),
        peers,
        json,
        settings,
        processor_time,
    )


def constrained(
    robots: RobotsOption = None,
    cases: CasesOption = None,
    methods: MethodsOption = None,
    peers: PeersOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    threads: ThreadsOption = None,
    compiling: CompileOption = False,
    processor_time: ProcessorOption = False,
) -> None:
    """Forward dynamics with 0 to 4 contacts or closed loops: our methods against the fastest of theirs."""
    settings = settings_of(quick, rounds, cpu, threads, compiling)
    _run(
        "constrained",
        robots,
        suites.CONSTRAINED_ROBOTS,
        lambda found: suites.constrained_jobs(found, words(cases), words(methods)),
        peers,
        json,
        settings,
        processor_time,
    )


def loops(
    scenarios: Annotated[list[str] | None, typer.Option("--scenarios", "-s", help="Of robots.scenarios.")] = None,
    methods: MethodsOption = None,
    peers: PeersOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    threads: ThreadsOption = None,
    compiling: CompileOption = False,
    processor_time: ProcessorOption = False,
) -> None:
    """Closed loops: hands that hold a cube, Digit on its feet, two Digits with a box."""
    settings = settings_of(quick, rounds, cpu, threads, compiling)
    with tempfile.TemporaryDirectory() as folder:
        robots = scenario_robots(words(scenarios), find_peers(peers or []), Path(folder))
        _run(
            "loops",
            None,
            (),
            lambda _: suites.constrained_jobs(robots, [CASE], words(methods), "loops"),
            peers,
            json,
            settings,
            processor_time,
        )


def chains(
    links: Annotated[str, typer.Option(help="Numbers of links, comma-separated.")] = "30,100,300,1000",
    peers: PeersOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    processor_time: ProcessorOption = False,
) -> None:
    """Long chains: seconds to trace and compile their aba, and its speed."""
    settings = settings_of(quick, rounds, cpu, None, True)
    with tempfile.TemporaryDirectory() as folder:
        robots = chain_robots([_links(word) for word in links.split(",")], find_peers(peers or []), Path(folder))
        _run("chains", None, (), lambda _: suites.chain_jobs(robots, CASE), peers, json, settings, processor_time)


def clusters(
    robots: RobotsOption = None,
    peers: PeersOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    processor_time: ProcessorOption = False,
) -> None:
    """Gears, belts, differentials: cluster methods beside projection, and exact rotors beside Pinocchio without."""
    settings, found = settings_of(quick, rounds, cpu, None, False), find_peers(peers or [])
    with tempfile.TemporaryDirectory() as folder:
        jobs = geared.jobs(words(robots), found, Path(folder), quick)
        _run(geared.SUITE, None, (), lambda _: jobs, peers, json, settings, processor_time)


def delassus(
    robots: RobotsOption = None,
    cases: CasesOption = None,
    methods: MethodsOption = None,
    peers: PeersOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    threads: ThreadsOption = None,
    compiling: CompileOption = False,
    processor_time: ProcessorOption = False,
) -> None:
    """The Delassus matrix J M^-1 J^T (inverse operational-space inertia) by all methods."""
    settings = settings_of(quick, rounds, cpu, threads, compiling)
    _run(
        "delassus",
        robots,
        suites.CONSTRAINED_ROBOTS,
        lambda found: suites.delassus_jobs(found, words(cases), words(methods)),
        peers,
        json,
        settings,
        processor_time,
    )


def _links(word: str) -> int:
    if not word.isdigit() or not int(word):
        raise typer.BadParameter(f"'{word}' is not a number of links", param_hint="--links")
    return int(word)


def _run(
    suite: str,
    names: list[str] | None,
    default: tuple[str, ...],
    jobs_of: Callable[[list[Robot]], list[Job]],
    folders: list[Path] | None,
    file: Path | None,
    settings: Settings,
    in_processor_time: bool,
) -> None:
    """Measure all jobs of a suite, with progress; ctrl-C ends it early and keeps complete figures."""
    found = find_peers(folders or [])
    jobs = jobs_of(suites.find_robots(words(names), found, default))
    if not jobs:
        raise InputError(
            "no robot to measure: give the harness's build folders with --peers, install the package "
            "example-robot-data, or name robot files with --robots"
        )
    results = Results({**measure.circumstances(), "clock": clock(in_processor_time)}, file=file)
    print_circumstances(results.circumstances)
    print_peers(found)
    complete = run_jobs(jobs, found, settings, results, in_processor_time)
    print_suite(suite, results.records)
    if not complete:
        raise typer.Exit(130)
