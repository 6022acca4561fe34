"""`linkwork bench`: every method on one's own robot.

All other benchmarks come with the distribution linkwork-bench.

That distribution names its commands in the entry point group "linkwork.commands". It is imported when `linkwork bench`
is called, and not before; its `robot` takes the place of this one, with peers and reports.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.table import Table
from typer.core import TyperGroup

import linkwork as lw
from linkwork.algorithms import registry
from linkwork.cli.arguments import (
    BaseOption,
    ConnectOption,
    ContactOption,
    FileArg,
    ModelOption,
    constrained,
    load_robot,
    table_of,
    terminal,
)
from linkwork.errors import InputError, LinkworkError, UnsupportedError, not_found
from linkwork.functions.function import Function
from linkwork.model import Model
from linkwork.output_files import saved_text
from linkwork.planner.iterations import samples, settings
from linkwork.planner.stopwatch import timings
from linkwork.simulation.records.progress import bar

GROUP, NAME, DISTRIBUTION = "linkwork.commands", "bench", "linkwork-bench"
INSTALL = f"pip install {DISTRIBUTION} (in a clone: pip install ./benchmarks)"
ACCURACY = 1e-5
"""Relative error with which a method still counts as having solved a state."""


class Task(NamedTuple):
    """What is timed: its factory, the inputs of its functions, the dense method that checks results."""

    make: Callable[..., Function]
    inputs: tuple[str, ...]
    reference: str


TASKS = {
    "forward_dynamics": Task(lw.forward_dynamics, ("q", "v", "tau"), "kkt"),
    "delassus": Task(lw.delassus, ("q",), "dense"),
}


class Benchmarks(TyperGroup):
    """The commands of this file, and those of linkwork-bench where it is installed."""

    def list_commands(self, ctx: Any) -> list[str]:
        more = _installed()
        return list(dict.fromkeys([*super().list_commands(ctx), *(more.list_commands(ctx) if more else ())]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        more = _installed()
        found = (more and more.get_command(ctx, cmd_name)) or super().get_command(ctx, cmd_name)
        if found is None and more is None:
            raise UnsupportedError(f"`linkwork bench {cmd_name}` needs the package '{DISTRIBUTION}': {INSTALL}")
        return found


def _installed() -> Any:
    """The commands of linkwork-bench, or None where it is not installed."""
    return next((_loaded(entry) for entry in entry_points(group=GROUP, name=NAME)), None)


@cache
def _loaded(entry: EntryPoint) -> Any:
    try:
        return typer.main.get_command(entry.load())
    except Exception as problem:  # any error that its modules raise when imported
        raise UnsupportedError(
            f"the package '{DISTRIBUTION}' is installed but cannot be imported ({problem}): {INSTALL}, or uninstall it"
        ) from problem


bench_app = typer.Typer(
    cls=Benchmarks,
    help="How fast, and against what: every method on your own robot; with the package linkwork-bench also kernels, "
    "contacts, loops and papers beside Pinocchio and MuJoCo.",
    no_args_is_help=True,
)


@bench_app.callback()
def _bench() -> None:
    """A group even where `robot` is its only command."""


@dataclass(frozen=True)
class Timed:
    """A method on one model: operations, us per state alone and in a batch, largest relative error."""

    task: str
    method: str
    operations: int
    state: float
    batch: float
    error: float
    default: bool


@bench_app.command("robot")
def robot_command(
    file: FileArg,
    contact: ContactOption = None,
    connect: ConnectOption = None,
    base: BaseOption = None,
    one: ModelOption = None,
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="Methods; all that can handle it.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every figure to this file (JSON).")] = None,
) -> None:
    """Your robot with its contacts: operations and times of every method, and the default."""
    model = constrained(load_robot(file, base, one), contact, connect)
    console, found = terminal(), list[Timed]()
    for task, names in tasks(model, words(method)):
        rows, refused = compared(model, task, names)
        found += rows
        console.print(_table(model, task, rows))
        for name, why in refused.items():
            console.print(f"  {name}: {why}", style="dim", highlight=False)
    if json_file is not None:
        try:
            saved_text(json_file, json.dumps([asdict(row) for row in found], indent=2) + "\n")
        except OSError as problem:
            raise InputError(f"cannot write results to '{json_file}': {problem.strerror}") from None


def words(values: list[str] | None) -> list[str]:
    """The values of an option that may be repeated or have commas."""
    return [word for value in values or [] for word in value.split(",") if word]


def tasks(model: Model, methods: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Forward dynamics, and the Delassus matrix where all constraints are contacts."""
    known = {task: registry.methods(task) for task in TASKS}
    for name in methods:
        if not any(name in of for of in known.values()):
            raise not_found("method", name, dict.fromkeys(n for of in known.values() for n in of))
    contacts = all(sum(link > 0 for link in c.touches(model)) == 1 for c in model.constraints)
    for task, of in known.items():
        wanted = [name for name in methods if name in of]
        if (wanted or not methods) and (task != "delassus" or (model.rows and contacts)):
            yield task, able(task, model, wanted)


