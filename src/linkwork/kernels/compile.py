"""From IR modules to functions in memory: object code on all cores, then MCJIT as a linker."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import llvmlite.binding as llvm
from llvmlite.binding import ffi, object_file

from linkwork.errors import KernelError
from linkwork.kernels.objects import python_functions
from linkwork.kernels.operations import LIBM
from linkwork.kernels.target import Target

_BUSY = threading.RLock()
"""Held while LLVM works, so that a fork waits and the child does not inherit a lock that nobody will open."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_BUSY.acquire, after_in_parent=_BUSY.release, after_in_child=_BUSY.release)


def emit(modules: Iterable[str], target: Target, level: int = 2) -> list[bytes]:
    """The object code of every module, compiled in parallel."""
    with emitter(target, level) as made:
        for text in modules:
            made.append(text)
        return made.objects()


class Emitter:
    """Modules are appended, and compiled on all cores from then on; ``objects`` waits for all."""

    def __init__(self, pool: ThreadPoolExecutor, target: Target, level: int) -> None:
        self._pool, self._target, self._level = pool, target, level
        self._work: list[Future[bytes]] = []

    def append(self, module: str) -> None:
        self._work.append(self._pool.submit(_emit_one, module, self._target, self._level))

    def objects(self) -> list[bytes]:
        return [work.result() for work in self._work]


@contextmanager
def emitter(target: Target, level: int = 2) -> Iterator[Emitter]:
    """Something to append modules to, while more of them are written."""
    with _BUSY, _in_the_given_order(), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        target.machine(level)  # initialises LLVM once, before the threads start
        yield Emitter(pool, target, level)


@contextmanager
def _in_the_given_order() -> Iterator[None]:
    """LLVM's scheduler off: the order is ours already, and it would take two thirds of the time to change little."""
    llvm.set_option("linkwork", "-enable-misched=false")
    try:
        yield
    finally:
        llvm.set_option("linkwork", "-enable-misched=true")


def assembly(module: str, target: Target, level: int = 2) -> str:
    """The assembly text of a module, to look at."""
    machine = target.machine(level)
    with _in_the_given_order():
        return str(machine.emit_assembly(_parse(module, target, llvm.create_context())))


def _parse(text: str, target: Target, context: llvm.context.ContextRef) -> llvm.ModuleRef:
    module = llvm.parse_assembly(f'target triple = "{target.triple}"\n{text}', context)
    module.verify()
    return module


def _emit_one(text: str, target: Target, level: int) -> bytes:
    """Object code of one module, in a context of its own.

    llvmlite guards every call with one lock. Code generation is the one call that takes long, and it is safe
    beside others as long as contexts and target machines are not shared, so that call goes around the lock.
    """
    context = llvm.create_context()
    module = _parse(text, target, context)
    machine = target.machine(level)
    library = ffi.lib._lib
    with ffi.OutputString() as error:
        buffer = library.LLVMPY_TargetMachineEmitToMemory(machine, module, 1, error)
        if not buffer:
            raise KernelError(f"LLVM could not compile a chunk: {error}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


class Linked:
    """Object code in executable memory; keep this object as long as its functions are used."""

    def __init__(self, objects: Sequence[bytes]) -> None:
        with _BUSY:
            self._link(objects)

    def _link(self, objects: Sequence[bytes]) -> None:
        _register_symbols()
        target = Target.host()
        module = llvm.parse_assembly(f'target triple = "{target.triple}"')  # global context: it outlives the engine
        self._engine = llvm.create_mcjit_compiler(module, target.machine())
        for data in objects:
            self._engine.add_object_file(object_file.ObjectFileRef.from_data(data))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function."""
        found = int(self._engine.get_function_address(name))
        if not found:
            raise KernelError(f"the object code has no function '{name}'")
        return found


@cache
def _register_symbols() -> None:
    """Tell the linker where the functions of the C library and of Python are."""
    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else ctypes.util.find_library("m"))
    for name in {*LIBM.values(), "sin", "cos"}:
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        llvm.add_symbol(name, address)
    for name, address in python_functions().items():
        llvm.add_symbol(name, address)
