"""`linkwork plan`: which algorithm for this robot, and why."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

import linkwork as lw
from linkwork.cli.arguments import (
    BaseOption,
    ConnectOption,
    ContactOption,
    JsonOption,
    ModelOption,
    constrained,
    load_robot,
    print_json,
    table_of,
    terminal,
)
from linkwork.errors import InputError
from linkwork.planner.plan import Plan

console = terminal()


def plan_command(
    file: Annotated[str | None, typer.Argument(help="A robot file or an installed robot's name.")] = None,
    base: BaseOption = None,
    one: ModelOption = None,
    contact: ContactOption = None,
    connect: ConnectOption = None,
    task: Annotated[str, typer.Option(help="forward_dynamics or delassus.")] = "forward_dynamics",
    use: Annotated[str, typer.Option(help="state (one at a time) or batch.")] = "state",
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Promise that rows are never redundant and postures never singular: direct methods "
            "and clusters of linkages count too.",
        ),
    ] = False,
    modes: Annotated[bool, typer.Option("--modes", help="Constraints are switched at run time.")] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Compile and time the methods predicted within 1.6 times of the fastest; the fastest is used from "
            "then on where no method is named.",
        ),
    ] = False,
    cuts: Annotated[
        bool, typer.Option("--cuts", help="Search the joints of the file's loops for those to cut, too.")
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Measure some twenty kernels on this machine first (a minute or two), and predict with what "
            "operations cost on it from then on.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Which algorithm for this robot, and why: exact operation counts and predicted times of all of them."""
    if calibrate:
        _calibrate()
    if file is None:
        if calibrate:
            return
        raise InputError("a robot file or name is needed, or --calibrate")
    cut = _best_cuts(file, base, one, use, independent) if cuts else ()
    model = constrained(load_robot(file, base, one, cut), contact, connect)
    made = lw.plan(model, task, use=use, independent=independent, modes=modes, measure=measure)
    if as_json:
        print_json({"method": made.method, **made.to_data()})
        return
    console.print(_table(made))
    for c in made.candidates:
        if c.reason:
            console.print(f"  {c.method}: {c.reason}", style="dim", highlight=False)
    if made.decisions and (treatment := made.decisions.explain()):
        console.print(treatment, highlight=False)


def _calibrate() -> None:
    """Fit the costs of this machine, and use them from now on."""
    from linkwork.planner.calibration import SAMPLES, calibrate
    from linkwork.planner.cost import save_machine
    from linkwork.simulation.records.progress import bar

    with bar(None, "measuring kernels", len(SAMPLES)) as tick:
        fitted, off = calibrate(lambda model, method: lw.forward_dynamics(model, method=method).program, tick)
    save_machine(fitted)
    console.print(
        f"fitted to this machine: predictions are off by {100 * off:.0f} % (root mean square)", highlight=False
    )


def _best_cuts(file: str, base: str | None, one: str | None, use: str, independent: bool) -> tuple[str, ...]:
    """The joints to cut; what that gains is printed."""
    found = lw.best_cuts(file, base=base, model=one, use=use, independent=independent)
    where = "it is cut without this"
    if not found.joints:
        gain = "there are no loops to cut"
    elif found.us < found.rule:
        gain = f"cut={list(found.joints)}: {100 * (1 - found.us / found.rule):.0f} % faster than where {where}"
    else:
        gain = f"cut={list(found.joints)}: where {where}, nothing is faster"
    console.print(gain, highlight=False)
    return found.joints


def _table(made: Plan) -> Table:
    rows = made.table()
    table = table_of(made.title, *rows[0], right=[heading for heading in rows[0] if heading != "method"])
    for row in rows:
        table.add_row(*row.values())
    return table
