"""A persistent pool of threads for native calls.

A job is a function that works until nothing is left to do, on one thread or on several at once. Whoever calls works
on its own job too, and pool threads only help: if all of them are busy for others, the caller does everything itself.
So no call ever waits for a thread to become free, and any number of Python threads may call kernels at once. The pool
starts on first use, and again in a forked child.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue


class _Job:
    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.lock = threading.Lock()
        self.inside, self.closed = 0, False
        self.left = threading.Event()
        self.error: BaseException | None = None

    def help(self) -> None:
        """Work until nothing is left to do; whoever comes too late does nothing."""
        with self.lock:
            if self.closed:
                return
            self.inside += 1
        try:
            self.work()
        except BaseException as error:
            self.error = error
        with self.lock:
            self.inside -= 1
            if self.closed and not self.inside:
                self.left.set()

    def close(self, wait: bool) -> None:
        """Let nobody in any more; wait until everybody has left."""
        with self.lock:
            self.closed = True
            empty = not self.inside
        if wait and not empty:
            self.left.wait()


class Pool:
    """``run(work, done, threads)`` calls ``work()`` on this thread and on up to ``threads - 1`` others that are free.

    It returns when all have returned, or earlier, when ``done()`` says that nothing of the work is missing any more.
    """

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0

    def run(self, work: Callable[[], None], done: Callable[[], bool], threads: int) -> None:
        job = _Job(work)
        self._start(threads - 1)
        for _ in range(threads - 1):
            self._queue.put(job)
        job.help()
        job.close(wait=not done())
        if job.error is not None:
            raise job.error

    def _start(self, wanted: int) -> None:
        with self._lock:
            while self._started < wanted:
                self._started += 1
                threading.Thread(target=self._serve, args=(self._queue,), name="linkwork", daemon=True).start()

    @staticmethod
    def _serve(queue: SimpleQueue[_Job]) -> None:
        while True:
            queue.get().help()


POOL = Pool()
