"""Benchmarks: our kernels beside Pinocchio and MuJoCo, on the same robots and states, in one run."""

__version__ = "0.2.0"
