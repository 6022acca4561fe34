"""From a traced function to machine code: program, lowering, compilation, cache, and the kernel that users call."""

from linkwork.kernels.kernel import Bound, Kernel
from linkwork.kernels.program import Port, Program
from linkwork.kernels.target import Target

__all__ = ["Bound", "Kernel", "Port", "Program", "Target"]
