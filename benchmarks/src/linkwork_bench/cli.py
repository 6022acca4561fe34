"""linkwork bench: how fast, against what."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkwork_bench.calls import calls_command
from linkwork_bench.papers.cli import HtmlOption, MarkdownOption, papers_command, show_papers, write_reports
from linkwork_bench.robot import SUITE as ROBOT
from linkwork_bench.robot import robot_command, show_robot

if TYPE_CHECKING:
    from rich.console import Console

    from linkwork_bench.inputs import Robot
    from linkwork_bench.peers import Peers
    from linkwork_bench.records import Record
    from linkwork_bench.suites import Job, Settings

bench_app = typer.Typer(
    help="Our kernels beside Pinocchio and MuJoCo: same robots, same states, one run.\n\n"
    "The peers are measured in C++ through their harness if its build folders are given (--peers, or LINKWORK_PEERS): "
    "one compiled for this machine, one like pip's wheel. Otherwise through Pinocchio's Python bindings, if installed. "
    "Everything is checked against reference accelerations before it is timed; contenders run in turns.",
    no_args_is_help=True,
)

bench_app.command("calls")(calls_command)
bench_app.command("papers")(papers_command)
bench_app.command("robot")(robot_command)

RobotsOption = Annotated[
    list[str] | None, typer.Option("--robots", "-r", help="Robots, comma-separated; default: the usual set.")
]
CasesOption = Annotated[
    list[str] | None, typer.Option("--cases", help="Constraint cases such as none, 2x3D, 4x6D; default: all.")
]
MethodsOption = Annotated[
    list[str] | None, typer.Option("--methods", "-m", help="Our methods; default: all that can handle the case.")
]
PeersOption = Annotated[
    list[Path] | None, typer.Option("--peers", help="A build folder of the peers' harness; repeat for more.")
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", help="Write every figure to this file (JSON lines), as soon as it is known.")
]
QuickOption = Annotated[bool, typer.Option("--quick", help="Five short rounds: a first impression.")]
RoundsOption = Annotated[int | None, typer.Option("--rounds", min=1, help="Rounds; default 11, quick 5.")]
CpuOption = Annotated[
    int | None, typer.Option("--cpu", help="The core for single-threaded loops; default: the last. -1: any.")
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="Threads; default: all cores.")]
ProcessorOption = Annotated[
    bool, typer.Option("--processor-time", help="Processor time instead of time, for busy machines (needs Linux, cc).")
]
CompileOption = Annotated[bool, typer.Option("--compile", help="Also compile times and the cost of calls from Python.")]


@bench_app.command()
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
    from linkwork_bench import suites

    settings = _settings(quick, rounds, cpu, threads, compiling)
    _run(
        "kernels",
        robots,
        suites.KERNEL_ROBOTS,
        lambda found: suites.kernel_jobs(found, _words(functions)),
        peers,
        json,
        settings,
        processor_time,
    )


@bench_app.command()
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
    from linkwork_bench import suites

    settings = _settings(quick, rounds, cpu, threads, compiling)
    _run(
        "constrained",
        robots,
        suites.CONSTRAINED_ROBOTS,
        lambda found: suites.constrained_jobs(found, _words(cases), _words(methods)),
        peers,
        json,
        settings,
        processor_time,
    )


@bench_app.command()
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
    import tempfile

    from linkwork_bench import peers as others
    from linkwork_bench import suites
    from linkwork_bench.loops import CASE, scenario_robots

    settings = _settings(quick, rounds, cpu, threads, compiling)
    with tempfile.TemporaryDirectory() as folder:
        robots = scenario_robots(_words(scenarios), others.find(peers or []), Path(folder))
        _run(
            "loops",
            None,
            (),
            lambda _: suites.constrained_jobs(robots, [CASE], _words(methods), "loops"),
            peers,
            json,
            settings,
            processor_time,
        )


@bench_app.command()
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
    import tempfile

    from linkwork_bench import peers as others
    from linkwork_bench import suites
    from linkwork_bench.loops import CASE, chain_robots

    settings = _settings(quick, rounds, cpu, None, True)
    with tempfile.TemporaryDirectory() as folder:
        robots = chain_robots([_links(word) for word in links.split(",")], others.find(peers or []), Path(folder))
        _run("chains", None, (), lambda _: suites.chain_jobs(robots, CASE), peers, json, settings, processor_time)


def _links(word: str) -> int:
    if not word.isdigit() or not int(word):
        raise typer.BadParameter(f"'{word}' is not a number of links", param_hint="--links")
    return int(word)


@bench_app.command()
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
    import tempfile

    from linkwork_bench import clusters as suite
    from linkwork_bench import peers as others

    settings, found = _settings(quick, rounds, cpu, None, False), others.find(peers or [])
    with tempfile.TemporaryDirectory() as folder:
        jobs = suite.jobs(_words(robots), found, Path(folder), quick)
        _run(suite.SUITE, None, (), lambda _: jobs, peers, json, settings, processor_time)


@bench_app.command()
def planner(
    mechanisms: Annotated[
        list[str] | None, typer.Option("--mechanisms", help="Parts of names; default: every mechanism at hand.")
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
    """Is the planner's pick the quickest? Predicted and measured times of every method that comes near."""
    import json as text

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from linkwork.errors import InputError
    from linkwork.simulation.progress import bar
    from linkwork_bench import planning

    wanted = _words(mechanisms)
    chosen = [
        (n, m) for n, m in planning.mechanisms() if m.nv <= largest and (not wanted or any(w in n for w in wanted))
    ]
    trials: list[planning.Trial] = []

    def save() -> None:
        """What is known so far."""
        if json is not None:
            found = (t.verdict for t in trials if t.took)
            try:
                json.write_text("".join(text.dumps({**asdict(v), "loss": v.loss}) + "\n" for v in found))
            except OSError as problem:
                raise InputError(f"cannot write results to '{json}': {problem.strerror}") from None

    save()
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
                save()
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped: what was measured is shown")
    verdicts = [t.verdict for t in trials if t.took]
    table = Table(title=f"the planner's picks for use '{use}': predicted and measured us per state")
    for head in ("mechanism", "pick", "predicted", "measured", "quickest", "measured", "loss"):
        table.add_column(head, justify="left" if head in ("mechanism", "pick", "quickest") else "right")
    for v in verdicts:
        table.add_row(
            escape(v.mechanism),
            v.picked,
            f"{v.predicted[v.picked]:.4f}",
            f"{v.measured[v.picked]:.4f}",
            v.best,
            f"{v.measured[v.best]:.4f}",
            f"{v.loss:.3f}",
        )
    console = Console()
    console.print(table)
    for what, value in (planning.summary(verdicts) if verdicts else {}).items():
        console.print(f"{what}: {value:.3g}", highlight=False)


