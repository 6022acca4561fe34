"""From a traced function to machine code.

Program, lowering, compilation, cache, and the kernel that users call.

The stages, in order: ``trace`` (an algorithm run on ``matrices`` of ``values``), ``program`` (the operations it
recorded; ``from_casadi`` reads CasADi functions), ``simplify`` (no dead code), ``fuse`` (multiply-adds, sines in
pairs), ``order`` and ``schedule`` (the order of execution, the layout of memory), ``lower``, ``vector_math``,
``transpose`` and ``driver`` (LLVM IR), ``compile`` (object code), ``image`` (all of these), ``cache`` (on disk, in a
``folder`` that is trusted), ``executable`` (in memory), ``task`` (a call, with helpers of the ``pool``), ``kernel``
(for users). ``iterate`` is for programs with a loop, ``c_source`` and ``c_project`` for export to C.
"""

from linkwork.kernels.c_project import export
from linkwork.kernels.iterate import IterativeProgram
from linkwork.kernels.kernel import Bound, Kernel
from linkwork.kernels.program import Port, Program
from linkwork.kernels.target import Target

__all__ = ["Bound", "IterativeProgram", "Kernel", "Port", "Program", "Target", "export"]
