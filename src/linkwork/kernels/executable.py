"""Compiled code in executable memory, with the workspaces that it runs in."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwork.kernels.arrays import empty_lines
from linkwork.kernels.compile import Linked
from linkwork.kernels.driver import STACK_LIMIT
from linkwork.kernels.image import Image

LONG = 100_000
"""Instructions for one state up to which a call holds the interpreter's lock: some 50 microseconds."""

ONE_ARGUMENT = 0x0008
"""METH_O: a method of one argument."""


class _MethodDef(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class Executable:
    """An image in executable memory, and the workspaces that its callers share.

    ``run(table, begin, end, workspace)`` and ``bound(context)`` are described in :mod:`linkwork.kernels.driver`.
    """

    def __init__(self, image: Image, first_output: int) -> None:
        self.image = image
        self._linked = Linked(image.objects)
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.run = ctypes.CFUNCTYPE(None, pointer, number, number, pointer)(self._linked.address("run"))
        self.bound = ctypes.CFUNCTYPE(None, pointer)(self._linked.address("run_bound"))
        self._direct = image.lanes == 1 and image.workspace <= STACK_LIMIT and first_output > 0
        self._methods: list[_MethodDef] = []
        self._free: deque[NDArray[np.uint8]] = deque()

    def arrays(self, layout: NDArray[np.int64]) -> Callable[[tuple[Any, ...]], Any] | None:
        """``run_object`` as a built-in function of Python, for arrays of this layout: True when it did nothing.

        None when one state's workspace is too large for the stack, or its work too long to keep other threads waiting.
        """
        if not self._direct or self.image.cost > LONG:
            return None
        method = _MethodDef(b"run", self._linked.address("run_object"), ONE_ARGUMENT, None)
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p)
        make = new(("PyCFunction_NewEx", ctypes.pythonapi))
        self._methods.append(method)
        function: Callable[[tuple[Any, ...]], Any] = make(ctypes.byref(method), layout.tobytes(), None)
        return function

    def workspace(self) -> NDArray[np.uint8]:
        """A new workspace, aligned to cache lines."""
        return empty_lines([self.image.workspace], np.dtype(np.uint8))

    def rows(self, table: NDArray[np.int64], begin: int, end: int) -> None:
        """Run on these rows, with a workspace that nobody else uses meanwhile."""
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = self.workspace()
        self.run(table.ctypes.data, begin, end, workspace.ctypes.data)
        self._free.append(workspace)
