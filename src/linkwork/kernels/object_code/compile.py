"""From IR modules to functions in memory: object code on all cores, then MCJIT as a linker."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from queue import SimpleQueue
from typing import Any
from weakref import ref

import llvmlite.binding as llvm
from llvmlite.binding import ffi, object_file

from linkwork.errors import KernelError
from linkwork.forks import BUSY, apart, begun, result_of, submitted
from linkwork.kernels.codegen.lower import ENTRIES, STRAIGHT
from linkwork.kernels.codegen.python_layout import python_functions
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.validity import complete
from linkwork.kernels.programs.operations import LIBM
from linkwork.system.code import addresses, architecture, inserted, underscore
from linkwork.system.cores import cores

ENTRY, CHUNK, LOOPS = range(3)
"""LLVM's levels for entry points, for straight-line code and for the loops around it. Straight-line code is optimised
before LLVM sees it: the second level finds nothing there and takes three to five times as long. Entry points take 6 ms
at level 0 instead of 27, more than all else in a small kernel, and calls are as fast: measured on x86, and only done
there, because level 0 is another code generator on ARM."""


def level_of(module: str, target: Target) -> int:
    """The level at which a module is compiled."""
    if module.startswith(ENTRIES) and architecture(target.triple) == "x86_64":
        return ENTRY
    return CHUNK if module.startswith(STRAIGHT) else LOOPS


def emit(modules: Iterable[str], target: Target) -> list[bytes]:
    """The object code of every module, compiled in parallel."""
    with emitter(target) as made:
        for text in modules:
            made.append(text)
        return made.objects()


class Emitter:
    """Modules are appended, and compiled on all cores from then on; ``objects`` waits for all."""

    def __init__(self, pool: ThreadPoolExecutor, target: Target) -> None:
        self._pool, self._target = pool, target
        self._work: list[Future[bytes]] = []

    def append(self, module: str) -> None:
        emit_one = _emit_one if module.startswith(STRAIGHT) else _emit_once
        self._work.append(submitted(self._pool, emit_one, module, self._target))

    def objects(self) -> list[bytes]:
        return [result_of(work) for work in self._work]

    def cancel(self) -> None:
        """Cancel what has not begun."""
        for work in self._work:
            work.cancel()


@contextmanager
def emitter(target: Target) -> Iterator[Emitter]:
    """Compile the modules that are appended while more of them are written.

    An exception is raised at once; chunks that LLVM is compiling at that time are finished in the background, and
    dropped. The next compilation may begin meanwhile: nothing is shared but the options of `_straight`, whose changes
    keep their order.
    """
    with BUSY:
        while _RESTORING:
            result_of(_RESTORING[-1])
            _RESTORING.pop()
        pool = ThreadPoolExecutor(cores(), "linkwork")
        try:
            apart(_begin, target)
            made = Emitter(pool, target)
            try:
                yield made
            finally:
                made.cancel()
                _RESTORING.append(begun(_straight, False))
        finally:
            pool.shutdown(wait=False)


def _begin(target: Target) -> None:
    """Initialise LLVM once, before the other threads start."""
    target.machine()
    _straight(True)


def _straight(on: bool) -> None:
    """Options of LLVM for long straight-line code, or its defaults again.

    Its scheduler takes two thirds of the compile time, and order.py has done its work. Half of the rest is the search
    for needless edges between hundreds of loads and the store after them: there are none, and the code is the same.
    """
    llvm.set_option("linkwork", f"-enable-misched={'false' if on else 'true'}")
    llvm.set_option("linkwork", f"-combiner-tokenfactor-inline-limit={1 if on else 2048}")


_RESTORING: list[Future[None]] = []
"""The task that restores LLVM's defaults; at most one, as BUSY is held."""


def assembly(module: str, target: Target) -> str:
    """The assembly text of a module, for inspection."""
    machine = target.machine(level_of(module, target))
    _straight(True)
    try:
        return str(machine.emit_assembly(_parse(module, target, llvm.create_context())))
    finally:
        _straight(False)


def _parse(text: str, target: Target, context: llvm.context.ContextRef) -> llvm.ModuleRef:
    module = llvm.parse_assembly(f'target triple = "{target.triple}"\n{text}', context)
    module.verify()
    return module


def _emit_one(text: str, target: Target) -> bytes:
    """Object code of one module, in a context of its own.

    llvmlite guards every call with one lock. Code generation is the one call that takes long, and it is thread-safe as
    long as contexts and target machines are not shared, so it is called without the lock.
    """
    context = llvm.create_context()
    module = _parse(text, target, context)
    machine = target.machine(level_of(text, target))
    library = ffi.lib._lib
    with ffi.OutputString() as error:
        buffer = library.LLVMPY_TargetMachineEmitToMemory(machine, module, 1, error)
        if not buffer:
            raise KernelError(f"LLVM could not compile a chunk: {error}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


_emit_once = lru_cache(maxsize=16)(_emit_one)
"""The same of loops, some of which all kernels have: arrays of sines, and calls for batches."""


class Linked:
    """Object code in executable memory, with these functions; keep this object as long as they are used."""

    def __init__(self, objects: Sequence[bytes], names: Iterable[str], target: Target | None = None) -> None:
        with BUSY:
            engine, self._addresses = apart(_link, objects, names, target or Target.host())
            held = _Held(self, _DROPPED.put)
            held.engine = engine
            _HELD.add(held)
            _start_sweeping()

    def address(self, name: str) -> int:
        """The address of a function."""
        found = self._addresses.get(name)
        if not found:
            raise KernelError(f"the object code has no function '{name}'")
        return found


class _Held(ref[Linked]):
    """The engine of linked code. When that is deleted, this goes to a queue, without Python code."""

    engine: Any


_HELD: set[_Held] = set()
_DROPPED: SimpleQueue[Any] = SimpleQueue()
_SWEEPING: dict[int, object] = {}


def _start_sweeping() -> None:
    """A thread of this process that deletes engines: an interrupt must not be raised inside LLVM."""
    mine = object()
    if _SWEEPING.setdefault(os.getpid(), mine) is mine:
        try:
            threading.Thread(target=_sweep, name="linkwork", daemon=True).start()
        except RuntimeError:  # the system has no more threads: the next kernel tries again
            del _SWEEPING[os.getpid()]


def _sweep() -> None:
    while True:
        held = _DROPPED.get()
        with BUSY:
            _HELD.discard(held)
            held.engine.close()
        del held


def _link(objects: Sequence[bytes], names: Iterable[str], target: Target) -> tuple[Any, dict[str, int]]:
    _register_symbols()
    module = llvm.parse_assembly(f'target triple = "{target.triple}"')  # global context: it outlives the engine
    engine = llvm.create_mcjit_compiler(module, target.machine())
    for data in objects:
        engine.add_object_file(object_file.ObjectFileRef.from_data(data))
    engine.finalize_object()
    return engine, {name: int(engine.get_function_address(name)) for name in names}


def linkable(objects: Sequence[bytes]) -> bool:
    """Whether the linker can take this; it aborts the process on damaged or incomplete object code."""
    if not objects:
        return False
    return complete(objects, {*_symbols(), TABLE}, underscore(Target.host().triple))


TABLE = "_GLOBAL_OFFSET_TABLE_"
"""What position-independent code needs, and the linker makes."""


@cache
def _register_symbols() -> None:
    """Tell the linker where the functions of the C library and of Python are."""
    for name, address in _symbols().items():
        llvm.add_symbol(name, address)


@cache
def _symbols() -> dict[str, int]:
    return {**addresses([*LIBM.values(), "sin", "cos", *inserted()]), **python_functions()}
