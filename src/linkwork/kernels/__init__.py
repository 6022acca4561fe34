"""From a traced function to machine code: program, lowering, compilation, cache, and the kernel that users call."""
