"""The command line, assembled: one file per command."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, TextIO

import typer
from rich.text import Text

import linkwork as lw
from linkwork.cli.arguments import terminal
from linkwork.cli.bench import bench_app
from linkwork.cli.cache import cache_app
from linkwork.cli.demo import demo_command
from linkwork.cli.doctor import doctor_command
from linkwork.cli.export import export_command
from linkwork.cli.info import info_command
from linkwork.cli.methods import methods_command
from linkwork.cli.plan import plan_command
from linkwork.cli.simulate import simulate_command
from linkwork.cli.solve import solve_command
from linkwork.cli.view import view_command
from linkwork.errors import LinkworkError

app = typer.Typer(
    help="Constrained rigid-body dynamics, compiled for your robot.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"linkwork {lw.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command("info")(info_command)
app.command("plan")(plan_command)
app.command("solve")(solve_command)
app.command("simulate")(simulate_command)
app.command("view")(view_command)
app.command("export")(export_command)
app.command("methods")(methods_command)
app.command("doctor")(doctor_command)
app.command("demo")(demo_command)
app.add_typer(cache_app, name="cache")
app.add_typer(bench_app, name="bench")


def main() -> None:
    """Run the command line; errors of the user's making are one sentence, with exit code 2."""
    warnings.showwarning = _told
    try:
        app(standalone_mode=True)
    except LinkworkError as problem:
        _say("error:", "bold red", problem)
        sys.exit(2)
    except OSError as problem:  # of the terminal, or what stands for it: a full disk
        _say("error:", "bold red", f"the output cannot be written: {problem.strerror or problem}")
        sys.exit(1)


def _told(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning without the line of code that gave it."""
    _say("warning:", "yellow", message)


def _say(head: str, style: str, text: object) -> None:
    said = Text.assemble((head, style), f" {text}")
    terminal(stderr=True).print(said, highlight=False, soft_wrap=True)
