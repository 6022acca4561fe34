"""Object code on disk, so that a kernel is compiled once per machine.

A file is named by its key: a digest of the program, the options, the CPU with its features, the versions of LLVM
and Linkwork and the source of this package. It holds the key, the digest of what follows, and the object code.
Files are written beside and moved into place, so that readers see all or nothing; a file whose key or digest does
not match is never used. The oldest files go when the cache outgrows its limit.

``LINKWORK_CACHE`` names another directory, or is ``off``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import sys
import tempfile
from dataclasses import asdict
from functools import cache as remember
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from linkwork.kernels.image import Image, Options

MAGIC, NOTE = b"LINKWORK-KERNEL1", b"LINKWORK-NOTE-01"
SUFFIX = ".kernel"
TEMPORARY = ".new-"
LIMIT = 1 << 30


class Info(NamedTuple):
    """What is in the cache."""

    directory: Path | None
    files: int
    bytes: int
    limit: int


def directory() -> Path | None:
    """Where the cache is; None if it is switched off."""
    chosen = os.environ.get("LINKWORK_CACHE")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "linkwork"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "linkwork" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "linkwork"


def info() -> Info:
    """Where the cache is, how many kernels it holds and how large they are."""
    files = _files()
    return Info(directory(), len(files), sum(size for _, size, _ in files), LIMIT)


def clear() -> int:
    """Delete every cached kernel; the number of files deleted."""
    files = _files()
    for path, _, _ in files:
        path.unlink(missing_ok=True)
    root = directory()
    for leftover in root.glob(TEMPORARY + "*") if root is not None else ():
        leftover.unlink(missing_ok=True)
    return len(files)


def key_of(program_digest: str, options: Options) -> str:
    """The name of a compiled program: everything that its object code depends on."""
    identity = [program_digest, asdict(options), llvm.llvm_version_info, llvmlite.__version__, *_versions()]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def load(key: str) -> Image | None:
    """The image of this key, if it is there and intact."""
    path = _path(key)
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except OSError:
        return None
    image = decode(data, key)
    if image is not None:
        with contextlib.suppress(OSError):
            os.utime(path)
    return image


def save(key: str, image: Image) -> None:
    """Store an image; a cache that cannot be written is no reason to fail."""
    _write(_path(key), encode(image, key))


def load_note(key: str) -> dict[str, Any] | None:
    """The note of this key, if it is there and intact."""
    path = _path(key)
    try:
        data = b"" if path is None else path.read_bytes()
    except OSError:
        return None
    head, payload = NOTE + bytes.fromhex(key), data[len(NOTE) + 64 :]
    if data[: len(head)] != head or data[len(head) : len(head) + 32] != hashlib.sha256(payload).digest():
        return None
    note: dict[str, Any] = json.loads(payload)
    return note


def save_note(key: str, note: dict[str, Any]) -> None:
    """Store a few words about something, under the same rules as images."""
    payload = json.dumps(note).encode()
    _write(_path(key), NOTE + bytes.fromhex(key) + hashlib.sha256(payload).digest() + payload)


def _write(path: Path | None, data: bytes) -> None:
    """All or nothing, so that other processes never see half a file."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError:
        return
    evict(LIMIT)


def evict(limit: int) -> int:
    """Delete the files that were not used for longest until the rest fit; the number deleted."""
    files = sorted(_files(), key=lambda entry: entry[2])
    total = sum(size for _, size, _ in files)
    deleted = 0
    for path, size, _ in files:
        if total <= limit:
            break
        path.unlink(missing_ok=True)
        total -= size
        deleted += 1
    return deleted


def encode(image: Image, key: str) -> bytes:
    """Magic, key, digest of the rest; then a description and the objects one after another."""
    about = {"workspace": image.workspace, "lanes": image.lanes, "cost": image.cost}
    text = json.dumps({**about, "sizes": [len(data) for data in image.objects]}).encode()
    payload = struct.pack("<I", len(text)) + text + b"".join(image.objects)
    return MAGIC + bytes.fromhex(key) + hashlib.sha256(payload).digest() + payload


def decode(data: bytes, key: str) -> Image | None:
    """The image, or None unless magic, key and digest all match."""
    head = len(MAGIC)
    payload = data[head + 64 :]
    if data[: head + 32] != MAGIC + bytes.fromhex(key):
        return None
    if data[head + 32 : head + 64] != hashlib.sha256(payload).digest():
        return None
    (length,) = struct.unpack_from("<I", payload)
    about = json.loads(payload[4 : 4 + length])
    objects, place = [], 4 + length
    for size in about.pop("sizes"):
        objects.append(payload[place : place + size])
        place += size
    return Image(tuple(objects), **about)


def _path(key: str) -> Path | None:
    root = directory()
    return None if root is None else root / (key + SUFFIX)


def _files() -> list[tuple[Path, int, float]]:
    root = directory()
    found = []
    for path in root.glob("*" + SUFFIX) if root is not None and root.is_dir() else ():
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((path, status.st_size, status.st_mtime))
    return found


@remember
def _versions() -> list[str]:
    """Linkwork's version, and the source of this package for those who work on it."""
    try:
        release = version("linkwork")
    except PackageNotFoundError:
        release = "source"
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return [release, digest]
