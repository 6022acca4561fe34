"""Object code on disk, so that a kernel is compiled once per machine.

A file is named by its key: a digest of the program, the options, the CPU with its features, the version of LLVM
and the source of this package. It holds the key, a keyed digest of what follows (its seal, see
:mod:`linkwork.kernels.cache.folder`), and the object code. Files are written under another name and moved into place,
so that readers see all or nothing; a file whose key or seal does not match, or whose content is malformed, is never
used. The least recently used files are deleted when the cache exceeds its limit. Whether it does is looked up once in a
while: with many files that takes longer than to write one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import json
import os
import struct
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from linkwork.kernels.cache import folder
from linkwork.kernels.cache.folder import SECRET, TEMPORARY, directory
from linkwork.kernels.cache.source_files import digest_of, python_files
from linkwork.kernels.object_code.compile import linkable
from linkwork.kernels.object_code.image import Image, Options

MAGIC, NOTE = b"LINKWORK-KERNEL2", b"LINKWORK-NOTE-02"
SUFFIX = ".kernel"
NUMBERS = ("workspace", "lanes", "cost", "tiles")
"""What is saved of an image besides its object code."""

LIMIT = 1 << 30
LOOKS = 64
"""How often the size of the cache is looked up while as many bytes are written as it may hold, on average."""


class Info(NamedTuple):
    """What is in the cache."""

    directory: Path | None
    files: int
    bytes: int
    limit: int
    problem: str | None = None
    """Why it is not used."""


def info() -> Info:
    """Where the cache is, how many kernels it holds and how large they are."""
    files = _files()
    return Info(directory(), len(files), sum(size for _, size, _ in files), LIMIT, folder.problem() or folder.missing())


def clear() -> int:
    """Delete every cached kernel; the number of files deleted."""
    files = _files()
    root, deleted = directory(), 0
    for path, _, _ in files:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            deleted += 1
    for leftover in (*root.glob(TEMPORARY + "*"), root / SECRET) if root is not None else ():
        with contextlib.suppress(OSError):
            leftover.unlink(missing_ok=True)
    return deleted


def key_of(program_digest: str, options: Options) -> str:
    """The name of a compiled program: everything that its object code depends on."""
    identity = [program_digest, asdict(options), llvm.llvm_version_info, llvmlite.__version__, source()]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def load(key: str) -> Image | None:
    """The image of this key, if it is there and intact."""
    payload = _opened(MAGIC, key)
    image = None if payload is None else decode(payload)
    if image is not None and (root := directory()) is not None:
        with contextlib.suppress(OSError):
            os.utime(root / (key + SUFFIX))
    return image


def save(key: str, image: Image) -> None:
    """Store an image; a cache that cannot be written is no reason to fail."""
    _keep(MAGIC, key, encode(image))


def load_note(key: str) -> dict[str, Any] | None:
    """The note of this key, if it is there and intact."""
    payload = _opened(NOTE, key)
    try:
        note = None if payload is None else json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) else None


def save_note(key: str, note: dict[str, Any]) -> None:
    """Store a note, under the same rules as images."""
    _keep(NOTE, key, json.dumps(note).encode())


def _opened(kind: bytes, key: str) -> bytes | None:
    """The content of a file of this kind after kind, key and seal, if all three are right."""
    data, head = folder.read(key + SUFFIX), kind + bytes.fromhex(key)
    if data is None or data[: len(head)] != head:
        return None
    payload = data[len(head) + 32 :]
    seal = folder.seal(head + payload)
    return payload if seal is not None and hmac.compare_digest(seal, data[len(head) : len(head) + 32]) else None


def _keep(kind: bytes, key: str, payload: bytes) -> None:
    head = kind + bytes.fromhex(key)
    seal = folder.seal(head + payload)
    if seal is not None:
        folder.write(key + SUFFIX, head + seal + payload)
        if looks(key, len(payload), LIMIT):
            evict(LIMIT)


def looks(key: str, size: int, limit: int) -> bool:
    """Whether to look up the size of the cache after a file of this key and size.

    The larger it is, the more often. Keys are digests, as good as random numbers: so processes that write one file each
    need no common count.
    """
    return int(key[:8], 16) * limit < size * LOOKS << 32


def evict(limit: int) -> int:
    """Delete the least recently used files until the rest fit; the number deleted."""
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


def encode(image: Image) -> bytes:
    """A description, and the objects one after another."""
    about = {name: getattr(image, name) for name in NUMBERS}
    text = json.dumps({**about, "sizes": [len(data) for data in image.objects]}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(image.objects)


def decode(payload: bytes) -> Image | None:
    """The image; None if it is malformed."""
    try:
        (length,) = struct.unpack_from("<I", payload)
        about = json.loads(payload[4 : 4 + length])
        sizes = about.pop("sizes")
        numbers = [*about.values(), *sizes]
        if set(about) != {*NUMBERS} or not all(type(n) is int and n >= 0 for n in numbers):
            return None
        objects, place = [], 4 + length
        for size in sizes:
            objects.append(payload[place : place + size])
            place += size
        image = Image(tuple(objects), **about)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    fits = (
        place == len(payload)
        and image.lanes in (1, 2, 4, 8, 16)
        and min(image.cost, image.tiles) > 0
        and image.workspace % 64 == 0
    )
    return image if fits and linkable(image.objects) else None


def _files() -> list[tuple[Path, int, float]]:
    root, found = directory(), list[tuple[Path, int, float]]()
    if root is None:
        return found
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.endswith(SUFFIX):
                    status = entry.stat()
                    found.append((Path(entry.path), status.st_size, status.st_mtime))
    return found


@functools.cache
def source() -> str:
    """A digest of the source of this package."""
    return digest_of(python_files(Path(__file__).parents[1].as_posix()))
