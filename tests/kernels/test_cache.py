"""The cache on disk: what it keys on, what it refuses, and that processes can share it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from kernels_examples import chain, states

from linkwork.errors import CacheWarning
from linkwork.kernels import Kernel, Program, Target
from linkwork.kernels.cache import folder as cache_folder
from linkwork.kernels.cache import object_cache as cache
from linkwork.kernels.object_code import image
from linkwork.kernels.object_code.image import Options
from linkwork.kernels.programs.from_casadi import read_program
from surroundings import Environment


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that were compiled and not found."""
    names: list[str] = []
    build = image.build

    def counting(program: Program, options: Options) -> image.Image:
        names.append(program.name)
        return build(program, options)

    monkeypatch.setattr("linkwork.kernels.calls.kernel.build", counting)
    return names


def evaluate(links: int = 3) -> np.ndarray:
    return Kernel(read_program(chain(links)))(*states(links, 9)).a


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
    monkeypatch.setattr(cache, "source", lambda: "another source")
    keys.add(cache.key_of("a", options))
    assert len(keys) == 8


def test_clear_and_off(empty_cache: Path, compiled: list[str], environment: Environment) -> None:
    evaluate()
    assert cache.clear() == 1
    assert cache.info().files == 0
    environment["LINKWORK_CACHE"] = "off"
    evaluate()
    evaluate()
    assert len(compiled) == 3
    assert cache.info() == cache.Info(None, 0, 0, cache.LIMIT, "LINKWORK_CACHE is off")


def test_a_directory_that_cannot_be_written_is_no_error(
    tmp_path: Path, compiled: list[str], environment: Environment
) -> None:
    (tmp_path / "file").write_text("in the way")
    environment["LINKWORK_CACHE"] = str(tmp_path / "file" / "cache")
    refused(compiled, "Not a directory")


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


