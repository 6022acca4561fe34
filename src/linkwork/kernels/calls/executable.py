"""Compiled code in executable memory, with the workspaces that it runs in."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwork.errors import KernelError
from linkwork.kernels.cache import object_cache as cache
from linkwork.kernels.calls.arrays import empty_lines
from linkwork.kernels.codegen.driver import TURN
from linkwork.kernels.codegen.native_calls import FRESH
from linkwork.kernels.codegen.python_calls import function_names, has_objects
from linkwork.kernels.object_code.compile import Linked
from linkwork.kernels.object_code.image import Image
from linkwork.kernels.programs.program import Port

LONG = 100_000
"""Instructions for one state up to which a call holds the interpreter's lock: some 50 microseconds."""

NO_ARGUMENT, MANY, NAMED = 0x0004, 0x0080, 0x0002
"""METH_NOARGS, METH_FASTCALL, METH_KEYWORDS: a method without arguments, with many, some of them by name."""


class MethodDef(ctypes.Structure):
    """Python's PyMethodDef: a name, machine code, and how that takes its arguments."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


def built_in(method: MethodDef, self_: bytes, *kept: Any) -> Callable[..., Any]:
    """Machine code as a built-in function of Python, with these bytes as its object.

    Its module slot holds what must live as long as it does: the owner of the method and its code, and others.
    """
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(MethodDef), ctypes.py_object, ctypes.py_object)
    function: Callable[..., Any] = new(("PyCFunction_NewEx", ctypes.pythonapi))(ctypes.byref(method), self_, kept)
    return function


class Workspace:
    """Memory for one thread at a time: a tile and its turn, aligned to cache lines."""

    def __init__(self, size: int) -> None:
        self.array: NDArray[np.uint8] = empty_lines([size + TURN], np.dtype(np.uint8), lasts=True)
        self.address = self.array.ctypes.data


class Executable:
    """An image in executable memory, and the workspaces that its callers share.

    ``shared``, ``done``, ``leave`` and ``bound`` are ``run_shared``, ``all_done``, ``leave`` and ``run_bound`` of
    :mod:`linkwork.kernels.codegen.native_calls`.
    """

    def __init__(self, image: Image, outputs: Sequence[Port]) -> None:
        self.image = image
        self._linked = Linked(image.objects, function_names(image.lanes, image.workspace, outputs))
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        shared = ctypes.CFUNCTYPE(number, pointer, pointer, number, number, pointer, number)
        self.shared = shared(self._linked.address("run_shared"))
        self.done = ctypes.CFUNCTYPE(ctypes.c_bool, pointer, number)(self._linked.address("all_done"))
        self.leave = ctypes.CFUNCTYPE(None, pointer, number)(self._linked.address("leave"))
        self.bound = ctypes.CFUNCTYPE(number, pointer, number)(self._linked.address("run_bound"))
        # a call that holds the interpreter's lock must be short
        self._direct = image.cost <= LONG and has_objects(image.lanes, image.workspace, outputs)
        self._methods: dict[str, MethodDef] = {}
        self._free: deque[Workspace] = deque()

    def address(self, name: str) -> int:
        """The address of a function, for other machine code; keep this object as long as it may be called."""
        return self._linked.address(name)

    def given(self, words: bytes, *kept: Any) -> Callable[..., Any] | None:
        """``run_given`` of python_calls.py; None if there is none or it takes long.

        ``kept`` are the objects whose addresses are in its words.
        """
        return self._method("run_given", MANY, words, *kept) if self._direct else None

    def new(self, words: bytes, *kept: Any) -> Callable[..., Any] | None:
        """``run_new``, likewise."""
        return self._method("run_new", MANY, words, *kept) if self._direct else None

    def called(self, words: bytes, *kept: Any) -> Callable[..., Any] | None:
        """``run_called``, likewise."""
        return self._method("run_called", MANY | NAMED, words, *kept) if self._direct else None

    def bound_to(self, context: NDArray[np.int64], words: bytes | None, rows: int) -> Callable[[], Any]:
        """A call without arguments for these rows of a context (see native_calls.py).

        It returns true if it is to be continued. Short ones are a built-in function of Python; long ones release the
        interpreter's lock.
        """
        if words is None or self.image.cost * -(-rows // self.image.lanes) > LONG:
            return partial(self.bound, context.ctypes.data, FRESH)
        return self._method("run_bound_object", NO_ARGUMENT, words + context.tobytes())

    def _method(self, name: str, arguments: int, self_: bytes, *kept: Any) -> Callable[..., Any]:
        method = self._methods.get(name)
        if method is None:
            method = self._methods[name] = MethodDef(name.encode(), self._linked.address(name), arguments, None)
        return built_in(method, self_, self, *kept)

    def borrow(self) -> Workspace:
        """A workspace for exclusive use until it is returned; after an exception it is dropped."""
        try:
            return self._free.pop()
        except IndexError:
            return Workspace(self.image.workspace)

    def give_back(self, workspace: Workspace) -> None:
        """Let others use it."""
        self._free.append(workspace)


def loaded(key: str, outputs: Sequence[Port]) -> Executable | None:
    """The cached image of this key, if it is complete."""
    image = cache.load(key)
    try:
        return None if image is None else Executable(image, outputs)
    except KernelError:
        return None
