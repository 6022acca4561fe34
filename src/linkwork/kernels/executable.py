"""Compiled code in executable memory, with the workspaces that it runs in."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwork.kernels.arrays import empty_lines
from linkwork.kernels.compile import Linked
from linkwork.kernels.image import Image
from linkwork.kernels.objects import has_objects
from linkwork.kernels.pool import POOL
from linkwork.kernels.program import Port

LONG = 100_000
"""Instructions for one state up to which a call holds the interpreter's lock: some 50 microseconds."""

PARALLEL, TAKEN = 1_000_000, 100_000
"""Instructions from which on other threads are worth waking (half a millisecond), and what each takes at a time."""

NO_ARGUMENT, MANY = 0x0004, 0x0080
"""METH_NOARGS, METH_FASTCALL: a method without arguments, or with many."""


class _MethodDef(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class Executable:
    """An image in executable memory, and the workspaces that its callers share.

    ``run(table, begin, end, workspace)`` is described in :mod:`linkwork.kernels.driver`.
    """

    def __init__(self, image: Image, outputs: Sequence[Port]) -> None:
        self.image = image
        self._linked = Linked(image.objects)
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.run = ctypes.CFUNCTYPE(None, pointer, number, number, pointer)(self._linked.address("run"))
        shared = ctypes.CFUNCTYPE(None, pointer, pointer, number, number, pointer)
        self._shared = shared(self._linked.address("run_shared"))
        self._done = ctypes.CFUNCTYPE(ctypes.c_bool, pointer, number)(self._linked.address("all_done"))
        self._bound = ctypes.CFUNCTYPE(None, pointer)(self._linked.address("run_bound"))
        # a call that holds the interpreter's lock must not keep other threads waiting for long
        self._direct = image.cost <= LONG and has_objects(image.lanes, image.workspace, outputs)
        self._methods: list[_MethodDef] = []
        self._free: deque[NDArray[np.uint8]] = deque()

    def given(self, words: bytes) -> Callable[..., Any] | None:
        """``run_given`` of :mod:`linkwork.kernels.objects`; None when there is none, or it would take long."""
        return self._method("run_given", MANY, words) if self._direct else None

    def new(self, words: bytes, *kept: Any) -> Callable[..., Any] | None:
        """``run_new``, likewise; ``kept`` are the objects whose addresses are in its words."""
        return self._method("run_new", MANY, words, *kept) if self._direct else None

    def bound_to(self, context: NDArray[np.int64], words: bytes | None, rows: int) -> Callable[[], Any]:
        """A call without arguments for these rows of a context (see :mod:`linkwork.kernels.objects`).

        Short ones are a built-in function of Python too; long ones let other threads run meanwhile.
        """
        if words is None or self.image.cost * -(-rows // self.image.lanes) > LONG:
            return partial(self._bound, ctypes.c_void_p(context.ctypes.data))
        return self._method("run_bound_object", NO_ARGUMENT, words + context.tobytes())

    def _method(self, name: str, arguments: int, self_: bytes, *kept: Any) -> Callable[..., Any]:
        """Machine code as a built-in function of Python, with these bytes as its object.

        In the place of its module it holds what must live as long as it does: the code, and ``kept``.
        """
        method = _MethodDef(name.encode(), self._linked.address(name), arguments, None)
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.py_object)
        make = new(("PyCFunction_NewEx", ctypes.pythonapi))
        self._methods.append(method)
        function: Callable[..., Any] = make(ctypes.byref(method), self_, (self, *kept))
        return function

    def workspace(self) -> NDArray[np.uint8]:
        """A new workspace, aligned to cache lines."""
        return empty_lines([self.image.workspace], np.dtype(np.uint8))

    def rows(self, table: NDArray[np.int64], count: int, threads: int, steps: int = 1) -> None:
        """Run on all ``count`` rows of a table, each of so many steps; on several threads if it takes long enough."""
        tiles, cost = -(-count // self.image.lanes), self.image.cost * steps
        progress, size = np.zeros(2, np.int64), max(1, TAKEN // cost) * self.image.lanes

        def work() -> None:
            with self._borrowed() as workspace:
                self._shared(table.ctypes.data, progress.ctypes.data, size, count, workspace.ctypes.data)

        def done() -> bool:
            return bool(self._done(progress.ctypes.data, count))

        if threads == 1 or tiles * cost < PARALLEL:
            work()
        else:
            POOL.run(work, done, min(threads, -(-count // size)))

    @contextmanager
    def _borrowed(self) -> Iterator[NDArray[np.uint8]]:
        """A workspace that nobody else uses meanwhile."""
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = self.workspace()
        yield workspace
        self._free.append(workspace)
