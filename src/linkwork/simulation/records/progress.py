"""A progress bar for calls of more than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SELDOM = 0.05
"""Seconds between two updates of the bar, so that drawing costs little."""


@contextmanager
def bar(wanted: bool | None, text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield `advance(done)`. True shows the bar, False does not, None does on a terminal, after a second."""
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    started = looked = time.monotonic()
    with Progress(console=Console(stderr=True), transient=not wanted) as shown:
        task = shown.add_task(escape(text), total=total, visible=wanted is True)

        def advance(done: int) -> None:
            nonlocal looked
            now = time.monotonic()
            if now - looked > SELDOM or done == total:
                looked = now
                shown.update(task, completed=done, visible=wanted is True or now - started > 1)

        yield advance
