"""The method of measurement.

Contenders run in turns, round after round (forwards, then backwards), so that other work on the machine affects all of
them alike. In a round, a contender makes passes over its states in a native loop, and the round's figure is the median
over its passes. A result is the median over rounds with a 95 % interval from order statistics; ratios are taken round
by round, between figures measured within seconds.

On a busy machine that is not enough: shorter passes are undisturbed more often. So passes of both
sides last equally long, and every reading comes with the share of a core that it got. A reading that got less than
FAIR is tried again a few times, and if that does not help, the tables say how many figures are in doubt. With a C
compiler, both sides can be measured in processor time instead (`processor_time`), which other work does not add to.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from math import comb, exp, log
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from linkwork.errors import UnsupportedError

MIN_PASSES = 5
FAIR, TRIES = 0.95, 8


class Reading(NamedTuple):
    """Microseconds per state, and the share of its core that the contender got meanwhile."""

    us: float
    share: float


class Contender(Protocol):
    """A contender: can be timed over one round of about so many seconds."""

    def round(self, budget: float) -> Reading: ...


@dataclass(frozen=True)
class Summary:
    """A median and its 95 % interval."""

    median: float
    low: float
    high: float


def summary(samples: Sequence[float]) -> Summary:
    """Median and 95 % interval by order statistics.

    With fewer than six samples, the smallest and the largest.
    """
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


@dataclass(frozen=True)
class Conditions:
    """How single-threaded loops run: on which core, in passes of at least `span` seconds, by which clock."""

    cpu: int | None = None
    span: float = 0.0
    processor_time: bool = False

    def passes(self, run: Callable[[], Any], states: int, budget: float) -> Reading:
        """The reading of `run`, which works through `states` states."""
        with pinned(self.cpu):
            us, share = passes(run, states, budget, self.span, time.thread_time if self.processor_time else CLOCK)
        return Reading(us, 1.0 if self.processor_time else share)


CLOCK = time.perf_counter


def passes(
    run: Callable[[], Any],
    states: int,
    budget: float,
    span: float = 0.0,
    clock: Callable[[], float] = CLOCK,
    busy: Callable[[], float] = time.thread_time,
) -> Reading:
    """Median over passes of at least `span` seconds, each some repetitions of `run`."""
    begin = clock()
    run()
    repeat = range(max(1, round(span / max(clock() - begin, 1e-9))))
    times: list[float] = []
    first, used = CLOCK(), busy()
    while len(times) < MIN_PASSES or CLOCK() - first < budget:
        begin = clock()
        for _ in repeat:
            run()
        times.append(clock() - begin)
    share = (busy() - used) / (CLOCK() - first)
    return Reading(statistics.median(times) / (states * len(repeat)) * 1e6, share)


def interleave(
    contenders: Mapping[str, Contender], rounds: int, budget: float, tick: Callable[[], None] = lambda: None
) -> dict[str, list[Reading]]:
    """The reading of each contender in each round."""
    readings: dict[str, list[Reading]] = {name: [] for name in contenders}
    for k in range(rounds):
        for name, contender in list(contenders.items())[:: -1 if k % 2 else 1]:
            readings[name].append(_fair(contender, budget))
        tick()
    return readings


def _fair(contender: Contender, budget: float) -> Reading:
    """A reading that got its core, or the one of several that got most of it."""
    best = contender.round(budget)
    for _ in range(TRIES - 1):
        if best.share >= FAIR:
            break
        best = max(best, contender.round(budget), key=lambda r: r.share)
    return best


SHIM = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
  return (int)syscall(SYS_clock_gettime, id == CLOCK_MONOTONIC ? CLOCK_THREAD_CPUTIME_ID : id, t);
}
"""
"""Makes the monotonic clock of a program count the processor time of its thread."""


@contextmanager
def processor_time() -> Iterator[dict[str, str]]:
    """The environment in which other programs measure processor time in place of time."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or not sys.platform.startswith("linux"):
        raise UnsupportedError("measuring processor time needs Linux and a C compiler: leave --processor-time out")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "shim.c"), Path(folder, "shim.so")
        source.write_text(SHIM)
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        yield {**os.environ, "LD_PRELOAD": str(library)}


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
    """The machine, its load, the versions and the date of a run."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
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
