"""Options that several commands share, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkwork.errors import InputError
from linkwork_bench.measure import cores
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
QuickOption = Annotated[bool, typer.Option("--quick", help="Five short rounds, for a rough estimate.")]
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
