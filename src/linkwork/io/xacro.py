"""Xacro, macros that become URDF: recognised, and expanded where the package xacro is installed.

The package evaluates expressions of Python that a file from a stranger may contain, so it runs in a process of its own
(`xacro_expand.py`), which may open files of the robot's own for reading and nothing else, with bounded time and memory.
Arguments have the defaults of the file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from linkwork.errors import LoadError, MissingExtra
from linkwork.io.files import given_folders, own_folders
from linkwork.io.xml import MAX_BYTES, Element

SECONDS = 8
"""Of time that passes, for a busy machine: `xacro_expand` bounds processor time at less."""

PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG")
"""The environment variables that Python itself needs; no others are passed on."""


def is_xacro(root: Element) -> bool:
    """Whether a description has macros or expressions in it."""
    if root.tag != "robot":
        return False
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag.startswith("xacro:") or any("${" in x or "$(" in x for x in element.attributes.values()):
            return True
        stack += element.children
    return False


def expanded(root: Element, path: Path | None) -> bytes:
    """The URDF text of a xacro file."""
    by_hand = "expand it by 'xacro FILE > robot.urdf' and load that"
    if path is None:
        raise root.error(f"this is xacro, and as text it has no folder to include files from; {by_hand}")
    if find_spec("xacro") is None:
        missing = MissingExtra("xacro", "xacro", "expanding xacro files")
        raise LoadError(f"{path} is a xacro file, not URDF. {missing}; or {by_hand}")
    path = path.absolute()
    folders = [*own_folders(path.parent), *given_folders()]
    environment = {n: os.environ[n] for n in PASSED_ON if n in os.environ}
    command = [sys.executable, "-P", "-m", "linkwork.io.xacro_expand", str(path), *map(str, dict.fromkeys(folders))]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise LoadError(f"{path}: xacro takes more than {SECONDS} s; {by_hand}") from None
    if done.returncode != 0 or len(done.stdout) > MAX_BYTES:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it took too much time or memory"]
        raise LoadError(f"{path}: xacro cannot expand it: {lines[-1][:500]}")
    return done.stdout