def test_its_size_is_looked_up_once_in_a_while() -> None:
    """Not after every file: that made writing the n-th of them take a time proportional to n."""
    limit, size = 1 << 30, 1 << 14
    keys = [hashlib.sha256(str(k).encode()).hexdigest() for k in range(20_000)]
    looked = sum(cache.looks(key, size, limit) for key in keys)
    expected = cache.LOOKS * len(keys) * size / limit
    assert abs(looked - expected) < 5 * expected**0.5
    assert all(cache.looks(key, limit // cache.LOOKS, limit) for key in keys[:100])  # large files always


def test_it_does_not_grow_beyond_its_limit(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 100_000)
    for k in range(400):
        cache.save_note(hashlib.sha256(str(k).encode()).hexdigest(), {"x": "y" * 1000})
    assert 50_000 < cache.info().bytes < 150_000


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
        "from linkwork.kernels import Kernel\n"
        "from linkwork.kernels.programs.from_casadi import read_program\n"
        "print(repr(Kernel(read_program(chain(4)))(*states(4, 9)).a.sum()))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = {process.communicate(timeout=60)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(outputs) == 1
    assert cache.info().files == 1
    assert len(list(empty_cache.iterdir())) == 2, "a kernel and a secret"


def refused(compiled: list[str], match: str) -> None:
    """Kernels are compiled as if there were no cache, and a warning says why, once."""
    cache_folder._told.clear()
    with pytest.warns(CacheWarning, match=match):
        evaluate()
    with warnings.catch_warnings(action="error"):
        evaluate()
    assert len(compiled) == 2
    assert cache.info().problem is not None


posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used(empty_cache: Path, compiled: list[str], mode: int) -> None:
    """Object code that another user had planted there was executed."""
    evaluate()
    compiled.clear()
    before = files(empty_cache)[0].read_bytes()
    empty_cache.chmod(mode)
    refused(compiled, r"others may write to .* \(mode .*7..\).*: chmod 700" if mode != 0o702 else "others may write")
    assert files(empty_cache)[0].read_bytes() == before
    empty_cache.chmod(0o700)


@posix
def test_a_folder_of_another_user_is_not_used(
    empty_cache: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    refused(compiled, f"belongs to user {owner}, and this process is user {owner + 1}'s")


@posix
@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_file_that_others_can_write_to_is_not_used(empty_cache: Path, compiled: list[str], mode: int) -> None:
    first = evaluate()
    (file,) = files(empty_cache)
    file.chmod(mode)
    cache_folder._told.clear()
    with pytest.warns(CacheWarning, match="others may write to"):
        np.testing.assert_array_equal(evaluate(), first)
    assert len(compiled) == 2
    assert stat.S_IMODE(files(empty_cache)[0].stat().st_mode) == 0o600, "the new file is ours alone"


@posix
def test_a_file_of_another_user_is_not_used(
    empty_cache: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate()
    real = os.fstat

    def theirs(handle: int) -> os.stat_result:
        fields = list(real(handle))
        fields[stat.ST_UID] += 1
        return os.stat_result(fields)

    monkeypatch.setattr(cache_folder.os, "fstat", theirs)
    cache_folder._told.clear()
    with pytest.warns(CacheWarning, match="belongs to user"):
        evaluate()
    assert len(compiled) == 2


@posix
def test_what_is_made_is_for_this_user_alone(tmp_path: Path, compiled: list[str], environment: Environment) -> None:
    environment["LINKWORK_CACHE"] = str(tmp_path / "new" / "cache")
    before = os.umask(0)
    try:
        evaluate()
    finally:
        os.umask(before)
    for path in (tmp_path / "new", tmp_path / "new" / "cache"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    made = list((tmp_path / "new" / "cache").iterdir())
    assert len(made) == 2
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in made)


@posix
def test_neither_links_nor_pipes_are_read(empty_cache: Path, compiled: list[str], tmp_path: Path) -> None:
    evaluate()
    (file,) = files(empty_cache)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    evaluate()
    assert len(compiled) == 2
    assert not file.is_symlink()
    file.unlink()
    os.mkfifo(file, 0o600)
    cache_folder._told.clear()
    with pytest.warns(CacheWarning, match="is not a file"):
        evaluate()  # and does not wait for a writer
    assert len(compiled) == 3


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="a rule of other desktops")
@pytest.mark.parametrize("given", ["", "relative/path", None])
def test_a_cache_home_that_is_no_absolute_path_is_ignored(environment: Environment, given: str | None) -> None:
    del environment["LINKWORK_CACHE"]
    environment.pop("XDG_CACHE_HOME", None)
    environment["HOME"] = "/home/somebody"
    if given is not None:
        environment["XDG_CACHE_HOME"] = given
    assert cache.directory() == Path("/home/somebody/.cache/linkwork")
    environment["XDG_CACHE_HOME"] = "/caches"
    assert cache.directory() == Path("/caches/linkwork")


@pytest.mark.parametrize("home", ["", "relative", None])
def test_a_user_without_a_home_has_no_cache(
    compiled: list[str], environment: Environment, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    for name in ("LINKWORK_CACHE", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"):
        environment.pop(name, None)

    def nobody() -> Path:
        if home is None:
            raise RuntimeError("Could not determine home directory.")
        return Path(home)

    monkeypatch.setattr(Path, "home", nobody)
    evaluate()
    assert compiled == ["chain"]
    assert cache.info() == cache.Info(None, 0, 0, cache.LIMIT, "this user has no home folder")


def sealed(path: Path, payload: bytes) -> None:
    """Put this into a file, with all that makes it look right."""
    head = cache.MAGIC + bytes.fromhex(path.stem)
    path.write_bytes(head + (cache_folder.seal(head + payload) or b"") + payload)


def nonsense(payload: bytes) -> dict[str, bytes]:
    """Payloads that no compiler wrote."""
    (length,) = struct.unpack_from("<I", payload)
    about, objects = json.loads(payload[4 : 4 + length]), payload[4 + length :]
    first = objects[: about["sizes"][0]]

    def with_(objects: bytes, **changes: object) -> bytes:
        text = json.dumps({**about, **changes}).encode()
        return struct.pack("<I", len(text)) + text + objects

    def patched(place: int, value: int) -> bytes:
        return with_(objects[:place] + struct.pack("<Q", value) + objects[place + 8 :])

    return {
        "nothing": b"",
        "a length beyond the end": struct.pack("<I", 1 << 31) + payload[4:],
        "no description": struct.pack("<I", 4) + b"\xff\xfe{}",
        "a list": struct.pack("<I", 2) + b"[]",
        "depth": struct.pack("<I", 100_000) + b"[" * 100_000,
        "no sizes": with_(objects, sizes=None),
        "sizes of text": with_(objects, sizes=["a"]),
        "negative sizes": with_(objects, sizes=[-1, *about["sizes"][1:]]),
        "too large": with_(objects, sizes=[10**9]),
        "no objects": with_(b"", sizes=[]),
        "empty objects": with_(b"", sizes=[0, 0]),
        "noise": with_(bytes(range(256)) * 10, sizes=[2560]),
        "half an object": with_(first[: len(first) // 2], sizes=[len(first) // 2]),
        "an object too few": with_(objects[len(first) :], sizes=about["sizes"][1:]),
        "sections elsewhere": patched(40, 1 << 62),
        "sections behind the end": patched(40, len(first) - 64),
        "another machine": patched(16, 0xDEAD00010001),
        "three lanes": with_(objects, lanes=3),
        "no cost": with_(objects, cost=0),
        "more than that": with_(objects, extra=1),
    }


def test_nonsense_with_a_right_seal_is_compiled_anew(empty_cache: Path, compiled: list[str]) -> None:
    """Given to LLVM, it would end the process."""
    first = evaluate()
    (file,) = files(empty_cache)
    payload = file.read_bytes()[len(cache.MAGIC) + 64 :]
    for name, other in nonsense(payload).items():
        sealed(file, other)
        compiled.clear()
        np.testing.assert_array_equal(evaluate(), first)
        assert compiled == ["chain"], name
    sealed(file, payload)
    evaluate()
    assert compiled == ["chain"], "the right one is still used"


def test_a_file_without_the_secret_is_foreign(empty_cache: Path, compiled: list[str]) -> None:
    """A digest that anybody can compute is not enough: whoever has not the secret has not written the code."""
    first = evaluate()
    (file,) = files(empty_cache)
    data = bytearray(file.read_bytes())
    head = len(cache.MAGIC) + 32
    data[-1] ^= 0xFF
    data[head : head + 32] = hashlib.sha256(bytes(data[head + 32 :])).digest()
    file.write_bytes(bytes(data))
    np.testing.assert_array_equal(evaluate(), first)
    assert len(compiled) == 2
    (empty_cache / cache_folder.SECRET).write_bytes(b"short")
    evaluate()
    evaluate()
    assert len(compiled) == 3, "a new secret, with which files are sealed from now on"


def test_notes_of_nonsense_are_ignored(empty_cache: Path) -> None:
    key = "ab" * 32
    cache.save_note(key, {"x": 1})
    assert cache.load_note(key) == {"x": 1}
    (file,) = files(empty_cache)
    for payload in (b"", b"{", b"[1]", b"\xff", b"[" * 100_000):
        head = cache.NOTE + bytes.fromhex(key)
        file.write_bytes(head + (cache_folder.seal(head + payload) or b"") + payload)
        assert cache.load_note(key) is None
