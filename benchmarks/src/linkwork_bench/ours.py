"""Linkwork's contenders: one compiled function, checked, then run over many states in native loops."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linkwork.functions.function import Function
from linkwork.kernels import Kernel
from linkwork.kernels.calls.arrays import Rows, empty_lines, table_of
from linkwork.kernels.codegen.native_calls import FRESH, FURTHER, ZEROED
from linkwork_bench.limit import Cores, Limit
from linkwork_bench.measure import Conditions, Contender, Reading, passes

ANYWHERE = Conditions()
CALLS = ("function", "kernel", "bound")
BLOCK, BLOCK_BYTES = 256, 1 << 19
"""States per call of a batch kernel, fewer if their results are larger than this (half of a second-level cache);
results go to the same memory every time, as in a user's loop."""

LARGE, LARGE_BYTES = 1 << 20, 1 << 28
"""States of the batch that is split over threads, fewer if its arrays take more memory than this: calls of 20 ms and
more, which a quarter of a millisecond of Python with cold caches does not change."""


class Native:
    """A kernel in a native loop on one thread.

    `single`: the code for one state, state after state, each result over the one before, which is what a C++ loop over
    Pinocchio's functions does. Otherwise `lanes` states at once, in calls of BLOCK states.
    """

    def __init__(
        self, kernel: Kernel, inputs: Sequence[np.ndarray], single: bool, conditions: Conditions = ANYWHERE
    ) -> None:
        self.states = max(len(x) for x in inputs)
        self.conditions = conditions
        self.kernel = kernel  # the code lives as long as its kernel
        form = kernel._form(1 if single else kernel.lanes)
        width = sum(port.size for port in kernel.outputs) * kernel.dtype.itemsize
        many = max(BLOCK_BYTES // max(width, 1), 1) // kernel.lanes * kernel.lanes
        block = self.states if single else min(BLOCK, max(many, kernel.lanes), self.states)
        rows = 1 if single else block
        self.inputs = [np.ascontiguousarray(x, kernel.dtype) for x in inputs]
        self.outputs = [empty_lines((rows, port.size), kernel.dtype) for port in kernel.outputs]
        for y in self.outputs:  # as in `bind`, and as Pinocchio wants its matrices
            y[...] = 0.0
        self.workspace = form.borrow()
        self.contexts: list[np.ndarray] = []
        self.calls: list[Callable[[int], int]] = []
        for begin in range(0, self.states, block):
            end = min(begin + block, self.states)
            ports = [Rows(x[begin:] if len(x) > 1 else x, x.shape[1] if len(x) > 1 else 0) for x in self.inputs]
            ports += [Rows(y, 0 if single else y.strides[0] // y.itemsize) for y in self.outputs]
            context = np.concatenate([np.array([ZEROED, end - begin, self.workspace.address]), table_of(ports)])
            self.contexts.append(context)
            self.calls.append(partial(form.bound, context.ctypes.data))

    def sweep(self) -> None:
        """Once through all states."""
        for call in self.calls:
            more = call(FRESH)
            while more:
                more = call(FURTHER)

    def round(self, budget: float) -> Reading:
        return self.conditions.passes(self.sweep, self.states, budget)


class Whole:
    """A kernel as users call it on a large batch, with all its threads."""

    def __init__(self, kernel: Kernel, inputs: Sequence[np.ndarray]) -> None:
        states = max(len(x) for x in inputs)
        width = sum(port.size for port in (*kernel.inputs, *kernel.outputs)) * kernel.dtype.itemsize
        copies = max(1, min(LARGE // states, LARGE_BYTES // max(width * states, 1)))
        self.inputs = [np.tile(x, (copies, 1)) if len(x) > 1 else x[0] for x in inputs]
        self.outputs = [empty_lines((copies * states, *port.shape), kernel.dtype) for port in kernel.outputs]
        self.states, self.kernel = copies * states, kernel

    def round(self, budget: float) -> Reading:
        def run() -> None:
            self.kernel(*self.inputs, out=self.outputs)

        us, cores = passes(run, self.states, budget, busy=time.process_time)
        return Reading(us, cores / self.kernel.threads)


@dataclass(frozen=True)
class Entry:
    """A function with the states to run it on, and the error of a kernel's results for every state."""

    method: str
    function: Function
    inputs: tuple[np.ndarray, ...]
    errors: Callable[[Sequence[np.ndarray], Kernel], tuple[np.ndarray, np.ndarray]]

    def kernel(self, **options: Any) -> Kernel:
        return Kernel(self.function.program, **options)

    def controls(self) -> list[np.ndarray]:
        """The inputs as rows, followed by the settings of an iterative method."""
        prox = self.function.prox
        settings = {} if prox is None else prox.controls
        return [*self.inputs, *(np.array([[x]]) for x in settings.values())]

    def error(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        """The error of the kernel's results by state: relative to the largest entry, and entry by entry."""
        inputs = [x if len(x) > 1 else x[0] for x in self.controls()]
        out = kernel(*(np.asarray(x, kernel.dtype) for x in inputs))
        return self.errors([np.asarray(x, float) for x in out], kernel)

    def contenders(
        self, measures: Sequence[str], threads: int, conditions: Conditions = ANYWHERE
    ) -> dict[str, tuple[Contender, Kernel]]:
        """The contenders by name: latency, batch, float32, limit, threads (with one, cores, one core)."""
        made: dict[str, tuple[Contender, Kernel]] = {}
        rows = self.controls()
        for measure in measures:
            if measure == "latency":
                kernel = self.kernel(lanes=1, threads=1)
                made[measure] = Native(kernel, rows, True, conditions), kernel
            elif measure in ("batch", "float32"):
                kernel = self.kernel(dtype="float32" if measure == "float32" else "float64", threads=1)
                made[measure] = Native(kernel, rows, False, conditions), kernel
            elif measure == "limit":
                kernel = self.kernel(threads=1)
                made[measure] = Limit(kernel, conditions), kernel
            elif measure == "threads":
                for name, core, count in (("one", "one core", 1), ("threads", "cores", threads)):
                    kernel = self.kernel(threads=count)
                    made[name] = Whole(kernel, rows), kernel
                    made[core] = Cores(count), kernel
        return made


class Calls:
    """Calls from Python for one state: the cost of the call is this less the latency.

    `way`: "function" calls what the factories return, "kernel" the kernel in it, "bound" a kernel on fixed buffers.
    """

    def __init__(self, entry: Entry, way: str, conditions: Conditions = ANYWHERE) -> None:
        self.conditions, self.states = conditions, 1000
        if way == "bound":
            native = entry.kernel(threads=1).bind()
            for buffer, x in zip(native.inputs, entry.controls(), strict=True):
                buffer[...] = x[0]
            self.run = self._repeat(native)
        else:
            inputs = entry.inputs if way == "function" else entry.controls()
            rows = [tuple(np.ascontiguousarray(x[i % len(x)]) for x in inputs) for i in range(self.states)]
            self.run = self._cycle(entry.function if way == "function" else entry.kernel(threads=1), rows)

    def _repeat(self, call: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(self.states):
                call()

        return run

    def _cycle(self, call: Callable[..., Any], rows: list[tuple[np.ndarray, ...]]) -> Callable[[], None]:
        def run() -> None:
            for row in rows:
                call(*row)

        return run

    def round(self, budget: float) -> Reading:
        return self.conditions.passes(self.run, self.states, budget)


def compile_times(make: Callable[[], Function]) -> dict[str, float]:
    """Seconds to trace, to compile for batches and for one state, and to have each from the cache.

    "again" is what a later process needs for a function that was compiled before, both forms, with empty caches in
    memory.
    """
    from linkwork.kernels.cache import program_cache

    clock, before = time.perf_counter, os.environ.get("LINKWORK_CACHE")
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKWORK_CACHE"] = folder
        try:
            program_cache.invalidate()
            begin = clock()
            program = make().program
            times["trace"] = clock() - begin
            for where in ("cold", "cached"):
                for form in ("batch", "single"):
                    program_cache.invalidate()
                    begin = clock()
                    Kernel(program).prepare(single=form == "single", batch=form == "batch")
                    times[f"{where} {form}"] = clock() - begin
            make().kernel.prepare()
            program_cache.invalidate()
            function = make()
            begin = clock()
            function.kernel.prepare()
            times["again"] = clock() - begin
        finally:
            if before is None:
                del os.environ["LINKWORK_CACHE"]
            else:
                os.environ["LINKWORK_CACHE"] = before
    return times
