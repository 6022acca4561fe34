"""From a traced function to machine code.

The packages, in the order in which data passes through them: ``programs`` (an algorithm is traced on ``matrices`` of
values that are numbered, and becomes a ``program``; ``simplify``, ``fuse``, ``order`` and ``schedule`` are its passes,
``differentiate`` its derivatives, ``iterate`` those with a loop), ``codegen`` (chunks, drivers and entry points as LLVM
IR), ``object_code`` (compiled on all cores), ``cache`` (on disk, in a folder that is trusted), ``export`` (C99 and
WebAssembly) and ``calls`` (what users call: ``kernel``, ``rollout``, ``sweep``, with threads and interrupts).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from linkwork.kernels.programs.iterate import IterativeProgram
from linkwork.kernels.programs.program import Port, Program

if TYPE_CHECKING:
    from linkwork.kernels.calls.kernel import Bound, Kernel
    from linkwork.kernels.codegen.target import Target
    from linkwork.kernels.export.c_project import export

__all__ = ["Bound", "IterativeProgram", "Kernel", "Port", "Program", "Target", "export"]

LATER = {"Bound": "calls.kernel", "Kernel": "calls.kernel", "Target": "codegen.target", "export": "export.c_project"}
"""Names that are imported when first asked for: who traces without compiling need not wait for LLVM."""


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'linkwork.kernels' has no attribute '{name}'")
    globals()[name] = found = getattr(import_module(f"linkwork.kernels.{LATER[name]}"), name)
    return found
