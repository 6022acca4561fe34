"""A persistent pool of threads for native calls.

The calling thread works on its own job, and pool threads only help: if all are busy, the caller does everything itself.
So no call ever waits for a thread to become free, and any number of Python threads may call kernels at once. The pool
starts on first use, and again in a forked child.

An exception may be raised between any two instructions (Ctrl-C, say). So there is no lock that it could leave locked,
and the last thing that a call does, in one call of machine code, is to stop its helpers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from linkwork.system.processes import at_fork

PATIENCE = 0.05
"""Seconds between two calls of ``look()`` while a caller waits for helpers."""


def nothing() -> None:
    """Do nothing."""


class _Job:
    def __init__(self, help: Callable[[], None]) -> None:
        self.help = help
        self.entered: list[object] = []
        self.left: SimpleQueue[object] = SimpleQueue()
        self.error: BaseException | None = None

    def join(self) -> None:
        """Help until nothing is left to do; a late helper returns at once."""
        helper = object()
        self.entered.append(helper)
        try:
            self.help()
        except BaseException as error:
            self.error = error
        self.left.put(helper)

    def wait(self, done: Callable[[], bool], look: Callable[[], None]) -> None:
        """Admit no more helpers; wait until all have left, or all work is done.

        A late one, who leaves at once, is not among those that are waited for.
        """
        self.help = nothing
        inside = set(self.entered)
        while inside and not done():
            try:
                inside.discard(self.left.get(timeout=PATIENCE))
            except Empty:
                look()


class Pool:
    """Helper threads for any caller; see :meth:`run`."""

    def __init__(self) -> None:
        self._reset()
        at_fork(self._reset)

    def _reset(self) -> None:
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._threads: dict[int, object] = {}

    def run(
        self,
        work: Callable[[], None],
        help: Callable[[], None],
        done: Callable[[], bool],
        stop: Callable[[], object],
        threads: int,
        look: Callable[[], None] = nothing,
    ) -> None:
        """Call ``work()`` here, and ``help()`` on up to ``threads - 1`` other threads that are free.

        Return when all have returned, or earlier, when ``done()`` says that all work is done. ``stop()`` ends every
        call, also one that raises an exception: it stops helpers, and returns when they have left. ``look()`` is called
        now and then while this thread waits.
        """
        job = _Job(help)
        try:
            self._start(threads - 1)
            for _ in range(threads - 1):
                self._queue.put(job)
            work()
            job.wait(done, look)
        finally:
            stop()  # machine code, and the first thing here: no exception can come before it
            job.help = nothing
        if job.error is not None:
            raise job.error

    def _start(self, wanted: int) -> None:
        for k in range(len(self._threads), wanted):
            mine = object()
            if self._threads.setdefault(k, mine) is mine:
                with suppress(RuntimeError):  # the system has no more threads: the caller does it alone
                    threading.Thread(target=self._serve, args=(self._queue,), name="linkwork", daemon=True).start()

    @staticmethod
    def _serve(queue: SimpleQueue[_Job]) -> None:
        while True:
            queue.get().join()


POOL = Pool()
