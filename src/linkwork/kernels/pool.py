"""A persistent pool of threads for native calls.

A job is a list of slices. Whoever calls works on its own job too, and pool threads only help: if all of them are
busy for others, the caller does everything itself. So no call ever waits for a thread to become free, and any
number of Python threads may call kernels at once. The pool starts on first use, and again in a forked child.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue

Slice = tuple[int, int]


class _Job:
    def __init__(self, work: Callable[[int, int], None], slices: Iterable[Slice]) -> None:
        self.work = work
        self.slices = deque(slices)
        self.left = len(self.slices)
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.error: BaseException | None = None

    def help(self) -> None:
        """Work on slices until none are left to take."""
        while True:
            try:
                begin, end = self.slices.popleft()
            except IndexError:
                return
            try:
                self.work(begin, end)
            except BaseException as error:
                self.error = error
            with self.lock:
                self.left -= 1
                last = self.left == 0
            if last:
                self.done.set()


class Pool:
    """``run(work, slices, threads)`` calls ``work(begin, end)`` for every slice, on up to ``threads`` threads."""

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0

    def run(self, work: Callable[[int, int], None], slices: Iterable[Slice], threads: int) -> None:
        job = _Job(work, slices)
        if not job.left:
            return
        helpers = min(threads, job.left) - 1
        if helpers > 0:
            self._start(helpers)
            for _ in range(helpers):
                self._queue.put(job)
        job.help()
        job.done.wait()
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
