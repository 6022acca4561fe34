"""Scheduled programs as LLVM IR, with the entry points that Python and threads call."""
