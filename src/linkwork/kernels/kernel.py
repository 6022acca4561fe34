"""Kernels: what users call. Arrays in, named tuple of arrays out; one state or a batch; one thread or all."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwork.errors import InputError, KernelError
from linkwork.forks import BUSY
from linkwork.kernels import cache
from linkwork.kernels.arrays import Rows, separate, table_of, take_inputs, take_outputs
from linkwork.kernels.cores import cores
from linkwork.kernels.executable import Executable, Workspace, loaded
from linkwork.kernels.image import Options, build
from linkwork.kernels.iterate import IterativeProgram
from linkwork.kernels.objects import FURTHER, object_words, words_for_new
from linkwork.kernels.program import Port, Program
from linkwork.kernels.target import Target
from linkwork.kernels.task import Task

if TYPE_CHECKING:
    import casadi as ca

Array = NDArray[Any]


class Kernel:
    """A program as native code.

    ``kernel(x, y, ...)`` takes every input as its port's shape or behind one batch axis; inputs without that axis
    serve every state of the batch. It returns a named tuple of outputs, batched if any input was. Two forms are
    compiled when first needed (``prepare`` does it ahead): one state at a time, and ``lanes`` states at once.
    ``dtype`` is the kernel's arithmetic; inputs of other real types are converted. ``threads`` splits batches.
    """

    def __init__(
        self,
        program: Program | IterativeProgram,
        lanes: int | None = None,
        dtype: str = "float64",
        threads: int | None = None,
        target: Target | None = None,
        result: type = object,
    ) -> None:
        if dtype not in ("float64", "float32"):
            raise InputError(f"dtype '{dtype}' is not one of 'float64', 'float32'")
        self.program = program
        self.dtype = np.dtype(dtype)
        self.target = target or Target.host()
        self.lanes = self.target.lanes(dtype) if lanes is None else lanes
        if self.lanes not in (1, 2, 4, 8, 16):
            raise InputError(f"lanes={lanes} is not one of 1, 2, 4, 8, 16")
        self.threads = cores() if threads is None else threads
        if self.threads < 1:
            raise InputError(f"threads={threads}: at least one is needed")
        names = [port.name for port in program.outputs]
        named: Any = namedtuple(_type_name(program.name), names, rename=True)  # type: ignore[misc]
        self._result: Any = named if result is object else type(named.__name__, (named, result), {"__slots__": ()})
        self._given: Any = namedtuple("Inputs", [port.name for port in program.inputs], rename=True)  # type: ignore[misc]
        self._forms: dict[int, Executable] = {}
        self._kept = [None if port.size else np.empty(port.shape, self.dtype) for port in program.outputs]
        self._single, self._numbers = self._first_single, self._first_numbers

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Names and shapes of the inputs."""
        return self.program.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Names and shapes of the outputs."""
        return self.program.outputs

    @property
    def operations(self) -> int:
        """Arithmetic operations per state."""
        return self.program.operations

    def __repr__(self) -> str:
        return f"Kernel({self.program!r}, lanes={self.lanes}, dtype='{self.dtype}', threads={self.threads})"

    def prepare(self, single: bool = True, batch: bool = True) -> Kernel:
        """Compile now what would otherwise be compiled at the first call."""
        if single:
            self._form(1)
        if batch:
            self._form(self.lanes)
        return self

    def __call__(self, *arrays: ArrayLike, out: Any = None) -> Any:
        result = self._single(arrays, out)
        return self._general(arrays, out)[0] if result is None else result

    def judged(self, arrays: Sequence[ArrayLike]) -> tuple[Any, bool]:
        """The results of a call, and whether all of them are numbers."""
        result = self._numbers(*arrays)
        return self._general(arrays, None) if result is None else (result, True)

    def bind(self, batch: int | None = None) -> Bound:
        """Fixed buffers and a call without arguments: the least overhead there is."""
        return Bound(self, batch)

    def c_source(self) -> str:
        """Standalone C99 of the same function (in float64); see :mod:`linkwork.kernels.c_source`."""
        from linkwork.kernels.c_source import c_source

        return c_source(self.program)

    def casadi(self) -> ca.Function:
        """The same function for CasADi."""
        if self.program.source is None:
            raise KernelError(f"'{self.program.name}' has no CasADi form")
        return self.program.source()

    def _form(self, lanes: int) -> Executable:
        """The executable with this many lanes: known, cached on disk, or compiled now."""
        form = self._forms.get(lanes)
        if form is None:
            with BUSY:
                form = self._forms.get(lanes)
                if form is None:
                    scalar = "double" if self.dtype == np.float64 else "float"
                    options = Options(scalar, lanes, self.target)
                    key = cache.key_of(self.program.digest, options)
                    form = loaded(key, self.outputs)
                    if form is None:
                        image = build(getattr(self.program, "whole", self.program), options)
                        cache.save(key, image)
                        form = Executable(image, self.outputs)
                    self._forms[lanes] = form
        return form

    def _first_single(self, arrays: tuple[ArrayLike, ...], out: Any) -> Any:
        """The first call that is for one state: compile for it, and call directly from then on."""
        if not self._is_single(arrays):
            return None
        self._single = self._single_call()
        return self._single(arrays, out)

    def _first_numbers(self, *arrays: ArrayLike) -> Any:
        """The same for one state whose results are to be numbers."""
        if not self._is_single(arrays):
            return None
        self._numbers = self.finite()
        return self._numbers(*arrays)

    def _is_single(self, arrays: Sequence[ArrayLike]) -> bool:
        return len(arrays) == len(self.inputs) and all(
            getattr(x, "shape", None) == port.shape for x, port in zip(arrays, self.inputs, strict=True)
        )

    def _single_call(self) -> Any:
        """A function for one state in arrays that need no conversion; it returns None for anything else."""
        words = object_words(str(self.dtype))
        given, new = None if words is None else self._form(1).given(words), self._new(strict=False)
        if given is None or new is None:
            return lambda arrays, out: None
        result = self._result

        def one(arrays: tuple[ArrayLike, ...], out: Any) -> Any:
            if out is None:
                return new(*arrays)
            outs = out if isinstance(out, list | tuple) else (out,)
            return None if given(*arrays, *outs) else result(*outs)

        return one

    def finite(self) -> Callable[..., Any]:
        """The kernel for one state and new results, if all are numbers: None for anything else."""
        return self._new(strict=True) or (lambda *arrays: None)

    def _new(self, strict: bool) -> Callable[..., Any] | None:
        """One state straight from arrays to new results; without entries, these are the same for all calls."""
        words = object_words(str(self.dtype))
        if words is None:
            return None
        words = words_for_new(words, self._result, strict, self._kept)
        return self._form(1).new(words, self._result, *self._kept)

    def _general(self, arrays: Sequence[ArrayLike], out: Any) -> tuple[Any, bool]:
        """Any valid call: convert what must be converted, split what is worth it; and whether it gives numbers."""
        inputs, batch = take_inputs(self.inputs, arrays, self.dtype)
        outputs = take_outputs(self.outputs, out, self.dtype, batch)
        if out is not None:
            inputs = separate(inputs, outputs)
        fine = self._run(inputs, outputs, 1 if batch is None else batch)
        return self._result(*(x.array for x in outputs)), fine

    def _run(self, inputs: list[Rows], outputs: list[Rows], count: int) -> bool:
        if count == 0:
            return True
        form, rows = self._form(1 if count == 1 else self.lanes), [*inputs, *outputs]
        return Task(form, table_of(rows), rows, count, form.image.cost).run(self.threads)


class Bound:
    """A kernel on buffers of its own: write ``inputs``, call, read ``outputs``; both are named tuples of arrays.

    One Bound is for one thread at a time, and runs on the thread that calls it.
    """

    def __init__(self, kernel: Kernel, batch: int | None) -> None:
        if batch is not None and batch < 0:
            raise InputError(f"batch={batch}: a number of states, or None for one")
        form = kernel._form(1 if batch in (None, 1) else kernel.lanes)
        lead = () if batch is None else (batch,)
        arrays = [np.zeros((*lead, *port.shape), kernel.dtype) for port in (*kernel.inputs, *kernel.outputs)]
        split = len(kernel.inputs)
        self.inputs: Any = kernel._given(*arrays[:split])
        self.outputs: Any = kernel._result(*arrays[split:])
        workspace = Workspace(form.image.workspace)
        table = table_of([Rows(x, x[0].size if batch is not None and batch else 0) for x in arrays])
        count = 1 if batch is None else batch
        context = np.concatenate([np.array([0, count, workspace.address], np.int64), table])
        self._kept = form, workspace, context, arrays
        self._native = form.bound_to(context, object_words(str(kernel.dtype)), count)
        self._further = partial(form.bound, context.ctypes.data, FURTHER)

    def __call__(self) -> Any:
        more = self._native()
        while more:
            more = self._further()
        return self.outputs


def _type_name(name: str) -> str:
    words = "".join(word.capitalize() for word in name.split("_") if word)
    return words if words.isidentifier() else "Result"
