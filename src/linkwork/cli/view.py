"""`linkwork view`: look at a robot or at its motion, in the browser or as a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import linkwork as lw
from linkwork.cli.arguments import (
    BaseOption,
    ConnectOption,
    ContactOption,
    FileArg,
    ModelOption,
    constrained,
    load_robot,
    numbers,
    printable,
    terminal,
)
from linkwork.errors import InputError
from linkwork.model import Model
from linkwork.viewer.scene import TRIANGLES


def view_command(
    file: FileArg,
    base: BaseOption = None,
    one: ModelOption = None,
    contact: ContactOption = None,
    connect: ConnectOption = None,
    trajectory: Annotated[
        Path | None, typer.Option("-t", "--trajectory", help="A motion to replay: what simulate -o wrote (.npz, .csv).")
    ] = None,
    q: Annotated[str | None, typer.Option(help="Configuration to show, comma-separated (quaternions x,y,z,w).")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write one HTML file that opens offline, instead of starting a viewer.")
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="The HTML file simulates the robot: drag its links, change gravity and torques."),
    ] = False,
    fps: Annotated[float, typer.Option(help="States per second of the motion that are shown.")] = 50.0,
    triangles: Annotated[int, typer.Option(help="Meshes are decimated to about so many in all.")] = TRIANGLES,
    port: Annotated[int, typer.Option(help="Port of the viewer; the next free one if it is taken.")] = 8080,
    host: Annotated[str, typer.Option(help="0.0.0.0 shows the viewer to other machines too.")] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Look at a robot in the browser: its links, frames, joints and constraints.

    Sliders move it, loops stay closed.

    With --trajectory a motion is played, and the forces of its contacts and loops if --contact and --connect name
    them as they did when it was simulated. With --html the same becomes a file that opens without Linkwork and offline.

    With --live it simulates the robot from rest at --q, for as long as it is open.

    [bold]linkwork view talos --html talos.html[/]

    [bold]linkwork view cassie.xml --live --html cassie.html[/]

    [bold]linkwork view robot.urdf --contact left_foot -t run.npz[/]
    """
    model = constrained(load_robot(file, base, one), contact, connect)
    run = None if trajectory is None else lw.Trajectory.read(trajectory)
    at = None if q is None else numbers("q", q, model.nq, model.neutral())
    if live and html is None:
        raise InputError("--live writes a page: name it with --html FILE")
    how = partial(show, fps=fps, triangles=triangles, port=port, host=host, open_browser=open_browser)
    how(model, run, at, html, live=live)


def show(
    model: Model,
    run: lw.Trajectory | None,
    q: np.ndarray | None,
    html: Path | None,
    *,
    live: bool = False,
    fps: float = 50.0,
    triangles: int = TRIANGLES,
    port: int = 8080,
    host: str = "127.0.0.1",
    open_browser: bool = False,
) -> None:
    """Write the page, or serve it until Ctrl-C."""
    console = terminal()
    if html is not None:
        path = lw.write_html(html, model, run, q=q, fps=fps, triangles=triangles, live=live)
        console.print(
            f"wrote {printable(path)} ({path.stat().st_size / 1e6:.2f} MB): open it in a browser", highlight=False
        )
        return
    viewer = lw.view(model, run, q=q, host=host, port=port, fps=fps, triangles=triangles, open_browser=open_browser)
    for note in viewer.scene.notes:
        console.print(f"note: {note}", highlight=False)
    console.print(f"{model.name} is at {viewer.url}; Ctrl-C ends", highlight=False, soft_wrap=True)
    viewer.wait()
