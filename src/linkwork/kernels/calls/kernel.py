"""Kernels, as users call them: arrays in, named tuple of arrays out.

One state or a batch, one thread or all.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwork.checks import check_memory
from linkwork.errors import InputError, KernelError
from linkwork.forks import BUSY
from linkwork.kernels.cache import object_cache as disk
from linkwork.kernels.calls.arrays import Rows, empty_lines, one_state, separate, table_of, take_inputs, take_outputs
from linkwork.kernels.calls.executable import Executable, Workspace, loaded
from linkwork.kernels.calls.interruptible_run import Task
from linkwork.kernels.codegen.native_calls import FURTHER, ZEROED
from linkwork.kernels.codegen.python_layout import ITEMS, Places, object_words, slots_in, words_for_results
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.image import Options, build
from linkwork.kernels.programs.iterate import REPORT, IterativeProgram
from linkwork.kernels.programs.program import Port, Program
from linkwork.progress_line import waiting
from linkwork.system.cores import cores

if TYPE_CHECKING:
    import casadi as ca

Array = NDArray[Any]
R = TypeVar("R")
Single = Callable[[Sequence[ArrayLike], Any], Any]


@cache
def result_type(name: str, fields: tuple[str, ...]) -> Any:
    """The class of results with these fields: one for all functions that share them."""
    return namedtuple(_type_name(name), fields, rename=True)


class Results(NamedTuple):
    """How results are made: a class of tuples, or one with ``slots`` for the outputs, in order.

    ``attached`` is an object stored with every result in the slot ``at``, together with the inputs in ``kept``, which
    has their slots by name.
    """

    type: Any
    slots: tuple[str, ...] = ()
    attached: object = None
    at: str = ""
    kept: Mapping[str, str] = MappingProxyType({})

    def made(self, outputs: Iterable[Array], inputs: Mapping[str, Array]) -> Any:
        """A result, of these outputs for these inputs."""
        result = self.type(*outputs)
        if self.attached is not None:
            setattr(result, self.at, self.attached)
            for name, slot in self.kept.items():
                if name in inputs:
                    setattr(result, slot, inputs[name])
        return result

    def places(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> Places | None:
        """The offsets of everything in them, for machine code; None if it cannot make them."""
        if not self.slots:
            return Places(self.type, tuple(ITEMS + 8 * k for k in range(len(outputs))))
        at = slots_in(self.type)
        if not {*self.slots[: len(outputs)], *([self.at] if self.attached is not None else [])} <= at.keys():
            return None
        kept = tuple(at.get(self.kept.get(port.name, ""), 0) for port in inputs)
        found = tuple(at[n] for n in self.slots[: len(outputs)])
        return Places(self.type, found, self.attached, at.get(self.at, 0), kept)


class Kernel:
    """A program as native code.

    ``kernel(x, y, ...)`` takes every input as its port's shape or behind one batch axis; inputs without that axis serve
    every state of the batch. It returns a named tuple of outputs (or what ``results`` says), batched if any input was.
    Two forms are compiled when first needed (``prepare`` does so ahead of time): one state at a time, and ``lanes``
    states at once; each without its loop at first, if the program ``rarely`` needs that. ``dtype`` is the kernel's
    arithmetic; inputs of other real types are converted. ``threads`` splits batches. Inputs at the end that have a
    default may be left out; those that are ``settings`` are never given.
    """

    def __init__(
        self,
        program: Program | IterativeProgram,
        lanes: int | None = None,
        dtype: str = "float64",
        threads: int | None = None,
        target: Target | None = None,
        results: Results | None = None,
        defaults: Mapping[str, ArrayLike] | None = None,
        settings: Mapping[str, ArrayLike] | None = None,
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
        self._results = results or Results(result_type(program.name, tuple(port.name for port in program.outputs)))
        missing = {**(defaults or {}), **(settings or {})}
        self._defaults = [
            np.ascontiguousarray(missing[port.name], self.dtype) if port.name in missing else None
            for port in program.inputs
        ]
        self._least = max((k + 1 for k, x in enumerate(self._defaults) if x is None), default=0)
        self.given = tuple(port for port in program.inputs if port.name not in (settings or {}))
        self._forms: dict[tuple[int, bool], Executable] = {}
        self._kept = [None if port.size else np.empty(port.shape, self.dtype) for port in program.outputs]
        self._single: Single = self._first_single
        self._numbers: Single = self._first_numbers

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

    def native(self, batch: bool, whole: bool = True) -> Executable:
        """The machine code for one state or a batch, compiled now if need be: for callers other than Python.

        Not the ``whole`` is as much of it as was needed so far.
        """
        return self._form(self.lanes if batch else 1, whole)

    @property
    def defaults(self) -> Sequence[Array | None]:
        """What is used where inputs are not given, by their places among all."""
        return self._defaults

    @property
    def settings(self) -> dict[int, Array]:
        """The inputs that are never given, by their places among all."""
        given = {port.name for port in self.given}
        found = zip(self.program.inputs, self._defaults, strict=True)
        return {k: x for k, (port, x) in enumerate(found) if port.name not in given and x is not None}

    def __call__(self, *arrays: ArrayLike, out: Any = None) -> Any:
        result = self._single(arrays, out)
        if result is None and (converted := self._one_state(arrays)) is not None:
            result = self._single(converted, out)
        return self._general(arrays, out)[0] if result is None else result

    def judged(self, arrays: Sequence[ArrayLike], out: Any = None) -> tuple[Any, bool]:
        """The results of a call, and whether all of them are numbers."""
        result = self._numbers(arrays, out)
        if result is None and (converted := self._one_state(arrays)) is not None:
            result = self._numbers(converted, out)
        return self._general(arrays, out) if result is None else (result, True)

    def bind(self, batch: int | None = None) -> Bound[Any]:
        """Fixed buffers and a call without arguments: the least overhead."""
        return Bound(self, batch)

    def c_source(self) -> str:
        """Standalone C99 of the same function; see :mod:`linkwork.kernels.export.c_source`."""
        from linkwork.kernels.export.c_source import c_source

        return c_source(self.program, dtype=str(self.dtype))

    def casadi(self) -> ca.Function:
        """The same function for CasADi."""
        if self.program.source is None:
            raise KernelError(f"'{self.program.name}' has no CasADi form")
        return self.program.source()

    @property
    def _tells(self) -> bool:
        """Whether the program may be compiled in part: its report says when that is not enough."""
        return self.program.rarely and REPORT in self.outputs

    def _form(self, lanes: int, whole: bool = True) -> Executable:
        """The executable with this many lanes: from memory, from the disk cache, or compiled now.

        Unless the ``whole`` is asked for, a loop that is rarely needed, and was not yet, may be missing.
        """
        form = self._forms.get((lanes, True)) or (None if whole else self._forms.get((lanes, False)))
        return form or self._made(lanes, whole or not self._tells or any(loop for _, loop in self._forms))

    def _made(self, lanes: int, whole: bool) -> Executable:
        """The same from the disk cache, or compiled now."""
        scalar = "double" if self.dtype == np.float64 else "float"
        with BUSY:
            for loop in (True,) if whole else (True, False):
                options = Options(scalar, lanes, self.target, loop=loop)
                key = disk.key_of(self.program.digest, options)
                form = self._forms.get((lanes, loop)) or loaded(key, self.outputs)
                if form is not None:
                    break
            else:
                with waiting(f"compiling '{self.program.name}'"):
                    image = build(getattr(self.program, "whole", self.program), options)
                disk.save(key, image)
                form = Executable(image, self.outputs)
            self._forms[lanes, loop] = form
            return form

    def _first_single(self, arrays: Sequence[ArrayLike], out: Any) -> Any:
        """The first call that is for one state: compile for it, and call directly from then on."""
        if not self._is_single(arrays):
            return None
        self._single = self._single_call(strict=False)
        return self._single(arrays, out)

    def _first_numbers(self, arrays: Sequence[ArrayLike], out: Any) -> Any:
        """The same for one state whose results are to be numbers."""
        if not self._is_single(arrays):
            return None
        self._numbers = self._single_call(strict=True)
        return self._numbers(arrays, out)

    def _is_single(self, arrays: Sequence[ArrayLike]) -> bool:
        return self._complete(arrays) and all(
            type(x) is np.ndarray and x.shape == port.shape for x, port in zip(arrays, self.given, strict=False)
        )

    def _one_state(self, arrays: Sequence[ArrayLike]) -> list[Array] | None:
        """The arrays of one state that these are once converted; None if they need no conversion, or are not."""
        return one_state(self.given, arrays, self.dtype) if self._complete(arrays) else None

    def _complete(self, arrays: Sequence[ArrayLike]) -> bool:
        """Whether the number of arguments is right."""
        return self._least <= len(arrays) <= len(self.given)

    def _single_call(self, strict: bool) -> Single:
        """A function for one state in arrays that need no conversion; it returns None for anything else.

        ``strict`` ones do so for results that are not numbers, too.
        """
        words, form = self._words(strict), self._form(1, whole=not strict)
        given = None if words is None else form.given(words, *self._alive)
        new = None if words is None else form.new(words, *self._alive)
        if given is None or new is None:
            return lambda arrays, out: None
        results, ports = self._results, self.given

        def one(arrays: Sequence[ArrayLike], out: Any) -> Any:
            if out is None:
                return new(*arrays)
            outs = out if isinstance(out, list | tuple) else (out,)
            if len({*map(id, outs)}) < len(outs):
                return None  # to be refused
            if given(*arrays, *outs):
                return None
            inputs = {port.name: x for port, x in zip(ports, arrays, strict=False)}
            return results.made(outs, inputs)  # type: ignore[arg-type]

        return one

    @property
    def takes_one_state(self) -> bool:
        """Whether the machine code for one state is there."""
        return (1, True) in self._forms or (1, False) in self._forms

    def finite(self) -> Callable[..., Any]:
        """The kernel for one state and new results, if all are numbers: None for anything else."""
        return self.called(lambda *arrays: None) or (lambda *arrays: None)

    def called(self, otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
        """A built-in function of one state with new results; what it cannot do it gives to ``otherwise``.

        That is whatever needs a conversion, and results that are not numbers. None where Python's objects have another
        layout, or the kernel takes long.
        """
        words = self._words(strict=True, otherwise=otherwise)
        return None if words is None else self.native(False, whole=False).called(words, otherwise, *self._alive)

    def _words(self, strict: bool, otherwise: Callable[..., Any] | None = None) -> bytes | None:
        """The words with which built-in functions make results; None if they cannot."""
        words, places = object_words(str(self.dtype)), self._results.places(self.inputs, self.outputs)
        if words is None or places is None:
            return None
        return words_for_results(words, places, strict, len(self.given), self._kept, self._defaults, otherwise)

    @property
    def _alive(self) -> tuple[Any, ...]:
        """The objects whose addresses are in these words."""
        return self._results.type, self._results.attached, *self._kept, *self._defaults

    def _general(self, arrays: Sequence[ArrayLike], out: Any) -> tuple[Any, bool]:
        """Any valid call: convert inputs, split large batches; and whether all results are numbers."""
        if not self._complete(arrays):
            take_inputs(self.given, arrays, self.dtype)  # raises for what is missing
        inputs, batch = take_inputs(self.inputs[: len(arrays)], arrays, self.dtype)
        inputs += [Rows(x, 0) for x in self._defaults[len(arrays) :] if x is not None]
        outputs = take_outputs(self.outputs, out, self.dtype, batch)
        if out is not None:
            inputs = separate(inputs, outputs)
        fine = self._run(inputs, outputs, 1 if batch is None else batch)
        given = {port.name: x.array for port, x in zip(self.inputs, inputs, strict=True)}
        return self._results.made((x.array for x in outputs), given), fine

    def _run(self, inputs: list[Rows], outputs: list[Rows], count: int) -> bool:
        if count == 0:
            return True
        lanes, rows = 1 if count == 1 else self.lanes, [*inputs, *outputs]
        form = self._form(lanes, whole=False)
        fine = Task(form, table_of(rows), rows, count, form.image.cost, self.threads).run()
        if fine or not self._tells or not np.isnan(outputs[-1].array[..., 0]).any():
            return fine
        form, self._numbers = self._form(lanes), self._first_numbers  # what is missing is needed
        return Task(form, table_of(rows), rows, count, form.image.cost, self.threads).run()


class Bound(Generic[R]):
    """A kernel on buffers of its own: write ``inputs``, call, read ``outputs``.

    Both are named tuples of arrays. Entries of outputs that are zero in every state are zero from the start, and no
    call writes them.

    One Bound is for one thread at a time, and runs on the thread that calls it. Nothing is checked.
    """

    def __init__(self, kernel: Kernel, batch: int | None) -> None:
        if batch is not None and batch < 0:
            raise InputError(f"batch={batch}: a number of states, or None for one")
        form = kernel._form(1 if batch in (None, 1) else kernel.lanes)
        lead, count = ((), 1) if batch is None else ((batch,), batch)
        entries = count * sum(port.size for port in (*kernel.inputs, *kernel.outputs))
        check_memory(f"buffers for {count} states", entries * kernel.dtype.itemsize // 8, "bind fewer states")
        arrays = [np.zeros((*lead, *port.shape), kernel.dtype) for port in kernel.inputs]
        for port in kernel.outputs:
            whole = (*lead, *port.shape)
            arrays.append(empty_lines(whole, kernel.dtype, lasts=True) if lead else np.empty(whole, kernel.dtype))
            arrays[-1][...] = 0.0
        for buffer, value in zip(arrays, kernel._defaults, strict=False):
            if value is not None:
                buffer[...] = value
        split = len(kernel.inputs)
        names = tuple(port.name for port in kernel.given)
        self.inputs: Any = result_type("inputs", names)(*arrays[: len(names)])
        self.outputs: R = kernel._results.made(arrays[split:], dict(zip(names, arrays, strict=False)))
        workspace = Workspace(form.image.workspace)
        table = table_of([Rows(x, x.strides[0] // x.itemsize if lead else 0) for x in arrays])
        context = np.concatenate([np.array([ZEROED, count, workspace.address], np.int64), table])
        self._kept = form, workspace, context, arrays
        self._native = form.bound_to(context, object_words(str(kernel.dtype)), count)
        self._further = partial(form.bound, context.ctypes.data, FURTHER)

    def __call__(self) -> R:
        more = self._native()
        while more:
            more = self._further()
        return self.outputs


def _type_name(name: str) -> str:
    words = "".join(word.capitalize() for word in name.split("_") if word)
    return words if words.isidentifier() else "Result"
