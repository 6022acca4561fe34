"""What a fork waits for, and what an interrupt must not break: the work of LLVM.

LLVM and llvmlite have locks of their own. A child that is forked while a thread holds one never gets it; an exception
in the wrong place (Ctrl-C, on the main thread) never gives it back. So whoever compiles or links holds ``BUSY``, for
which a fork waits, and LLVM is called on threads that hear no signals; a fork waits for these too.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Found = TypeVar("Found")

BUSY = threading.RLock()
"""Held while a kernel is made; what was made is then there for whoever waited."""

_UNDER_WAY: set[Future[Any]] = set()
"""Work on other threads, which may go on for a moment after an interrupt."""


def apart(function: Callable[..., Found], *arguments: Any) -> Found:
    """What the function gives, called on another thread; an interrupt does not wait for it."""
    pool = ThreadPoolExecutor(1, "linkwork")
    try:
        return submitted(pool, function, *arguments).result()
    finally:
        pool.shutdown(wait=False)


def submitted(pool: ThreadPoolExecutor, function: Callable[..., Found], *arguments: Any) -> Future[Found]:
    """The same under way on a pool; a fork waits until it is done."""
    work = pool.submit(function, *arguments)
    _UNDER_WAY.add(work)
    work.add_done_callback(_UNDER_WAY.discard)
    return work


def settled() -> None:
    """Wait for what an interrupted call left under way."""
    while _UNDER_WAY:
        time.sleep(1e-3)


def _before_fork() -> None:
    BUSY.acquire()
    settled()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=BUSY.release,
                        after_in_child=BUSY._at_fork_reinit)  # type: ignore[attr-defined]
