"""Run the jobs of a suite, with progress."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from linkwork_bench import measure, suites
from linkwork_bench.commands.show import STOPPED, terminal
from linkwork_bench.peers import Peers
from linkwork_bench.records import Results
from linkwork_bench.suites import Job, Settings


def run_jobs(
    jobs: Sequence[Job], peers: Peers, settings: Settings, results: Results, processor_time: bool = False
) -> bool:
    """Add the complete figures of every job to the results; False if ctrl-C ended it early."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with (
            measure.processor_time() if processor_time else nullcontext() as environment,
            Progress(*columns, console=terminal(), transient=True) as progress,
        ):
            settings = replace(settings, environment=environment)
            task = progress.add_task("", total=len(jobs) * settings.rounds)
            for k, job in enumerate(jobs):
                progress.update(task, description=job.title, completed=k * settings.rounds)
                results.add(suites.run(job, peers, settings, lambda: progress.advance(task)))
    except KeyboardInterrupt:
        terminal().print(STOPPED)
        return False
    return True