@bench_app.command()
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
    from linkwork_bench import suites

    settings = _settings(quick, rounds, cpu, threads, compiling)
    _run(
        "delassus",
        robots,
        suites.CONSTRAINED_ROBOTS,
        lambda found: suites.delassus_jobs(found, _words(cases), _words(methods)),
        peers,
        json,
        settings,
        processor_time,
    )


@bench_app.command()
def rollout(
    robots: RobotsOption = None,
    methods: MethodsOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    processor_time: Annotated[
        bool, typer.Option("--processor-time", help="Processor time instead of time, for busy machines.")
    ] = False,
) -> None:
    """Steps per second of rollouts: over their bare dynamics, and against MuJoCo's mj_step (one thread)."""
    from linkwork.errors import not_found
    from linkwork_bench import rollouts
    from linkwork_bench.measure import Conditions, circumstances

    settings = _settings(quick, rounds, cpu, 1, False)
    conditions = Conditions(settings.cpu, 0.0, processor_time)
    facts = {**circumstances(), "clock": "processor time" if processor_time else "time"}
    _print_circumstances(facts)
    found = []
    for name in (wanted := _words(robots) or rollouts.ROBOTS):
        if name not in rollouts.METHODS:
            raise not_found("robot for rollouts", name, rollouts.ROBOTS)
    for name in wanted:
        for method in _words(methods) or rollouts.METHODS[name]:
            found.append(rollouts.measured(name, method, settings.rounds, settings.budget, conditions))
            rollouts.save(json, facts, found)
    _console().print(rollouts.table(found))
    _console().print(rollouts.MORE, highlight=False)


@bench_app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A file that --json wrote.")],
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
) -> None:
    """Print the tables of an earlier run, or write them as a page."""
    from linkwork_bench.papers.experiment import SUITE
    from linkwork_bench.records import read

    results = read(file)
    if html is None and markdown is None:
        _print_circumstances(results.circumstances)
        for suite in dict.fromkeys(r.suite for r in results.records):
            if suite == SUITE:
                show_papers(results)
            elif suite == ROBOT:
                show_robot(results)
            else:
                _print_tables(suite, [r for r in results.records if r.suite == suite])
    write_reports(results, html, markdown)


