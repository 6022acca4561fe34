"""What runs on a worker: one shard, by a kernel that this worker compiled for its own CPU or found in its cache."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import llvmlite
import numpy as np

from linkwork.errors import ClusterError
from linkwork.kernels import cache
from linkwork.kernels.rollout import RolloutKernel
from linkwork.scale.travel import unpacked

KEPT = 8
"""Kernels that a worker keeps ready; it finds older ones in its cache on disk."""

_kernels: dict[tuple[str, str, int], RolloutKernel] = {}
_lock = threading.Lock()


def versions() -> dict[str, str]:
    """What must be equal on both sides for results to be equal to the bit."""
    release, sources = cache._versions()
    return {"linkwork": release, "kernel sources": sources[:12], "llvmlite": llvmlite.__version__,
            "numpy": np.__version__}


def run_shard(program: bytes, dtype: str, threads: int, expected: dict[str, str], steps: int, every: int,
              inputs: dict[str, Any], batch: int) -> dict[str, Any]:
    """The results of these states, and what computed them."""
    mine = versions()
    other = [f"{n} {mine.get(n)} instead of {x}" for n, x in expected.items() if mine.get(n) != x]
    if other:
        raise ClusterError(f"a worker has {', '.join(other)}: install the same versions on client and workers")
    kernel = _kernel(program, dtype, threads)
    return {**kernel(steps, every, inputs, batch), "target": kernel.target}


def _kernel(program: bytes, dtype: str, threads: int) -> RolloutKernel:
    key = (hashlib.sha256(program).hexdigest(), dtype, threads)
    with _lock:
        if key not in _kernels:
            if len(_kernels) >= KEPT:
                del _kernels[next(iter(_kernels))]
            _kernels[key] = RolloutKernel(unpacked(program), dtype=dtype, threads=threads)
        return _kernels[key]
