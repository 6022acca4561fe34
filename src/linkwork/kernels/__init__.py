"""From a traced function to machine code: program, lowering, compilation, cache, and the kernel that users call.

The stages, in order: ``program`` (read from CasADi), ``simplify`` (algebra), ``fuse`` (multiply-adds, sines in pairs),
``order`` and ``schedule`` (what when, and where in memory), ``lower``, ``vector_math``, ``transpose`` and ``driver``
(LLVM IR), ``compile`` (object code), ``image`` (all of these), ``cache`` (on disk), ``executable`` (in memory),
``kernel`` (for users). ``iterate`` is for programs with a loop, ``c_source`` for the way out to C.
"""

from linkwork.kernels.c_source import export
from linkwork.kernels.iterate import IterativeProgram
from linkwork.kernels.kernel import Bound, Kernel
from linkwork.kernels.program import Port, Program
from linkwork.kernels.target import Target

__all__ = ["Bound", "IterativeProgram", "Kernel", "Port", "Program", "Target", "export"]
