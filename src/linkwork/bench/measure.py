"""Measuring done right, in one place.

Contenders run in turns, round after round (forwards, then backwards), so that whatever else the machine does hits all
of them alike. In a round, a contender makes passes over all its states in a native loop, and the round's figure is the
median over its passes. A result is the median over rounds with a 95 % interval from order statistics; ratios are
taken round by round, between figures measured within the same second.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from math import comb, exp, log
from pathlib import Path
from typing import Any, Protocol

MIN_PASSES = 5


class Contender(Protocol):
    """Something that can be timed: microseconds per state, over one round of about so many seconds."""

    def round(self, budget: float) -> float: ...


@dataclass(frozen=True)
class Summary:
    """A median and its 95 % interval."""

    median: float
    low: float
    high: float


def summary(samples: Sequence[float]) -> Summary:
    """Median and 95 % interval by order statistics; with fewer than six samples, the smallest and the largest."""
    x, n = sorted(samples), len(samples)
    k, tail = 0, 0.0
    while k < n // 2 and 2 * (tail + comb(n, k) / 2**n) <= 0.05:
        tail += comb(n, k) / 2**n
        k += 1
    k = max(k - 1, 0)
    return Summary(statistics.median(x), x[k], x[n - 1 - k])


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> Summary:
    """How many times faster ours is, from rounds that belong together."""
    return summary([a / b for a, b in zip(theirs, ours, strict=False)])


def geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")


def passes(run: Callable[[], Any], states: int, budget: float) -> float:
    """Microseconds per state: median over passes of `run`, which works through `states` states."""
    clock, times, spent = time.perf_counter, [], 0.0
    run()
    while len(times) < MIN_PASSES or spent < budget:
        begin = clock()
        run()
        times.append(clock() - begin)
        spent += times[-1]
    return statistics.median(times) / states * 1e6


def interleave(
    contenders: Mapping[str, Contender], rounds: int, budget: float, tick: Callable[[], None] = lambda: None
) -> dict[str, list[float]]:
    """Microseconds per state of each contender in each round."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for k in range(rounds):
        for name, contender in list(contenders.items())[:: -1 if k % 2 else 1]:
            samples[name].append(contender.round(budget))
        tick()
    return samples


@contextmanager
def pinned(cpu: int | None) -> Iterator[None]:
    """Keep this thread on one core meanwhile, where the system can."""
    if cpu is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {cpu})
        yield
    finally:
        os.sched_setaffinity(0, before)


def cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def circumstances() -> dict[str, Any]:
    """The machine, the versions, the date and how busy it is: what a figure means nothing without."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cpu": _first_line(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "cores": len(cores()),
        "governor": _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) or "unknown",
        "load": [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {p: v for p in ("linkwork", "casadi", "llvmlite", "numpy", "pin", "mujoco") if (v := _version(p))},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _first_line(file: Path, key: str) -> str:
    found = (line.partition(":")[2].strip() for line in _text(file).splitlines() if line.startswith(key))
    return next(found, "")
