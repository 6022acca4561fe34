"""`linkwork simulate`: simulate a robot and record its motion."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import linkwork as lw
from linkwork.checks import NOT_NEGATIVE
from linkwork.cli.arguments import (
    BaseOption,
    ConnectOption,
    ContactOption,
    FileArg,
    JsonOption,
    ModelOption,
    constrained,
    load_robot,
    numbers,
    print_json,
    printable,
    table_of,
    terminal,
)
from linkwork.cli.view import show
from linkwork.model import Model
from linkwork.output_files import saved, written
from linkwork.simulation.records.trajectory import check_suffix


def simulate_command(
    file: FileArg,
    base: BaseOption = None,
    one: ModelOption = None,
    contact: ContactOption = None,
    connect: ConnectOption = None,
    duration: Annotated[float, typer.Option(help="Seconds to simulate.")] = 2.0,
    dt: Annotated[float, typer.Option(help="Seconds per step.")] = 1e-3,
    integrator: Annotated[str, typer.Option(help="semi_implicit, rk4, midpoint, dormand_prince")] = "semi_implicit",
    method: Annotated[str | None, typer.Option(help="A forward dynamics method; default: Linkwork's choice.")] = None,
    q: Annotated[str | None, typer.Option(help="Initial configuration, comma-separated (quaternions x,y,z,w).")] = None,
    v: Annotated[str | None, typer.Option(help="Initial velocity, comma-separated.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="A random initial state with all loops closed.")] = None,
    kp: Annotated[float, typer.Option(help="Stiffness that holds actuated joints where they start.")] = 0.0,
    kd: Annotated[float, typer.Option(help="Damping of actuated joints.")] = 0.0,
    ground: Annotated[float | None, typer.Option(help="Height of the ground plane; contacts are unilateral.")] = None,
    restitution: Annotated[float, typer.Option(help="Restitution of contacts: 0 inelastic, 1 elastic.")] = 0.0,
    stabilise: Annotated[bool, typer.Option("--stabilise", help="Let errors of constraints decay.")] = False,
    project: Annotated[bool, typer.Option("--project", help="Remove errors of constraints after each step.")] = False,
    every: Annotated[int, typer.Option(help="Record every so many steps.")] = 1,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write .csv, .npz or .parquet.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a figure (.png, .pdf, .svg).")] = None,
    view: Annotated[bool, typer.Option("--view", help="Replay it in the browser; Ctrl-C ends.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the replay as one HTML file that opens offline.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a robot from its neutral configuration (loops closed), a given or a random state."""
    _check_outputs(output, plot, view)
    model = constrained(load_robot(file, base, one), contact, connect)
    q0, v0 = _start(model, q, v, seed)
    started = time.perf_counter()
    run = lw.simulate(
        model,
        q0,
        v0,
        _holding(model, q0, kp, kd),
        dt=dt,
        duration=duration,
        integrator=integrator,
        method=method,
        stabilisation=stabilise,
        projection=project,
        ground=ground,
        restitution=restitution,
        every=every,
    )
    seconds = time.perf_counter() - started
    if output is not None:
        run.save(output)
    if plot is not None:
        figure = run.plot()
        written(plot, lambda: saved(plot, figure.savefig))
    error = lw.constraint_error(model, backend="numpy")
    held = np.concatenate(
        [np.full(c.rows, ground is None or 0 not in c.touches(model)) for c in model.constraints]
        or [np.zeros(0, dtype=bool)]
    )
    gap = max(
        (
            float(np.abs(error(x, y).phi[held]).max(initial=0))
            for x, y in zip(run.q[:: max(len(run) // 100, 1)], run.v[:: max(len(run) // 100, 1)], strict=True)
        ),
        default=0.0,
    )
    facts: dict[str, Any] = {
        "name": model.name,
        "states": len(run),
        "simulated": float(run.t[-1]),
        "seconds": seconds,
        "constrained": bool(model.constraints),
        "largest_gap": gap,
        "events": [[e.t, e.kind, e.contact] for e in run.events],
        "q": run.q[-1].tolist(),
        "v": run.v[-1].tolist(),
    }
    if html is not None:
        lw.write_html(html, model, run)
    if as_json:
        print_json(facts)
    else:
        _show(run, facts)
        for path in (output, plot, html):
            if path is not None:
                terminal().print(f"wrote {printable(path)}")
    if view:
        show(model, run, None, None)


def _check_outputs(output: Path | None, plot: Path | None, view: bool) -> None:
    """Raise now what would otherwise be raised after the simulation.

    Packages that are missing, unknown formats.
    """
    if output is not None:
        check_suffix(output)
    if plot is not None:
        from linkwork.simulation.records.figure import matplotlib_or_error

        matplotlib_or_error()
    if view:
        from linkwork.viewer.server import viser_or_error

        viser_or_error()


def _start(model: Model, q: str | None, v: str | None, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    loops = [c.name for c in model.constraints if 0 not in c.touches(model)]
    if seed is not None:
        return lw.random_state(model, seed, only=loops)
    q0 = numbers("q", q, model.nq, model.neutral())
    if q is None and loops:
        q0 = lw.assemble(model, q0, only=loops)
    return q0, numbers("v", v, model.nv, np.zeros(model.nv))


def _holding(model: Model, q0: np.ndarray, kp: float, kd: float) -> Any:
    kp, kd = (NOT_NEGATIVE.checked(f"--{name}", gain, {}) for name, gain in (("kp", kp), ("kd", kd)))
    if kp == 0 and kd == 0:
        return None
    t = model.topology
    driven = [i for i in t.links if model.links[i].actuated and model.links[i].joint.nv == 1]
    at, to = [t.v_slices[i].start for i in driven], [t.q_slices[i].start for i in driven]

    def controller(time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.zeros(model.nv)
        tau[at] = kp * (q0[to] - q[to]) - kd * v[at]
        return tau

    return controller


def _show(run: lw.Trajectory, facts: dict[str, Any]) -> None:
    console = terminal()
    shown = list(run.names["q"])[:8]
    headings = ("t [s]", *shown)
    table = table_of(
        f"{run.model_name}: {facts['simulated']:g} s in {facts['seconds']:.2f} s", *headings, right=headings
    )
    for k in np.linspace(0, len(run) - 1, min(len(run), 11)).round().astype(int):
        table.add_row(f"{run.t[k]:.3f}", *(f"{x:.4f}" for x in run.q[k, : len(shown)]))
    console.print(table)
    for t, kind, contact in facts["events"][:12]:
        console.print(f"{t:8.4f} s  {kind}  {contact}", highlight=False)
    if len(facts["events"]) > 12:
        console.print(f"... {len(facts['events'])} events in all")
    if facts["constrained"]:
        console.print(f"constraints held within {facts['largest_gap']:.2e} (m, rad)")
