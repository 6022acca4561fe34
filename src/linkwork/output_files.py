"""Files that Linkwork writes for users: whole or not at all, and an error that says why not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from linkwork.errors import InputError, LinkworkError

T = TypeVar("T")


def written(path: object, write: Callable[[], T]) -> T:
    """The result of `write`, which writes to the path; an error says why it could not."""
    try:
        return write()
    except LinkworkError:
        raise
    except (OSError, ValueError) as problem:  # ValueError: a suffix that a library does not know
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InputError(f"'{path}' cannot be written: {reason}; give a path in a folder that exists") from None


def saved(path: Path, write: Callable[[Path], object]) -> None:
    """The file that `write` makes of a path it is given, whole or not at all.

    It is a path beside this one, whose file takes its place at the end; where that is not reached, because the disk is
    full or by an interrupt, nothing is left. Pipes and devices are written to as they are.
    """
    to = path.resolve()
    if to.exists() and not to.is_file():
        write(to)
        return
    part = to.with_name(f".{os.getpid()}.{to.name}")
    try:
        write(part)
        if to.exists():
            shutil.copymode(to, part)
        os.replace(part, to)
    finally:
        part.unlink(missing_ok=True)


def saved_text(path: Path, text: str) -> None:
    """The same of a text."""
    saved(path, lambda part: part.write_text(text, encoding="utf-8"))
