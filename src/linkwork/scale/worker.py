"""The task of a worker: one shard, by a kernel compiled for its own CPU or from its cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import llvmlite
import numpy as np

from linkwork.errors import ClusterError
from linkwork.kernels.cache import object_cache as cache
from linkwork.kernels.calls.rollout import RolloutKernel
from linkwork.kernels.calls.thread_pool import nothing
from linkwork.scale.program_transfer import unpacked

KEPT = 8
"""Kernels that a worker caches in memory; older ones are in its cache on disk."""

_kernels: dict[tuple[str, str, int], RolloutKernel] = {}


def versions() -> dict[str, str]:
    """Versions that must be equal on both sides for results to be equal to the bit."""
    try:
        release = version("linkwork")
    except PackageNotFoundError:
        release = "source"
    return {
        "linkwork": release,
        "kernel sources": cache.source()[:12],
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
    }


def run_shard(
    program: bytes,
    dtype: str,
    threads: int,
    expected: dict[str, str],
    steps: int,
    every: int,
    inputs: dict[str, Any],
    batch: int,
) -> dict[str, Any]:
    """The results of these states, and the target that computed them."""
    mine = versions()
    other = [f"{n} {mine.get(n)} instead of {x}" for n, x in expected.items() if mine.get(n) != x]
    if other:
        raise ClusterError(f"a worker has {', '.join(other)}: install the same versions on client and workers")
    kernel = _kernel(program, dtype, threads)
    return {**kernel(steps, every, inputs, batch, _wanted()), "target": kernel.target}


def _wanted() -> Callable[[], None]:
    """A function to call regularly, which ends a task that was cancelled."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return nothing
    key = worker.get_current_task()

    def look() -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise ClusterError("the rollout was cancelled")

    return look


def _kernel(program: bytes, dtype: str, threads: int) -> RolloutKernel:
    key = (hashlib.sha256(program).hexdigest(), dtype, threads)
    kernel = _kernels.get(key)
    if kernel is None:
        for old in list(_kernels)[: 1 - KEPT]:
            _kernels.pop(old, None)
        made = RolloutKernel(unpacked(program), dtype=dtype, threads=threads)
        kernel = _kernels.setdefault(key, made)  # another thread may have been first
    return kernel
