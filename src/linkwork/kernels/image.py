"""The way from a program to an image: the object code of its chunks and its driver, ready to cache or to link."""

from __future__ import annotations

import ctypes
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwork.kernels.compile import Linked, emit
from linkwork.kernels.driver import STACK_LIMIT, driver_module, step_calls
from linkwork.kernels.fuse import fuse
from linkwork.kernels.lower import ATTRIBUTES, Shape, lower_chunk
from linkwork.kernels.program import Program
from linkwork.kernels.schedule import Code, Schedule, schedule
from linkwork.kernels.target import Target
from linkwork.kernels.vector_math import sincos_function


@dataclass(frozen=True)
class Options:
    """How to compile: ``chunk`` operations per function, ``tiles`` workspaces per group."""

    scalar: str
    lanes: int
    chunk: int
    tiles: int
    target: Target

    @staticmethod
    def default(dtype: str, lanes: int, target: Target, operations: int | None = None) -> Options:
        """One state: long chunks, one tile. Lanes: short chunks that stay in the instruction cache, several tiles."""
        scalar = {"float64": "double", "float32": "float"}[dtype]
        return Options(scalar, lanes, 2000, 1 if lanes == 1 else 8, target)

    @property
    def shape(self) -> Shape:
        return Shape(self.scalar, self.lanes)


@dataclass(frozen=True)
class Image:
    """Compiled code, not yet in executable memory."""

    objects: tuple[bytes, ...]
    stride: int  # bytes of one tile's workspace
    tiles: int
    lanes: int
    cost: int  # instructions per tile

    @property
    def workspace(self) -> int:
        return self.stride * self.tiles


def build(program: Program, options: Options) -> Image:
    """Fuse, schedule, lower and compile."""
    plan, modules, stride = lower_program(program, options)
    objects = emit(modules, options.target)
    cost = sum(len(step.order) for step in plan.steps if isinstance(step, Code))
    return Image(tuple(objects), stride, options.tiles, options.lanes, cost)


def lower_program(program: Program, options: Options) -> tuple[Schedule, list[str], int]:
    """The IR modules of a program, and the bytes between its tiles."""
    shape, target = options.shape, options.target
    width = target.lanes("float64" if options.scalar == "double" else "float32")
    plan = schedule(fuse(program), options.chunk, max(options.lanes, width))
    stride = tile_stride(plan, shape)
    modules = [
        lower_chunk(plan, step, f"chunk{k}", shape, stride)
        for k, step in enumerate(plan.steps)
        if isinstance(step, Code)
    ]
    calls = step_calls(plan, shape, stride, "chunk")
    modules.append(driver_module(plan, calls, shape, options.tiles, stride, "chunk"))
    modules.append(sincos_function(shape.scalar, width, target.has_fma) + ATTRIBUTES)
    return plan, modules, stride


def tile_stride(plan: Schedule, shape: Shape) -> int:
    """An odd number of cache lines, so that the same slot of different tiles lands in different cache sets."""
    lines = -(-plan.size * shape.bytes // 64)
    return 64 * (lines | 1)


class Executable:
    """An image in executable memory, and the workspaces that its callers share.

    ``run(table, begin, end, workspace)``, ``bound(context)`` and ``arrays(types, *objects)`` are described in
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
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, pointer, *[ctypes.py_object] * ports)
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
