"""Absurd options of commands: one sentence and exit code 2, or something that makes sense."""

from __future__ import annotations

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from linkwork.cli.main import app
from linkwork.errors import LinkworkError
from public_calls import URDF

ABSURD = (
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1e300",
    "1e-300",
    "1" + "0" * 30,
    "x",
    "",
    "1,2,3",
    "x" * 10_000,
    "nan,nan",
    "\udcff",
    "../..",
    "None",
    "True",
)

COMMANDS = {
    "solve": ["base", "method", "backend", "contact", "connect", "q", "v", "tau", "seed"],
    "simulate": [
        "base",
        "method",
        "contact",
        "connect",
        "q",
        "v",
        "seed",
        "kp",
        "kd",
        "dt",
        "duration",
        "integrator",
        "ground",
        "restitution",
        "every",
        "output",
        "plot",
        "html",
    ],
    "plan": ["base", "contact", "connect", "task", "use"],
    "export": ["base", "function", "method", "contact", "connect", "output"],
    "info": ["base"],
    "view": ["base", "contact", "connect", "q", "fps", "triangles", "trajectory", "html"],
}
ALWAYS = {
    "simulate": ["--duration", "0.01", "--dt", "0.005", "--method", "aba"],
    "export": ["-o", "c"],
    "view": ["--html", "a.html"],
    "solve": ["--method", "aba"],
}


COMMAND = get_command(app)  # once: that takes longer than most commands


def ending(words: list[str]) -> BaseException:
    """The exception with which a command line ends; what is printed is for pytest."""
    with pytest.raises((Exception, SystemExit)) as end:
        COMMAND.main(args=words, prog_name="linkwork")
    return end.value


@pytest.mark.parametrize(("command", "option"), [(c, o) for c, options in COMMANDS.items() for o in options])
def test_options_end_well(command, option, tmp_path, in_tmp_path):
    (tmp_path / "robot.urdf").write_text(URDF)
    for value in ABSURD:
        words = [command, "robot.urdf", *ALWAYS.get(command, ()), f"--{option}={value}"]
        end = ending(words)
        fine = isinstance(end, LinkworkError) or (isinstance(end, SystemExit) and end.code in (0, 1, 2))
        assert fine, f"{words[:-1]} --{option}={value[:20]!r}: {end!r}"


def test_names_are_text_and_no_markup(tmp_path, type_command):
    odd = "[/b]"
    named = URDF.replace('"b"', f'"{odd}"').replace('"j"', f'"{odd}j"').replace('"r"', '"[/r]"')
    (tmp_path / "robot.urdf").write_text(named)
    for words in (["info"], ["solve"], ["simulate", "--duration=0.01", "--method=aba"], ["plan"]):
        told = CliRunner().invoke(app, [words[0], str(tmp_path / "robot.urdf"), *words[1:]])
        assert told.exit_code == 0, told.exception
        assert "[/" in told.output
    assert odd in type_command("linkwork", "info", odd)[1]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400"])
@pytest.mark.parametrize("option", ["q", "v", "tau"])
def test_states_are_numbers(option, value, tmp_path):
    (tmp_path / "robot.urdf").write_text(URDF)
    told = CliRunner().invoke(app, ["solve", str(tmp_path / "robot.urdf"), f"--{option}={value}"])
    assert isinstance(told.exception, LinkworkError)
    assert "NaN or infinite" in str(told.exception)
