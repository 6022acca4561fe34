"""What a test finds around the process, for fixtures of `conftest.py`: variables, packages, the folder it works in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import chdir
from pathlib import Path

import pytest

Environment = MutableMapping[str, str]
Missing = Callable[[str], None]
Typed = Callable[..., tuple[object, str]]


@pytest.fixture
def environment() -> Iterator[Environment]:
    """`os.environ`, as it was again after the test."""
    before = dict(os.environ)
    yield os.environ
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})


@pytest.fixture
def missing() -> Iterator[Missing]:
    """`missing("package")`: as if it were not installed, in Python's own way of saying so."""
    hidden: dict[str, object] = {}

    def hide(package: str) -> None:
        hidden.setdefault(package, sys.modules.get(package))
        sys.modules[package] = None  # type: ignore[assignment]

    yield hide
    for package, module in hidden.items():
        if module is None:
            del sys.modules[package]
        else:
            sys.modules[package] = module  # type: ignore[assignment]


@pytest.fixture
def in_tmp_path(tmp_path: Path) -> Iterator[None]:
    """Works in the test's own folder."""
    with chdir(tmp_path):
        yield


@pytest.fixture
def type_command(capsys: pytest.CaptureFixture[str]) -> Iterator[Typed]:
    """`type_command("linkwork", "info", ...)`: how the program ends, and what it says on the error stream."""
    from linkwork.cli.main import main

    before = sys.argv

    def run(*words: str) -> tuple[object, str]:
        sys.argv = list(words)
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().err

    yield run
    sys.argv = before
