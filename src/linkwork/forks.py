"""Safe forks and interrupts: both must not happen in the middle of LLVM's work or of imports.

A child that is forked while a thread holds a lock can never acquire it: LLVM, llvmlite and Python's imports have such
locks. An exception in the wrong place (Ctrl-C, on the main thread) never releases one. So a thread that compiles or
links holds ``BUSY``, for which a fork waits, and LLVM is called on threads that receive no signals; a fork waits for
these, and for threads that import any of this, too. A thread may begin one more import between that and the fork
itself: a child forgets the imports of threads that it does not have.
"""

from __future__ import annotations

import importlib._bootstrap as bootstrap
import sys
import threading
import time
from _imp import acquire_lock, release_lock
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from linkwork.system.processes import at_fork

Found = TypeVar("Found")

BUSY = threading.RLock()
"""Held while a kernel is made; threads that waited then find it made."""

OURS = {"linkwork", "llvmlite", "casadi", "numpy", "distributed", *sys.stdlib_module_names}
"""Packages that are imported when they are first needed; a fork does not wait for those of the user."""

PATIENCE = 10.0
"""Seconds that a fork waits for an import, which takes less than one."""

TURN = 0.05
"""Seconds of a wait, after which Python handles signals."""

_UNDER_WAY: set[Future[Any]] = set()
"""Work on other threads, which may go on for a moment after an interrupt."""


def apart(function: Callable[..., Found], *arguments: Any) -> Found:
    """The result of a function called on another thread; an interrupt does not wait for it."""
    return result_of(begun(function, *arguments))


def result_of(work: Future[Found]) -> Found:
    """The result of work on another thread, waited for in turns.

    A signal that comes just before a wait does not end it: Python would see it when the work is done.
    """
    while not wait([work], TURN).done:
        pass
    return work.result()


def begun(function: Callable[..., Found], *arguments: Any) -> Future[Found]:
    """Start a function on a thread of its own."""
    pool = ThreadPoolExecutor(1, "linkwork")
    try:
        return submitted(pool, function, *arguments)
    finally:
        pool.shutdown(wait=False)


def submitted(pool: ThreadPoolExecutor, function: Callable[..., Found], *arguments: Any) -> Future[Found]:
    """Start a function on a pool; a fork waits until it is done."""
    try:
        work = pool.submit(function, *arguments)
    except RuntimeError:  # the system has no more threads: it is done here, and nobody can leave it
        return _done(function, *arguments)
    _UNDER_WAY.add(work)
    work.add_done_callback(_UNDER_WAY.discard)
    return work


def _done(function: Callable[..., Found], *arguments: Any) -> Future[Found]:
    """Work that is done already, on this thread."""
    work = Future[Found]()
    try:
        work.set_result(function(*arguments))
    except Exception as problem:
        work.set_exception(problem)
    return work


def settled() -> None:
    """Wait for work that an interrupted call left running."""
    while _UNDER_WAY:
        time.sleep(1e-3)


def _before() -> None:
    BUSY.acquire()
    settled()
    deadline = time.monotonic() + PATIENCE
    acquire_lock()  # no thread begins an import from here on
    while _importing() and time.monotonic() < deadline:
        release_lock()
        time.sleep(1e-3)
        acquire_lock()


def _importing() -> bool:
    """Whether another thread is importing one of these packages: it then owns the lock of that module."""
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
    _UNDER_WAY.clear()
    _forget_imports()
    release_lock()


def _forget_imports() -> None:
    """Drop locks and half-made modules of imports on threads that are not in this process.

    Nobody would finish them.
    """
    me, locks = threading.get_ident(), getattr(bootstrap, "_module_locks", {})
    for name, found in list(locks.items()):
        lock = found()
        owner = getattr(lock, "owner", None)
        if owner == me:
            continue
        locks.pop(name, None)
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if owner is not None and getattr(spec, "_initializing", False):
            del sys.modules[name]


at_fork(_after_in_child, _after_in_parent, _before)
