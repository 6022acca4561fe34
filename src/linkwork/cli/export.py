"""`linkwork export`: a function of a robot as C."""

from __future__ import annotations

from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

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
    printable,
    terminal,
)
from linkwork.errors import InputError, not_found
from linkwork.kernels.export.c_project import PROJECT

console = terminal()

OPTIONS = {"method": "--method", "frames": "--frame", "names": "--term", "reference": "--reference", "dtype": "--dtype"}
"""Arguments of functions, and what they are called here."""


def export_command(
    file: FileArg,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the C files.")],
    base: BaseOption = None,
    one: ModelOption = None,
    function: Annotated[
        str, typer.Option(help="forward_dynamics, inverse_dynamics, mass_matrix, forward_kinematics, ...")
    ] = "forward_dynamics",
    name: Annotated[str | None, typer.Option(help="The function's name in C; default: ROBOT_FUNCTION.")] = None,
    method: Annotated[str | None, typer.Option(help="A method of that function; default: Linkwork's choice.")] = None,
    frame: Annotated[
        list[str] | None, typer.Option("--frame", help="A frame, for kinematics and Jacobians; repeat for more.")
    ] = None,
    term: Annotated[
        list[str] | None,
        typer.Option("--term", help="A term, such as M or com, for --function terms; repeat for more."),
    ] = None,
    reference: Annotated[str | None, typer.Option(help="The axes that velocities and Jacobians are in.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float64 (double) or float32 (float).")] = None,
    contact: ContactOption = None,
    connect: ConnectOption = None,
    acados: Annotated[
        bool, typer.Option("--acados", help="Write explicit dynamics with sensitivities, as acados takes them.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace another function of the same name.")] = False,
) -> None:
    """Write a function as standalone C99, with a header.

    All functions of a folder become one library by CMake.
    """
    model = constrained(load_robot(file, base, one), contact, connect)
    known = factories()
    if acados:
        others = {"--function": function != "forward_dynamics", "--frame": frame, "--term": term}
        for option, set_ in {**others, "--reference": reference, "--dtype": dtype}.items():
            if set_:
                raise InputError(f"--acados has no option {option}: it writes forward dynamics in double")
        _told(output, lw.export_acados(model, output, name, method=method, modes=bool(contact), overwrite=force))
        return
    if function not in known:
        raise not_found("function to export", function, known)
    options = {"method": method, "frames": frame, "names": term, "reference": reference, "dtype": dtype}
    given = {n: x for n, x in options.items() if x is not None}
    takes = signature(known[function]).parameters
    for n, option in OPTIONS.items():
        if n in given and n not in takes:
            raise InputError(f"{function} has no option {option}; leave it out")
        if n not in given and n in takes and takes[n].default is Parameter.empty:
            raise InputError(f"{function} needs {option}")
    _told(output, known[function](model, **given).export(output, name, overwrite=force))


def _told(output: Path, written: list[Path]) -> None:
    """Print the paths that were written."""
    for path in written:
        console.print(printable(path), soft_wrap=True)
    if all(path.name != PROJECT for path in written):
        console.print(f"{printable(output / PROJECT)} is not Linkwork's, and was left as it is", soft_wrap=True)


def factories() -> dict[str, Any]:
    """The public functions that make a function of a model."""
    public = {name: getattr(lw, name) for name in lw.__all__}
    return {name: made for name, made in public.items() if getattr(made, "is_factory", False)}
