"""What a fork waits for, and what an interrupt must not break: the work of LLVM, and imports.

A child that is forked while a thread holds a lock never gets it: there are some in LLVM, in llvmlite and in Python's
imports. An exception in the wrong place (Ctrl-C, on the main thread) never gives one back. So whoever compiles or links
holds ``BUSY``, for which a fork waits, and LLVM is called on threads that hear no signals; a fork waits for these, and
for threads that import any of this, too.
"""

from __future__ import annotations

import importlib._bootstrap as bootstrap
import os
import sys
import threading
import time
from _imp import acquire_lock, release_lock
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Found = TypeVar("Found")

BUSY = threading.RLock()
"""Held while a kernel is made; what was made is then there for whoever waited."""

OURS = {"linkwork", "llvmlite", "casadi", "numpy", "distributed", *sys.stdlib_module_names}
"""Packages that are imported when they are first needed; a user's own may take any time to import."""

PATIENCE = 10.0
"""Seconds that a fork waits for an import, which takes less than one."""

_UNDER_WAY: set[Future[Any]] = set()
"""Work on other threads, which may go on for a moment after an interrupt."""


def apart(function: Callable[..., Found], *arguments: Any) -> Found:
    """What the function gives, called on another thread; an interrupt does not wait for it."""
    return begun(function, *arguments).result()


def begun(function: Callable[..., Found], *arguments: Any) -> Future[Found]:
    """The same under way on a thread of its own."""
    pool = ThreadPoolExecutor(1, "linkwork")
    try:
        return submitted(pool, function, *arguments)
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


def _before() -> None:
    BUSY.acquire()
    settled()
    deadline = time.monotonic() + PATIENCE
    acquire_lock()  # nobody begins an import from here on
    while _importing() and time.monotonic() < deadline:
        release_lock()
        time.sleep(1e-3)
        acquire_lock()


def _importing() -> bool:
    """Whether another thread is importing something of ours: it then owns the lock of that module."""
    for name, lock in list(getattr(bootstrap, "_module_locks", {}).items()):
        owner = getattr(lock(), "owner", None)
        if name.partition(".")[0] in OURS and owner not in (None, threading.get_ident()):
            return True
    return False


def _after_in_parent() -> None:
    try:
        release_lock()
    finally:
        BUSY.release()


def _after_in_child() -> None:
    BUSY._at_fork_reinit()  # type: ignore[attr-defined]
    release_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
