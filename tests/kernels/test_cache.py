"""The cache on disk: what it keys on, what it refuses, and that processes can share it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from kernels_examples import chain, states

from linkwork.kernels import Kernel, Program, Target, cache, image
from linkwork.kernels.image import Options


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that were compiled and not found."""
    names: list[str] = []
    build = image.build

    def counting(program: Program, options: Options) -> image.Image:
        names.append(program.name)
        return build(program, options)

    monkeypatch.setattr("linkwork.kernels.kernel.build", counting)
    return names


def evaluate(links: int = 3) -> np.ndarray:
    return Kernel(Program.from_casadi(chain(links)))(*states(links, 9)).a


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*" + cache.SUFFIX))


def test_the_second_time_nothing_is_compiled(empty_cache: Path, compiled: list[str]) -> None:
    first = evaluate()
    assert compiled == ["chain"]
    np.testing.assert_array_equal(evaluate(), first)
    assert compiled == ["chain"]
    assert cache.info().files == 1
    assert cache.info().bytes == files(empty_cache)[0].stat().st_size


@pytest.mark.parametrize("place", [0, 10, 30, 70, 90, 200, 5000, -1])
def test_a_changed_byte_means_compiling_again(empty_cache: Path, compiled: list[str], place: int) -> None:
    first = evaluate()
    (file,) = files(empty_cache)
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(bytes(data))
    np.testing.assert_array_equal(evaluate(), first)
    assert len(compiled) == 2
    evaluate()
    assert len(compiled) == 2, "the repaired file is used again"


@pytest.mark.parametrize("length", [0, 5, 40, 100, 2000])
def test_a_truncated_file_means_compiling_again(empty_cache: Path, compiled: list[str], length: int) -> None:
    first = evaluate()
    (file,) = files(empty_cache)
    file.write_bytes(file.read_bytes()[:length])
    np.testing.assert_array_equal(evaluate(), first)
    assert len(compiled) == 2


def test_a_file_of_another_kernel_is_foreign(empty_cache: Path, compiled: list[str]) -> None:
    evaluate(3)
    (other,) = files(empty_cache)
    expected = evaluate(4)
    (mine,) = set(files(empty_cache)) - {other}
    mine.write_bytes(other.read_bytes())
    np.testing.assert_array_equal(evaluate(4), expected)
    assert len(compiled) == 3


def test_the_key_covers_all_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Target.host()
    options = Options("double", 8, host)
    keys = {
        cache.key_of("a", options),
        cache.key_of("b", options),
        cache.key_of("a", Options("float", 8, host)),
        cache.key_of("a", Options("double", 4, host)),
        cache.key_of("a", Options("double", 8, host, chunk=7)),
        cache.key_of("a", Options("double", 8, Target(host.triple, "other", host.features))),
        cache.key_of("a", Options("double", 8, Target(host.triple, host.cpu, host.features + ",-x"))),
    }
    monkeypatch.setattr(cache, "_versions", lambda: ["another version", "same source"])
    keys.add(cache.key_of("a", options))
    assert len(keys) == 8


def test_clear_and_off(empty_cache: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate()
    assert cache.clear() == 1
    assert cache.info().files == 0
    monkeypatch.setenv("LINKWORK_CACHE", "off")
    evaluate()
    evaluate()
    assert len(compiled) == 3
    assert cache.info() == cache.Info(None, 0, 0, cache.LIMIT, "LINKWORK_CACHE is off")


def test_a_directory_that_cannot_be_written_is_no_error(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LINKWORK_CACHE", str(tmp_path / "file" / "cache"))
    evaluate()
    assert compiled == ["chain"]


def test_the_oldest_go_first(empty_cache: Path, compiled: list[str]) -> None:
    for links in (2, 3, 4):
        evaluate(links)
        time.sleep(0.02)
    evaluate(2)  # used again: now 3 is the oldest
    total = cache.info().bytes
    assert cache.evict(total) == 0
    assert cache.evict(total - 1) == 1
    compiled.clear()
    evaluate(2)
    evaluate(4)
    assert compiled == []
    evaluate(3)
    assert compiled == ["chain"]


def test_leftovers_of_a_killed_writer_do_not_count(empty_cache: Path) -> None:
    (empty_cache / ".new-123").write_bytes(b"half a kernel")
    assert cache.info().files == 0
    evaluate()
    assert cache.info().files == 1
    assert cache.clear() == 1
    assert not list(empty_cache.iterdir())


def test_processes_share_it(empty_cache: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from kernels_examples import chain, states\n"
        "from linkwork.kernels import Kernel, Program\n"
        "print(repr(Kernel(Program.from_casadi(chain(4)))(*states(4, 9)).a.sum()))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = {process.communicate(timeout=60)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(outputs) == 1
    assert cache.info().files == 1
    assert len(list(empty_cache.iterdir())) == 2, "a kernel and a secret"
