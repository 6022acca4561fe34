"""The way from a program to an image: the object code of its chunks and its driver, ready to cache or to link."""

from __future__ import annotations

import ctypes
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwork.kernels.compile import Linked, emit
from linkwork.kernels.driver import STACK_LIMIT, Frame, chunk_names, driver_module, iteration_loop, step_calls
from linkwork.kernels.fuse import fuse
from linkwork.kernels.lower import ATTRIBUTES, Shape, lower_chunk
from linkwork.kernels.program import Program
from linkwork.kernels.iterate import IterativeProgram
from linkwork.kernels.schedule import Code, Layout, Schedule, schedule
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
    registers: int = 28

    @staticmethod
    def default(dtype: str, lanes: int, target: Target, operations: int | None = None) -> Options:
        """One state: long chunks, one tile. Lanes: short chunks that stay in the instruction cache, several tiles."""
        scalar = {"float64": "double", "float32": "float"}[dtype]
        return Options(scalar, lanes, 2000, 1 if lanes == 1 else 8, target)

    @property
    def shape(self) -> Shape:
        return Shape(self.scalar, self.lanes)

    @property
    def register(self) -> int:
        """How many numbers a vector register of the target holds."""
        return self.target.lanes("float64" if self.scalar == "double" else "float32")


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


def build(program: Program | IterativeProgram, options: Options) -> Image:
    """Fuse, schedule, lower and compile."""
    lowered = lower_iterative(program, options) if isinstance(program, IterativeProgram) else lower(program, options)
    objects = emit(lowered.modules, options.target)
    return Image(tuple(objects), lowered.stride, options.tiles, options.lanes, lowered.cost)


class Lowered(NamedTuple):
    """IR modules, bytes between tiles, instructions per tile."""

    modules: list[str]
    stride: int
    cost: int


def lower(program: Program, options: Options) -> Lowered:
    """The modules of a straight program: its chunks and the driver that calls them."""
    layout = Layout(max(options.lanes, options.register))
    plan = schedule(fuse(program), options.chunk, options.registers, layout, keep=False)
    stride = tile_stride(layout, options.shape)
    slots = [layout.named[port.name] for port in program.inputs]
    slots += [layout.named[port.name + "'"] for port in program.outputs]
    frame = Frame(program.inputs, program.outputs, tuple(slots), options.shape, options.tiles, stride)
    calls = step_calls(plan, options.shape, stride, "chunk")
    constants: dict[float, int] = {}
    modules = _chunks(plan, "chunk", options, constants)
    modules += [driver_module(frame, calls, chunk_names(plan, "chunk"), constants), _sines(options)]
    return Lowered(modules, stride, _cost(plan))


def lower_iterative(program: IterativeProgram, options: Options) -> Lowered:
    """The modules of an iterative program: the chunks of its parts, and a driver with the loop.

    All parts share one workspace: inputs and state are found there by name. An iteration writes its results
    beside the state (names with a prime); ``blend`` takes them over in the lanes that are still active.
    """
    layout = Layout(max(options.lanes, options.register))
    parts = program.parts()
    plans = {
        name: schedule(fuse(part), options.chunk, options.registers, layout, {"iterate": "'", "finish": "''"}.get(name, ""))
        for name, part in parts.items()
    }
    stride = tile_stride(layout, options.shape)
    found = [port.name for port in program.inputs] + [port.name + "''" for port in program.finish.outputs]
    slots = tuple(layout.named[name] for name in (*found, "iterations", "residual"))
    frame = Frame(program.inputs, program.outputs, slots, options.shape, options.tiles, stride)
    calls = {name: step_calls(plan, options.shape, stride, name) for name, plan in plans.items()}
    steps = iteration_loop(frame, calls, layout.named["active"])
    names = [chunk for name, plan in plans.items() for chunk in chunk_names(plan, name)]
    constants: dict[float, int] = {}
    modules = [text for name, plan in plans.items() for text in _chunks(plan, name, options, constants)]
    modules += [driver_module(frame, steps, names, constants), _sines(options)]
    return Lowered(modules, stride, sum(map(_cost, plans.values())))


def tile_stride(layout: Layout, shape: Shape) -> int:
    """An odd number of cache lines, so that the same slot of different tiles lands in different cache sets."""
    lines = -(-layout.size * shape.bytes // 64)
    return 64 * (lines | 1)


def _chunks(plan: Schedule, prefix: str, options: Options, constants: dict[float, int]) -> list[str]:
    numbered = [(k, step) for k, step in enumerate(plan.steps) if isinstance(step, Code)]
    return [lower_chunk(plan, step, f"{prefix}{k}", options.shape, constants) for k, step in numbered]


def _sines(options: Options) -> str:
    return sincos_function(options.scalar, options.register, options.target.has_fma) + ATTRIBUTES


def _cost(plan: Schedule) -> int:
    return sum(len(step.order) for step in plan.steps if isinstance(step, Code))


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
