"""From a traced function to machine code.

Program, lowering, compilation, cache, and the kernel that users call.

The stages, in order: ``trace`` (an algorithm run on ``matrices`` of ``values``), ``program`` (the operations it
recorded; ``from_casadi`` reads CasADi functions), ``simplify`` (no dead code), ``fuse`` (multiply-adds, sines in
pairs), ``order`` and ``schedule`` (the order of execution, the layout of memory), ``lower``, ``vector_math``,
``transpose`` and ``driver`` (LLVM IR), ``compile`` (object code), ``image`` (all of these), ``cache`` (on disk, in a
``folder`` that is trusted), ``executable`` (in memory), ``task`` (a call, with helpers of the ``pool``), ``kernel``
(for users). ``iterate`` is for programs with a loop, ``c_source`` and ``c_project`` for export to C, ``wasm``
for browsers.
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
