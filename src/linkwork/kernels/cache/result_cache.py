"""Notes in the disk cache, by the content that something was made from: model, method, options.

The source of Linkwork that runs when a function is traced or planned is part of their key, so that a change of it
invalidates them. `None` as content stands for what must not be cached.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache as once
from pathlib import Path
from typing import Any

from linkwork.kernels.cache import object_cache as cache
from linkwork.kernels.cache.source_files import digest_of, python_files


def get(content: str | None) -> dict[str, Any] | None:
    """Get the note of this content, if there is one."""
    return None if content is None else cache.load_note(_key(content))


def put(content: str | None, note: dict[str, Any]) -> dict[str, Any]:
    """Put the note of this content on disk for later processes, and return it."""
    if content is not None:
        cache.save_note(_key(content), note)
    return note


def get_or_put(content: str | None, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Get the note of this content, or put the one that `make` returns."""
    note = get(content)
    return put(content, make()) if note is None else note


def invalidate() -> None:
    """Invalidate the digest of the sources: for benchmarks and tests."""
    _sources.cache_clear()


def _key(content: str) -> str:
    return hashlib.sha256(f"{content} {_sources()}".encode()).hexdigest()


@once
def _sources() -> str:
    """A digest of everything that a trace depends on."""
    return digest_of(sources(Path(__file__).parents[2]))


TRACING = (
    "algorithms",
    "backends",
    "checks",
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
    "system",
    "forks.py",
    "lazy.py",
    "chunked_arrays.py",
    "value_objects.py",
    "progress_line.py",
)
"""Packages and modules that run when something is traced or planned."""

FILES = (
    "model/visual.py",
    "simulation/records/figure.py",
    "simulation/records/progress.py",
    "simulation/records/reading.py",
    "simulation/records/trajectory.py",
)
"""Those in them that only read files and show results: no trace depends on them."""


def sources(root: Path) -> list[str]:
    """The files, below this folder of Linkwork, that a trace depends on."""
    at, chosen = root.as_posix(), set[str]()
    for name in TRACING:
        chosen |= {f"{at}/{name}"} if "." in name else {*python_files(f"{at}/{name}")}
    return sorted(chosen - {f"{at}/{name}" for name in FILES})
