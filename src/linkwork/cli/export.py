"""`linkwork export`: a dynamics function as C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import linkwork as lw
from linkwork.cli.arguments import (
    BaseOption,
    ConnectOption,
    ContactOption,
    FileArg,
    constrained,
    load_robot,
    printable,
    terminal,
)
from linkwork.errors import not_found

console = terminal()


def export_command(
    file: FileArg,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the C files.")],
    base: BaseOption = None,
    function: Annotated[str, typer.Option(help="forward_dynamics, inverse_dynamics, mass_matrix")] = "forward_dynamics",
    method: Annotated[str | None, typer.Option(help="A method of that function; default: Linkwork's choice.")] = None,
    contact: ContactOption = None,
    connect: ConnectOption = None,
) -> None:
    """Write a dynamics function as standalone C99, with a header and a CMakeLists.txt."""
    model = constrained(load_robot(file, base), contact, connect)
    factories: dict[str, Any] = {
        "forward_dynamics": lw.forward_dynamics,
        "inverse_dynamics": lw.inverse_dynamics,
        "mass_matrix": lw.mass_matrix,
    }
    if function not in factories:
        raise not_found("function to export", function, factories)
    options = {} if method is None else {"method": method}
    made = factories[function](model, **options)
    for path in made.export(output):
        console.print(printable(path))
