"""Programs known by name: a function that was compiled before need not even be traced to be called again.

A note in the disk cache says, for the content that a function is made from (model, method, options, and as much of
Linkwork's own source as runs when it is traced), which program came out of it: its ports and its digest, by which its
object code is found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache as once
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from linkwork.kernels import cache
from linkwork.kernels.fuse import fuse
from linkwork.kernels.iterate import IterativeProgram
from linkwork.kernels.program import Port, Program
from linkwork.kernels.schedule import arranged
from linkwork.lazy import cached_property

Whole = Program | IterativeProgram
RECENT = 8
"""How many programs are kept in a process: as many as the planner compares."""


class Sketch:
    """Ports, digest and operations of a program; whatever else is asked of it comes from the program, traced then."""

    def __init__(self, note: dict[str, Any], trace: Callable[[], Whole]) -> None:
        self.name, self.digest, self._trace = note["name"], note["digest"], trace
        self.operations: int = note["operations"]
        self.inputs = tuple(Port(name, tuple(shape)) for name, shape in note["inputs"])
        self.outputs = tuple(Port(name, tuple(shape)) for name, shape in note["outputs"])

    @cached_property
    def whole(self) -> Whole:
        return self._trace()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)


def recalled(content: str | None, trace: Callable[[], Whole]) -> Whole | Sketch:
    """The program that `trace` gives, or a sketch of it if a note about this content is there."""
    made: list[Whole] = []

    def note() -> dict[str, Any]:
        made.append(trace())
        ports = {"inputs": [list(p) for p in made[0].inputs], "outputs": [list(p) for p in made[0].outputs]}
        return {"name": made[0].name, "digest": made[0].digest, "operations": made[0].operations, **ports}

    found = noted(content, note)
    return made[0] if made else Sketch(found, trace)


def remember(content: str | None, program: Whole) -> Whole:
    """Keep a program in this process for a while: what the planner traced need not be traced again."""
    global _recent
    if content is not None:
        kept = {**_recent, content: program}  # a new one: other threads may be looking into the old one
        _recent = dict(list(kept.items())[-RECENT:])
    return program


def recent(content: str | None) -> Whole | None:
    """The program of this content, if it was traced not long ago."""
    return None if content is None else _recent.get(content)


_recent: dict[str, Whole] = {}


def forget() -> None:
    """Drop all that this process keeps of programs, as if it had just begun: for measuring."""
    global _recent
    _recent = {}
    for kept in (fuse, arranged, _sources):
        kept.cache_clear()


def noted(content: str | None, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` gives, or the note that is there of what it gave for this content before."""
    note = known(content)
    if note is None:
        note = make()
        keep(content, note)
    return note


def known(content: str | None) -> dict[str, Any] | None:
    """The note of this content, if there is one."""
    return None if content is None else cache.load_note(_key(content))


def keep(content: str | None, note: dict[str, Any]) -> None:
    """Keep a note of this content for later processes."""
    if content is not None:
        cache.save_note(_key(content), note)


def _key(content: str) -> str:
    return hashlib.sha256(f"{content} {_sources()}".encode()).hexdigest()


@once
def _sources() -> str:
    """A digest of everything that a trace depends on: sources, and CasADi's version."""
    root = Path(__file__).parents[1]
    text = b"".join(path.read_bytes() for path in sources(root))
    return hashlib.sha256(text + _casadi().encode()).hexdigest()


def _casadi() -> str:
    """The installed CasADi, by the folder that says its version: to read that takes longer than all else here."""
    found = find_spec("casadi")
    if found is None or found.origin is None:
        return ""
    return " ".join(sorted(path.name for path in Path(found.origin).parents[1].glob("casadi-*.dist-info")))


TRACING = (
    "algorithms",
    "backends",
    "closure",
    "constraints",
    "functions",
    "joints",
    "kernels",
    "model",
    "planner",
    "rewrite",
    "simulation",
    "spatial",
    "structure",
    "checks.py",
    "forks.py",
    "lazy.py",
    "waiting.py",
)
"""Packages and modules that run when something is traced or planned."""

FILES = (
    "model/visual.py",
    "simulation/figure.py",
    "simulation/progress.py",
    "simulation/reading.py",
    "simulation/trajectory.py",
)
"""Those in them that only read files and show results: a model has its content, wherever it came from."""


def sources(root: Path) -> list[Path]:
    """The files, below this folder of Linkwork, that a trace depends on."""
    chosen = [path for name in TRACING for path in ((root / name).rglob("*.py") if "." not in name else [root / name])]
    return sorted(path for path in chosen if path.relative_to(root).as_posix() not in FILES)
