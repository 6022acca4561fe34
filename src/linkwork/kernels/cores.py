"""How many cores this process may use: its CPU affinity, and the CPU quota of its container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path


def cores() -> int:
    """How many threads there is time for."""
    return threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, quota())


def threads(allowed: int, share: float) -> int:
    """At least one, rounded down: a thread on a fraction of a core stalls the others."""
    return max(1, int(min(allowed, share)))


@cache
def quota(root: Path = Path("/")) -> float:
    """The CPU quota of this process' control groups, in cores (Linux); infinite without a limit.

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
