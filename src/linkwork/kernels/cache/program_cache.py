"""Traced programs by content: a function that was compiled before is not traced again.

In this process the last few programs themselves are cached. For later processes a note on disk (result_cache.py) has
the ports and the digest of the program of a content; its object code is found by that digest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwork.kernels.cache import result_cache as notes
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.iterate import IterativeProgram
from linkwork.kernels.programs.program import Port, Program
from linkwork.kernels.programs.schedule import allocated, arranged
from linkwork.lazy import cached_property

Whole = Program | IterativeProgram
RECENT = 8
"""How many programs are cached in a process: as many as the planner compares."""

_programs: dict[str, Whole] = {}


def get(content: str | None) -> Whole | None:
    """Get the program of this content, if it was traced in this process recently."""
    return None if content is None else _programs.get(content)


def put(content: str | None, program: Whole) -> Whole:
    """Put a program into the cache of this process, and return it."""
    global _programs
    if content is not None:
        kept = {**_programs, content: program}  # a new dictionary: other threads may be reading the old one
        _programs = dict(list(kept.items())[-RECENT:])
    return program


def invalidate() -> None:
    """Invalidate all programs that this process has cached, as in a new process: for benchmarks."""
    global _programs
    _programs = {}
    fuse.cache_clear()
    arranged.cache_clear()
    allocated.cache_clear()
    notes.invalidate()


class Sketch:
    """Ports, digest and operations of a program; any other attribute traces the program."""

    def __init__(self, note: dict[str, Any], trace: Callable[[], Whole]) -> None:
        self.name, self.digest, self._trace = note["name"], note["digest"], trace
        self.operations: int = note["operations"]
        self.rarely: bool = note["rarely"]
        self.inputs = tuple(Port(name, tuple(shape)) for name, shape in note["inputs"])
        self.outputs = tuple(Port(name, tuple(shape)) for name, shape in note["outputs"])

    @cached_property
    def whole(self) -> Whole:
        return self._trace()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)


def get_or_trace(content: str | None, trace: Callable[[], Whole]) -> Whole | Sketch:
    """The program that `trace` returns, or a sketch of it if there is a note of this content."""
    made: list[Whole] = []

    def note() -> dict[str, Any]:
        made.append(trace())
        ports = {"inputs": [list(p) for p in made[0].inputs], "outputs": [list(p) for p in made[0].outputs]}
        counts = {"operations": made[0].operations, "rarely": made[0].rarely}
        return {"name": made[0].name, "digest": made[0].digest, **counts, **ports}

    found = notes.get_or_put(content, note)
    return made[0] if made else Sketch(found, trace)
