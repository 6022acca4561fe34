"""Options that several commands share, and how they are read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from linkwork.errors import InputError
from linkwork_bench.commands.show import print_circumstances
from linkwork_bench.measure import Conditions, circumstances, cores
from linkwork_bench.suites import Settings

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
    Path | None, typer.Option("--json", help="Write every figure to this file (JSON lines), as soon as it is measured.")
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="Write a self-contained page with tables and plots.")]
MarkdownOption = Annotated[Path | None, typer.Option("--markdown", help="Write the tables as Markdown.")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Five short rounds, and of many methods those that the planner picks.")
]
RoundsOption = Annotated[int | None, typer.Option("--rounds", min=1, help="Rounds; default 11, quick 5.")]
CpuOption = Annotated[
    int | None, typer.Option("--cpu", help="The core for single-threaded loops; default: the last. -1: any.")
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="Threads; default: all cores.")]
ProcessorOption = Annotated[
    bool, typer.Option("--processor-time", help="Processor time instead of time, for busy machines (needs Linux, cc).")
]
CompileOption = Annotated[bool, typer.Option("--compile", help="Also compile times and the cost of calls from Python.")]


def settings_of(
    quick: bool,
    rounds: int | None = None,
    cpu: int | None = None,
    threads: int | None = None,
    compiling: bool = False,
) -> Settings:
    """How to measure, as the options say."""
    if cpu is not None and cpu >= 0 and cpu not in cores():
        raise InputError(f"--cpu {cpu}: this process may use the cores {cores()}")
    core = cores()[-1] if cpu is None else None if cpu < 0 else cpu
    return Settings(rounds or (5 if quick else 11), 0.005 if quick else 0.02, core, threads or len(cores()), compiling)


def clock(processor_time: bool) -> str:
    """The clock of the times, by its name in results."""
    return "processor time" if processor_time else "time"


@dataclass(frozen=True)
class Measuring:
    """How a suite is measured, and where its figures go: what the shared options say."""

    peers: list[Path]
    json: Path | None
    settings: Settings
    quick: bool
    processor_time: bool

    @property
    def conditions(self) -> Conditions:
        """The conditions of passes on one thread."""
        return Conditions(self.settings.cpu, 0.0, self.processor_time)

    def begun(self) -> dict[str, Any]:
        """The circumstances of the measurement, printed."""
        facts = {**circumstances(), "clock": clock(self.processor_time)}
        print_circumstances(facts)
        return facts


SHARED: dict[str, tuple[Any, Any]] = {
    "peers": (PeersOption, None),
    "json": (JsonOption, None),
    "quick": (QuickOption, False),
    "rounds": (RoundsOption, None),
    "cpu": (CpuOption, None),
    "threads": (ThreadsOption, None),
    "compiling": (CompileOption, False),
    "processor_time": (ProcessorOption, False),
}
"""The options of all suites, with their defaults."""


def measuring(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command whose argument `how` is made of the shared options, but for those named."""
    shared = {n: option for n, option in SHARED.items() if n not in without}

    def declared(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            how = {n: given.pop(n) for n in shared}
            peers, json, on_processor = how.pop("peers", None) or [], how.pop("json"), how.pop("processor_time")
            command(**given, how=Measuring(peers, json, settings_of(**how), how["quick"], on_processor))

        own, hints = inspect.signature(command).parameters, get_type_hints(command, include_extras=True)
        named = {n: (hints[n], p.default) for n, p in own.items() if n != "how"} | shared
        run.__annotations__ = {n: kind for n, (kind, _) in named.items()}
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                for n, (kind, default) in named.items()
            ]
        )
        return run

    return declared
