"""What differs between systems, as far as it can be tested on one of them: the others' functions get their own data."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from linkwork.system import code, files, processes, processors
from surroundings import Environment


class Kernel32:
    """Windows' functions, as documented: they fill what they are given pointers to."""

    def __init__(self, mask: int = 0, job: tuple[int, int] | None = None) -> None:
        self.mask, self.job = mask, job

    def GetProcessAffinityMask(self, process: Any, mine: Any, system: Any) -> int:
        assert process.value == ctypes.c_void_p(-1).value
        mine._obj.value, system._obj.value = self.mask, (1 << 64) - 1
        return 1

    def QueryInformationJobObject(self, job: Any, kind: int, words: Any, size: int, length: Any) -> int:
        assert (job, kind, size, length) == (None, 15, 8, None)
        if self.job is None:
            return 0
        words[:] = self.job
        return 1


@pytest.mark.parametrize(("mask", "count"), [(0b1, 1), (0b1011, 3), ((1 << 64) - 1, 64), (0, 0)])
def test_the_affinity_mask_of_windows(mask: int, count: int) -> None:
    assert processors.in_mask(Kernel32(mask)) == count


@pytest.mark.parametrize(
    ("job", "share"),
    [
        (None, float("inf")),  # no job
        ((0, 0), float("inf")),  # a job without control
        ((0x1 | 0x4, 2500), 2.0),  # a quarter of eight
        ((0x4, 2500), float("inf")),  # a cap that is not enabled
        ((0x1 | 0x2, 5), float("inf")),  # a weight
        ((0x1 | 0x10, 5000 << 16 | 1000), 4.0),  # a range up to one half
    ],
)
def test_the_cpu_rate_of_a_job_on_windows(job: tuple[int, int] | None, share: float) -> None:
    assert processors.job_share(Kernel32(job=job), 8) == share


def test_processors_of_this_machine() -> None:
    assert 1 <= processors.allowed() <= (os.cpu_count() or 1)
    assert processors.quota() > 0
    assert isinstance(processors.processor_name(), str)


def test_where_caches_are(environment: Environment, tmp_path: Path) -> None:
    environment["HOME"] = str(tmp_path)
    assert files.cache_place("darwin", {}) == tmp_path / "Library" / "Caches" / "linkwork"
    assert files.cache_place("linux", {}) == tmp_path / ".cache" / "linkwork"
    assert files.cache_place("linux", {"XDG_CACHE_HOME": "/x"}) == Path("/x/linkwork")
    assert files.cache_place("linux", {"XDG_CACHE_HOME": "relative"}) == tmp_path / ".cache" / "linkwork"
    assert files.cache_place("win32", {"LOCALAPPDATA": str(tmp_path / "Local")}) == tmp_path / "Local/linkwork/cache"
    assert files.cache_place("win32", {}) == tmp_path / "linkwork" / "cache"


def test_functions_of_the_system_are_found() -> None:
    found = code.addresses(["sin", "malloc", *code.inserted(), processors.YIELD])
    assert all(found.values())
    sine = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found["sin"])
    assert sine(0.0) == 0.0
    with pytest.raises(OSError, match="no function 'no_such_thing'"):
        code.addresses(["no_such_thing"])


def test_libraries_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Linux that starts a process."""
    asked = list[str]()
    found = ctypes.util.find_library
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: [asked.append(name), found(name)][1])
    code._libraries.cache_clear()
    code.addresses(["sin", "cos", "malloc"])
    assert len(asked) <= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_hooks_run_at_a_fork() -> None:
    text = """
import os
from linkwork.system.processes import at_fork
say = lambda word: (lambda: os.write(1, word))
at_fork(say(b"child "), say(b"parent "), say(b"before "))
if not (child := os.fork()): os._exit(0)
os.waitpid(child, 0)
"""
    told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    assert told[0] == "before", "and then the other two, in any order"
    assert sorted(told) == ["before", "child", "parent"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_limits_of_a_process(tmp_path: Path) -> None:
    text = f"from linkwork.system.processes import limit; limit(5, 1 << 32); f = open({str(tmp_path / 'x')!r}, 'w')"
    said = subprocess.run([sys.executable, "-c", f"{text}; f.write('y'); f.flush()"], capture_output=True, check=False)
    assert b"File too large" in said.stderr


def test_nothing_else_asks_for_the_system() -> None:
    """Names of systems, and functions that only one has, stand in this package alone."""
    root = Path(processes.__file__).parents[1]
    telling = (
        "sys.platform",
        "os.name",
        "sched_getaffinity",
        "register_at_fork",
        "geteuid",
        "O_NOFOLLOW",
        "ctypes.util",
    )
    found = [
        f"{path.relative_to(root).as_posix()}: {word}"
        for path in sorted(root.rglob("*.py"))
        if PurePosixPath(path.relative_to(root).as_posix()).parts[0] != "system"
        for word in telling
        if word in path.read_text(encoding="utf-8")
    ]
    assert found == []
