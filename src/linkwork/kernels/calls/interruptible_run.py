"""One native call over many rows, with helper threads if it takes long enough.

A task owns all memory that its machine code addresses: every thread that works on it holds a reference, so the memory
outlives a caller that was interrupted. The caller works in turns of some milliseconds, between which Python handles
signals; helpers work until the end, or until the caller stops them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwork.kernels.calls.thread_pool import POOL, nothing
from linkwork.kernels.codegen.native_calls import FRESH, FURTHER, HELPING, ODDS, WORDS

if TYPE_CHECKING:
    from linkwork.kernels.calls.executable import Executable

PARALLEL, TAKEN = 1_000_000, 100_000
"""Instructions above which other threads are woken (half a millisecond), and how many each takes at a time."""


class Task:
    """``count`` rows of a table, at ``cost`` instructions a tile, for so many ``threads``.

    ``kept`` are the arrays whose addresses it has.
    """

    def __init__(
        self, form: Executable, table: NDArray[np.int64], kept: Sequence[Any], count: int, cost: int, threads: int
    ) -> None:
        self.form, self.kept, self.count, self.cost, self.threads = form, (table, *kept), count, cost, threads
        tiles = min(form.image.tiles, -(-count // (form.image.lanes * threads)))
        self.size = max(tiles, TAKEN // cost) * form.image.lanes
        self.progress = np.zeros(WORDS, np.int64)
        self.at = self.progress.ctypes.data
        self.native = partial(form.shared, table.ctypes.data, self.at, self.size, count)

    def run(self, look: Callable[[], None] = nothing) -> bool:
        """Compute all rows; whether all of them are numbers. ``look()`` is called between turns."""
        tiles = -(-self.count // self.form.image.lanes)
        work = partial(self._work, look)
        if self.threads == 1 or tiles * self.cost < PARALLEL:
            work()
        else:
            # both are machine code with arguments that exist already: no Python code between them can be interrupted
            stop = partial(self.form.leave, ctypes.c_void_p(self.at), ctypes.c_int64(self.count))
            done = partial(self.form.done, self.at, self.count)
            POOL.run(work, self._help, done, stop, min(self.threads, -(-self.count // self.size)), look)
        return not self.progress[ODDS // 8]

    def _work(self, look: Callable[[], None]) -> None:
        workspace = self.form.borrow()
        more = self.native(workspace.address, FRESH)
        while more:
            look()
            more = self.native(workspace.address, FURTHER)
        self.form.give_back(workspace)

    def _help(self) -> None:
        workspace = self.form.borrow()
        self.native(workspace.address, HELPING)
        self.form.give_back(workspace)
