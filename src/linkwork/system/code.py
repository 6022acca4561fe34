"""Machine code on each system: triple, object format, relocations, and the libraries that it calls.

- Linux: ELF.
- macOS: Mach-O, names with an underscore before them. On Apple silicon a page is writable or executable, never both:
  the linker (LLVM's, through llvmlite) fills pages that are writable and then makes them executable, and nothing here
  writes to code after it was linked, so that ``MAP_JIT`` and its switches per thread are not needed.
- Windows: ELF too, by the suffix of the triple. LLVM's linker in memory has no COFF that can be relied on (constants
  are symbols it does not resolve, and unwinding tables must be within 4 GiB), and takes ELF on every system. Calls
  follow Windows' convention, as the triple says; stack frames of more than a page are probed by ``__chkstk``.

Functions are called with the C convention of the system, which ctypes, Python and XLA use as well.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Iterable
from functools import cache

LOADS_ELF = sys.platform == "linux"
"""Whether shared libraries are ELF files: macOS and Windows load formats of their own."""

MEMORY = ("memcpy", "memset", "memmove")
ROUNDING = ("floor", "ceil", "floorf", "ceilf")
"""Functions that LLVM calls for instructions a processor lacks: x86 before SSE 4.1 cannot round."""


def triple_for(process: str) -> str:
    """The triple of machine code for a process with this one."""
    return process + "-elf" if "windows" in process and not process.endswith("-elf") else process


def architecture(triple: str) -> str:
    """``x86_64``, ``aarch64`` (Apple writes arm64), or whatever else a triple begins with."""
    first = triple.partition("-")[0]
    return {"arm64": "aarch64", "arm64e": "aarch64", "amd64": "x86_64"}.get(first, first)


def unsupported(triple: str) -> str | None:
    """Why there can be no kernels for this triple; None if there can."""
    if architecture(triple) not in ("x86_64", "aarch64"):
        return f"kernels are for 64-bit x86 and ARM, and this is {architecture(triple)}; backend='numpy' works anywhere"
    if architecture(triple) == "aarch64" and "windows" in triple:
        return "LLVM has no such code for Windows on ARM: use the x86-64 Python there, which Windows emulates"
    return None


def relocation(triple: str) -> str:
    """LLVM's relocation model: no global offset table where the linker can do without."""
    if "windows" in triple:
        return "static"
    return "pic" if architecture(triple) == "aarch64" else "default"


def underscore(triple: str) -> str:
    """What object files write before the name of a C function."""
    return "_" if "apple" in triple or "darwin" in triple else ""


def inserted(system: str = sys.platform) -> tuple[str, ...]:
    """The functions that LLVM inserts calls of."""
    return (*MEMORY, *ROUNDING, *(["__chkstk"] if system == "win32" else ()))


def addresses(names: Iterable[str]) -> dict[str, int]:
    """The addresses of functions of the C library and the system."""
    return {name: _address(name) for name in names}


def _address(name: str) -> int:
    for library in _libraries():
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise OSError(f"this system has no function '{name}'")


@cache
def _libraries() -> list[ctypes.CDLL]:
    """Those that functions are looked for in, in this order; finding one takes a process of its own."""
    if sys.platform == "win32":
        return [ctypes.CDLL(name) for name in ("ucrtbase", "vcruntime140", "kernel32", "ntdll")]
    if sys.platform == "darwin":
        return [ctypes.CDLL(None)]  # libSystem has all of C
    return [ctypes.CDLL(ctypes.util.find_library("m")), ctypes.CDLL(None)]
