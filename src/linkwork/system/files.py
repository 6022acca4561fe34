"""Where a user's cache is, and whether others can write there.

- Linux: below ``XDG_CACHE_HOME``, else ``~/.cache``. macOS: ``~/Library/Caches``. Both have owners and modes.
- Windows: below ``LOCALAPPDATA``. Python sees neither owners nor access lists there; a user's profile is open to this
  user and administrators alone, and whoever names another folder answers for it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

OTHERS = stat.S_IWGRP | stat.S_IWOTH

NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""For opening files that may be pipes."""

OWN = os.O_RDONLY | NO_WAIT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""For reading a file itself: neither a link to elsewhere nor a pipe without a writer, and bytes as they are."""


def cache_place(system: str = sys.platform, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The folder for Linkwork's cache; None for a user without a home."""
    if system == "win32":
        base = _absolute(environment.get("LOCALAPPDATA", "")) or _home()
        return base and base / "linkwork" / "cache"
    if system == "darwin":
        home = _home()
        return home and home / "Library" / "Caches" / "linkwork"
    # a relative or empty XDG_CACHE_HOME is to be ignored
    base = _absolute(environment.get("XDG_CACHE_HOME", ""))
    if base is None:
        home = _home()
        base = home and home / ".cache"
    return base and base / "linkwork"


def distrust(status: os.stat_result, path: str, kind: object, remedy: str) -> str | None:
    """Why code from there must not be run; None if it may."""
    if not kind(status.st_mode):  # type: ignore[operator]
        return f"{path} is not a {'folder' if kind is stat.S_ISDIR else 'file'}"
    if not hasattr(os, "geteuid"):
        return None
    if status.st_uid != os.geteuid():
        return f"{path} belongs to user {status.st_uid}, and this process is user {os.geteuid()}'s"
    if status.st_mode & OTHERS:
        return f"others may write to {path} (mode {stat.S_IMODE(status.st_mode):04o}): {remedy}"
    return None


def _home() -> Path | None:
    try:
        return _absolute(str(Path.home()))
    except RuntimeError:  # a user without an entry in the system's list
        return None


def _absolute(path: str) -> Path | None:
    return Path(path) if os.path.isabs(path) else None
