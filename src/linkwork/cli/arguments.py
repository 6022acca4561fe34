"""Arguments and options that commands share, and how they are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import linkwork as lw
from linkwork.errors import InputError
from linkwork.model import Model

FileArg = Annotated[str, typer.Argument(help="A robot file (URDF, URDF+, xacro, MJCF, SDF, USD) or a robot's name.")]
BaseOption = Annotated[
    str | None, typer.Option("--base", help="fixed, free or planar; default: what the file or robot suggests.")
]
ModelOption = Annotated[str | None, typer.Option("--model", help="One of the models of an SDF world, by its name.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of tables.")]
ContactOption = Annotated[
    list[str] | None,
    typer.Option("--contact", help="FRAME, FRAME:3d (a point) or FRAME:6d (a surface, default); repeat for more."),
]
CONTACTS = (":3d", ":6d", ":point", ":surface")
ConnectOption = Annotated[
    list[str] | None, typer.Option("--connect", help="A:B closes a loop with a ball joint between two frames.")
]


def load_robot(file: str, base: str | None, model: str | None = None, cut: Sequence[str] = ()) -> Model:
    """The robot of a file or of a name; `model` is one of several in an SDF world."""
    return lw.load(file, base=base, model=model, cut=cut)


def constrained(model: Model, contacts: list[str] | None, connects: list[str] | None) -> Model:
    """The model with the contacts and loops that the options name."""
    made: list[Any] = []
    for text in contacts or []:
        frame, _, kind = text.rpartition(":") if text.endswith(CONTACTS) else (text, "", "6d")
        name, _, ending = text.rpartition(":")
        known = {*model.frames, *(link.name for link in model.links)}
        if frame == text and text not in known and name in known:
            kinds = ", ".join(CONTACTS)
            raise InputError(
                f"--contact {text}: it ends with one of {kinds}, or with the frame's name, not with ':{ending}'"
            )
        made.append(lw.point(frame) if kind in ("3d", "point") else lw.surface(frame))
    for text in connects or []:
        a, colon, b = text.partition(":")
        if not colon:
            raise InputError(f"--connect takes two frames as A:B, not '{text}'")
        made.append(lw.Connect(a, b))
    return model.with_constraints(*made)


def numbers(name: str, text: str | None, n: int, default: np.ndarray) -> np.ndarray:
    """Numbers separated by commas."""
    if text is None:
        return default
    try:
        x = np.array([float(t) for t in text.replace(",", " ").split()])
    except ValueError:
        raise InputError(f"--{name} takes {n} numbers separated by commas, not '{text}'") from None
    if x.shape != (n,):
        raise InputError(f"--{name} has {len(x)} numbers; this model needs {n}")
    if not np.isfinite(x).all():
        raise InputError(f"--{name} has numbers that are NaN or infinite: '{text}'")
    return x


def printable(path: Path) -> str:
    """A path as text, with characters that cannot be encoded replaced."""
    return str(path).encode("utf-8", "replace").decode()


PIPED = 10_000
"""Columns of a console that is no terminal: what programs read is neither wrapped nor cut."""


def terminal(*, stderr: bool = False) -> Console:
    """Where commands print. Names of robots, links and joints are text: nothing in them is markup."""
    console = Console(stderr=stderr, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPED
    return console


def table_of(title: str, *headings: str, right: Sequence[str] = ()) -> Table:
    """A table with these columns, some of them aligned to the right.

    Where it is narrow, names are folded, not cut.
    """
    made = Table(title=title, title_justify="left")
    for heading in headings:
        made.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    return made


def print_json(data: Any) -> None:
    """For scripts."""
    print(json.dumps(data, indent=2))