def able(task: str, model: Model, chosen: Sequence[str] = ()) -> list[str]:
    """The methods chosen that can handle the model, else all but references and operators."""
    known = registry.methods(task)
    for name in chosen:
        if name not in known:
            raise not_found(f"{task.replace('_', ' ')} method", name, known)
    wanted = chosen or [m.name for m in known.values() if not (m.reference or m.operator)]
    found = [name for name in known if name in wanted and known[name].refusal(model) is None]
    if not found:
        raise InputError(f"none of the methods asked for can handle '{model.name}' with {model.rows} rows")
    return found


def defaults(model: Model) -> dict[str, str]:
    """The default method of each task."""
    return {name: task.make(model).method for name, task in TASKS.items() if model.rows or name != "delassus"}


def compared(model: Model, task: str, names: Sequence[str]) -> tuple[list[Timed], dict[str, str]]:
    """The methods, fastest first, timed in turns on the same states; and why others were not timed."""
    given, made = samples(model), TASKS[task]
    if not given:
        raise InputError(f"no closed states of '{model.name}' were found to time methods on")
    functions = {name: made.make(model, method=name, threads=1) for name in names}
    states = [given[name] for name in made.inputs]
    reference = made.make(model, method=made.reference, backend="numpy")(*states)[0]
    errors, refused = dict[str, float](), dict[str, str]()
    with bar(None, "compiling", len(functions)) as advance:
        for done, (name, function) in enumerate(functions.items(), 1):
            try:
                off = relative_errors(function(*states)[0], reference)
            except LinkworkError as problem:
                refused[name] = f"not timed: {problem}"
                continue
            errors[name] = float(off.max())
            if not np.median(off) <= ACCURACY:
                refused[name] = f"not timed: wrong by {np.median(off):.1e} in the median state"
            advance(done)
    timed = [name for name in names if name not in refused]
    known = registry.methods(task)
    us = timings({n: (functions[n].program, {**given, **settings(known[n].prox)}) for n in timed})
    default = defaults(model)[task]
    rows = [
        Timed(task, n, functions[n].operations, us["state"][n], us["batch"][n], errors[n], n == default) for n in timed
    ]
    return sorted(rows, key=lambda row: row.state), refused


def relative_errors(x: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """By state: max |x - reference| / max(1, max |reference|)."""
    x, reference = (y.reshape(len(y), -1) for y in (x, reference))
    return np.asarray(np.abs(x - reference).max(axis=1, initial=0) / np.abs(reference).max(axis=1, initial=1.0))


def _table(model: Model, task: str, rows: Sequence[Timed]) -> Table:
    title = f"{model.name}: {task.replace('_', ' ')}, {model.nv} degrees of freedom, {model.rows} constraint rows"
    headings = ("method", "operations", "one state, us", "batch, us", "error", "")
    table = table_of(title, *headings, right=headings[1:5])
    for r in rows:
        mark = "default" if r.default else ""
        table.add_row(r.method, str(r.operations), f"{r.state:.3g}", f"{r.batch:.3g}", f"{r.error:.0e}", mark)
    return table