@bench_app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="A file that --json wrote.")],
    after: Annotated[Path, typer.Argument(help="Another, usually later.")],
    all_figures: Annotated[bool, typer.Option("--all", help="Also what did not change for certain.")] = False,
) -> None:
    """Put two runs side by side: what became faster, what slower."""
    from linkwork_bench import records
    from linkwork_bench.measure import geometric_mean
    from linkwork_bench.tables import changes_table

    first, second = records.read(before), records.read(after)
    for results in (first, second):
        _print_circumstances(results.circumstances)
    changes = records.compare(first, second)
    if not changes:
        _console().print("the two runs have no figure in common")
        raise typer.Exit(1)
    shown = [c for c in changes if all_figures or c.certain]
    _console().print(changes_table(shown))
    for who, group in (
        ("ours", [c for c in changes if c.key[4] == "ours"]),
        ("peers", [c for c in changes if c.key[4] != "ours"]),
    ):
        if group:
            mean = geometric_mean([c.ratio for c in group])
            certain = sum(c.certain for c in group)
            _console().print(f"{who}: {len(group)} figures, {certain} changed for certain, geometric mean {mean:.3f} x")


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
    """Measure all jobs of a suite, with progress; ctrl-C ends it early and keeps what is there."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from linkwork.errors import InputError
    from linkwork_bench import peers as others
    from linkwork_bench import suites
    from linkwork_bench.measure import circumstances, processor_time
    from linkwork_bench.records import Results

    found = others.find(folders or [])
    jobs = jobs_of(suites.find_robots(_words(names), found, default))
    if not jobs:
        raise InputError(
            "no robot to measure: give the harness's build folders with --peers, install the package "
            "example-robot-data, or name robot files with --robots"
        )
    results = Results({**circumstances(), "clock": "processor time" if in_processor_time else "time"}, file=file)
    _print_circumstances(results.circumstances)
    _say_peers(found)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    interrupted = False
    try:
        with (
            processor_time() if in_processor_time else nullcontext() as environment,
            Progress(*columns, console=_console(), transient=True) as progress,
        ):
            settings = replace(settings, environment=environment)
            task = progress.add_task(suite, total=len(jobs) * settings.rounds)
            for k, job in enumerate(jobs):
                progress.update(task, description=job.title, completed=k * settings.rounds)
                results.add(suites.run(job, found, settings, lambda: progress.advance(task)))
    except KeyboardInterrupt:
        interrupted = True
        _console().print("[yellow]stopped: these are the figures that were complete[/]")
    _print_tables(suite, results.records)
    if interrupted:
        raise typer.Exit(130)


def _settings(quick: bool, rounds: int | None, cpu: int | None, threads: int | None, compiling: bool) -> Settings:
    from linkwork.errors import InputError
    from linkwork_bench.measure import cores
    from linkwork_bench.suites import Settings

    if cpu is not None and cpu >= 0 and cpu not in cores():
        raise InputError(f"--cpu {cpu}: this process may use the cores {cores()}")
    core = cores()[-1] if cpu is None else None if cpu < 0 else cpu
    return Settings(rounds or (5 if quick else 11), 0.005 if quick else 0.02, core, threads or len(cores()), compiling)


def _words(values: list[str] | None) -> list[str]:
    return [word for value in values or [] for word in value.split(",") if word]


def _print_tables(suite: str, records: list[Record]) -> None:
    from linkwork_bench import clusters
    from linkwork_bench.tables import table

    if records:
        _console().print(clusters.table(records) if suite == clusters.SUITE else table(suite, records))


def _title(suite: str) -> str:
    """The suite whose tables show these records."""
    from linkwork_bench.clusters import GROWTH, SUITE

    return SUITE if suite == GROWTH else suite


def _print_circumstances(facts: dict[str, Any]) -> None:
    versions = ", ".join(f"{k} {v}" for k, v in facts.get("versions", {}).items())
    machine = f"{facts.get('cpu')}, {facts.get('cores')} cores, governor {facts.get('governor')}"
    _console().print(
        f"{facts.get('date')}  {machine}, load {facts.get('load')}, in {facts.get('clock')}; {versions}",
        highlight=False,
    )


def _say_peers(found: Peers) -> None:
    from rich.markup import escape

    if found.note:
        _console().print(f"[yellow]{escape(found.note)}[/]", highlight=False)


def _console() -> Console:
    from rich.console import Console

    console = Console()
    # files and pipes get whole rows
    return console if console.is_terminal else Console(width=240)
