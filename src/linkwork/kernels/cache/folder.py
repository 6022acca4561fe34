"""The folder of the cache: where it is, whether machine code from it may be run, and its files.

Anyone who can write to it can have this process run any code. So it must belong to this user, and no other user may
write to it or to its files; it is created so (modes 0700 and 0600). Otherwise it is neither read nor written, with one
warning. A secret in it, readable by this user alone, authenticates files that this user's Linkwork wrote.

``LINKWORK_CACHE`` names another folder, or is ``off``.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import stat
import tempfile
import warnings
from pathlib import Path

from linkwork.errors import CacheWarning, users_level
from linkwork.system.files import OWN, cache_place, distrust

TEMPORARY, SECRET = ".new-", ".secret"
LARGEST = 1 << 30
"""Bytes of a file that is read."""

_told: set[str] = set()


def directory() -> Path | None:
    """Where the cache is; None if it is switched off, or there is no place for it."""
    chosen = os.environ.get("LINKWORK_CACHE")
    if chosen:
        return None if chosen == "off" else Path(chosen).absolute()
    return cache_place()


def problem() -> str | None:
    """Why the cache is not used, in a sentence; None if it is."""
    path = directory()
    if path is None:
        return "LINKWORK_CACHE is off" if os.environ.get("LINKWORK_CACHE") == "off" else "this user has no home folder"
    try:
        return distrust(os.stat(path), str(path), stat.S_ISDIR, "chmod 700")
    except FileNotFoundError:
        return None
    except OSError as why:
        return f"{path} cannot be used ({why.strerror})"


def missing() -> str | None:
    """Why nothing can be cached, without a warning: a home that does not exist or cannot be written."""
    path = directory()
    there = path and next((p for p in (path, *path.parents) if p.exists()), path)
    return f"nothing can be written to {there}" if there and not os.access(there, os.W_OK) else None


def usable() -> Path | None:
    """The folder, if it may be used; otherwise warn once why not."""
    path, why = directory(), problem()
    if path is None or why is None:
        return path
    _tell(why)
    return None


def read(name: str) -> bytes | None:
    """The content of a file, if it exists and no other user can have written it."""
    folder = usable()
    if folder is None:
        return None
    path = folder / name
    try:
        handle = os.open(path, OWN)
    except OSError:
        return None
    with contextlib.suppress(OSError), os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        why = distrust(status, str(path), stat.S_ISREG, "delete it, or chmod 600")
        if why is not None:
            _tell(why)
        elif status.st_size <= LARGEST:
            return file.read()
    return None


def write(name: str, data: bytes) -> None:
    """Write a file atomically; a folder that cannot be written is no error."""
    folder = usable()
    if folder is not None:
        with contextlib.suppress(OSError):
            os.replace(_written(folder, data), folder / name)


def seal(data: bytes) -> bytes | None:
    """A digest that only this user's Linkwork can compute; None if its secret cannot be stored."""
    secret = read(SECRET)
    if secret is None or len(secret) != 32:
        secret = _new_secret(replace=secret is not None)
    return None if secret is None else hmac.new(secret, data, hashlib.sha256).digest()


def _new_secret(replace: bool) -> bytes | None:
    folder = usable()
    if folder is None:
        return None
    with contextlib.suppress(OSError):
        made = _written(folder, os.urandom(32))
        try:
            if replace:
                os.replace(made, folder / SECRET)
            else:
                os.link(made, folder / SECRET)  # unless another process was first: then its secret is used
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                os.unlink(made)
    secret = read(SECRET)
    return secret if secret is not None and len(secret) == 32 else None


def _written(folder: Path, data: bytes) -> str:
    """The path of a new file with this content, readable by this user alone."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(0o700, exist_ok=True)
    handle, path = tempfile.mkstemp(dir=folder, prefix=TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except BaseException:
        os.unlink(path)
        raise
    return path


def _tell(why: str) -> None:
    if why not in _told and os.environ.get("LINKWORK_CACHE") != "off":
        _told.add(why)
        where = "LINKWORK_CACHE names another folder, or is 'off'"
        warnings.warn(f"kernels are compiled without the cache: {why}. {where}", CacheWarning, stacklevel=users_level())
