"""Compiled code in executable memory, with the workspaces that it runs in."""

from __future__ import annotations

import ctypes
from collections import deque

import numpy as np
from numpy.typing import NDArray

from linkwork.kernels.compile import Linked
from linkwork.kernels.driver import STACK_LIMIT
from linkwork.kernels.image import Image


class Executable:
    """An image in executable memory, and the workspaces that its callers share.

    ``run(table, begin, end, workspace)``, ``bound(context)`` and ``arrays(layout, tuple)`` are described in
    :mod:`linkwork.kernels.driver`; the last is None when one state's workspace is too large for the stack.
    """

    def __init__(self, image: Image, ports: int) -> None:
        self.image = image
        self._linked = Linked(image.objects)
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.run = ctypes.CFUNCTYPE(None, pointer, number, number, pointer)(self._linked.address("run"))
        self.bound = ctypes.CFUNCTYPE(None, pointer)(self._linked.address("run_bound"))
        self.arrays = None
        if image.lanes == 1 and image.workspace <= STACK_LIMIT and ports:
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, pointer, ctypes.py_object)
            self.arrays = prototype(self._linked.address("run_arrays"))
        self._free: deque[NDArray[np.uint8]] = deque()

    def workspace(self) -> NDArray[np.uint8]:
        """A new workspace, aligned to cache lines."""
        memory = np.empty(self.image.workspace + 64, np.uint8)
        start = -memory.ctypes.data % 64
        return memory[start : start + self.image.workspace]

    def rows(self, table: NDArray[np.int64], begin: int, end: int) -> None:
        """Run on these rows, with a workspace that nobody else uses meanwhile."""
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = self.workspace()
        self.run(table.ctypes.data, begin, end, workspace.ctypes.data)
        self._free.append(workspace)
