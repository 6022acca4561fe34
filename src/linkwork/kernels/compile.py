"""From IR modules to functions in memory: object code on all cores, then MCJIT as a linker."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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


def emit(modules: Sequence[str], target: Target, level: int = 2) -> list[bytes]:
    """The object code of every module, compiled in parallel, the longest first."""
    with _BUSY:
        target.machine(level)  # initialises LLVM once, before the threads start
        longest = sorted(range(len(modules)), key=lambda k: -len(modules[k]))
        with ThreadPoolExecutor(min(len(modules), os.cpu_count() or 1)) as pool:
            work = {k: pool.submit(_emit_one, modules[k], target, level) for k in longest}
            return [work[k].result() for k in range(len(modules))]


def assembly(module: str, target: Target, level: int = 2) -> str:
    """The assembly text of a module, to look at."""
    machine = target.machine(level)
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
