"""A line on the terminal that says what is being done, if that takes longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds after which the line is printed."""


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Print `what` is being done, in one line on stderr, if that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    told = threading.Timer(PATIENCE, lambda: print(f"linkwork: {what} ...", file=sys.stderr, flush=True))
    told.daemon = True
    told.start()
    try:
        yield
    finally:
        told.cancel()
