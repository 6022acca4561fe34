"""The file that a mesh's name in a robot description stands for. No other file is opened.

`package://name/rest` and `model://name/rest` are looked for in folders of that name that the description is in, in
packages (with package.xml or model.config) beside these, and in the folders that the user names; `rest` stays inside
the package, where its links lead too. Other names are relative to the description or absolute, and stay among its own
files (io/files.py). Nothing is fetched from a network.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from linkwork.errors import LoadError, listing
from linkwork.io.files import PACKAGES, checked, in_package, regular_size
from linkwork.model.visual import MeshFile

SUFFIXES = (".stl", ".obj", ".dae")
MAX_BYTES = 32 * 2**20


def locate(mesh: MeshFile) -> Path:
    """The file of a mesh; LoadError says why there is none."""
    description = Path(mesh.description)
    if not description.is_file():
        raise LoadError(f"mesh '{mesh.name}': a robot given as text has no folder to look in; load it from its file")
    home = Path(os.path.abspath(description)).parent
    if "\0" in mesh.name:
        raise LoadError(f"mesh {mesh.name!r} names no file")
    packaged = mesh.name.startswith(PACKAGES)
    path = in_package(mesh.name, home, f"mesh '{mesh.name}'") if packaged else _beside(mesh.name, home)
    if path.suffix.lower() not in SUFFIXES:
        raise LoadError(f"mesh '{mesh.name}': '{path.suffix}' is not read; convert it to one of {listing(SUFFIXES)}")
    size = regular_size(path, f"mesh '{mesh.name}'")
    if size > MAX_BYTES:
        raise LoadError(f"mesh '{mesh.name}' has {size / 2**20:.0f} MiB; at most {MAX_BYTES >> 20} MiB are read")
    return path


def _beside(name: str, home: Path) -> Path:
    scheme, separator, rest = name.partition("://")
    if separator and scheme != "file":
        raise LoadError(f"mesh '{name}': '{scheme}://' is not followed; meshes are read from files only")
    path = Path(os.path.normpath(home / (unquote(rest) if separator else name)))
    return checked(path, home, f"mesh '{name}'", MAX_BYTES)
