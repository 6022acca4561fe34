"""What a test finds around the process, for fixtures of `conftest.py`: variables, packages, the folder it works in."""

from __future__ import annotations

import os
import sys
import threading
import time
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


def forked_meanwhile(entered: threading.Event, gate: threading.Event, value: Callable[[], int]) -> int:
    """The exit code of a child that is forked while a thread computes a value, which the child computes, too.

    The value says that it has `entered`, and waits for the `gate`. A child that does not end is killed: -9.
    """
    thread = threading.Thread(target=value)
    thread.start()
    assert entered.wait(20)
    child = os.fork()
    if not child:
        gate.set()
        os._exit(value())
    deadline = time.monotonic() + 20
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    gate.set()
    thread.join()
    if not ended[0]:
        os.kill(child, 9)
        ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended[1])
