"""From LLVM IR to object code, and whether it is valid."""
