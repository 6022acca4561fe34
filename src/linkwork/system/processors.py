"""How many processors a process may use, what they are called, and how a thread yields to others.

- Linux: the affinity of the process, and the CPU quota of its control groups.
- macOS: threads have no affinity and processes no quota; all processors count.
- Windows: the affinity mask of the process, and the hard cap on the CPU rate of its job (containers are jobs).
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
"""The system's function that yields to other threads."""

CPU_RATE_CONTROL = 15
"""JobObjectCpuRateControlInformation: two words, flags and a rate."""

ENABLED, BY_WEIGHT, HARD_CAP, RANGE = 0x1, 0x2, 0x4, 0x10
"""JOB_OBJECT_CPU_RATE_CONTROL_...: only a hard cap, or the upper end of a range, is a limit on an idle machine."""


def allowed() -> int:
    """How many processors this process may run on."""
    every = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    if sys.platform == "win32":
        return in_mask(_kernel32()) or every
    return every


def quota(root: Path = Path("/")) -> float:
    """The limit on this process' time, in processors; infinite without one."""
    if sys.platform == "win32":
        return job_share(_kernel32(), os.cpu_count() or 1)
    return group_share(root)


def processor_name() -> str:
    """The processor's name, where the system says it; otherwise empty."""
    with suppress(OSError, AttributeError):
        if sys.platform == "darwin":
            return _sysctl(b"machdep.cpu.brand_string")
        if sys.platform.startswith("linux"):
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
            return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return platform.processor()


def _sysctl(name: bytes) -> str:
    """A text that macOS' sysctlbyname has."""
    text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    found = ctypes.CDLL(None).sysctlbyname(name, text, ctypes.byref(size), None, ctypes.c_size_t(0))
    return text.value.decode(errors="replace") if found == 0 else ""


def _kernel32() -> Any:
    return ctypes.CDLL("kernel32")


def in_mask(kernel32: Any) -> int:
    """The processors in the affinity mask of a Windows process; 0 if it spans several groups of 64."""
    mine, all_of_them = ctypes.c_size_t(), ctypes.c_size_t()
    process = ctypes.c_void_p(-1)  # GetCurrentProcess()
    kernel32.GetProcessAffinityMask(process, ctypes.byref(mine), ctypes.byref(all_of_them))
    return mine.value.bit_count()


def job_share(kernel32: Any, processors: int) -> float:
    """The hard cap on the CPU rate of a Windows job, in processors; infinite without one."""
    words = (ctypes.c_uint32 * 2)()
    if not kernel32.QueryInformationJobObject(None, CPU_RATE_CONTROL, words, ctypes.sizeof(words), None):
        return float("inf")
    flags, rate = words
    if not flags & ENABLED or flags & BY_WEIGHT or not flags & (HARD_CAP | RANGE):
        return float("inf")
    share = rate >> 16 if flags & RANGE else rate  # parts in ten thousand, of all processors
    return share / 10_000 * processors if share else float("inf")


@cache
def group_share(root: Path) -> float:
    """The CPU quota of this process' control groups, in processors (Linux); infinite without a limit.

    The smallest quota of a group and its ancestors counts. Version 2 writes "quota period" into `cpu.max`, version 1
    into two files; a container sees its own group as the root, or the whole path below the root.
    """
    return min((share for group in _groups(root) for share in _shares(group)), default=float("inf"))


def _groups(root: Path) -> Iterator[Path]:
    """The folders of the groups and of their ancestors."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        for mount in ("", "unified") if not controllers else (controllers, "cpu", "cpu,cpuacct"):
            top = root / "sys/fs/cgroup" / mount
            inner = top / path.strip().lstrip("/")
            yield from (group for group in (inner, *inner.parents) if group.is_relative_to(top))


def _shares(group: Path) -> Iterator[float]:
    with suppress(OSError, ValueError):
        quota, period = (group / "cpu.max").read_text().split()
        yield _share(quota, period)
    with suppress(OSError, ValueError):
        yield _share((group / "cpu.cfs_quota_us").read_text(), (group / "cpu.cfs_period_us").read_text())


def _share(quota: str, period: str) -> float:
    if quota.strip() == "max" or int(quota) <= 0 or int(period) <= 0:
        return float("inf")
    return int(quota) / int(period)
