"""The file that a mesh's name in a robot description stands for. No other file is opened.

`package://name/rest` and `model://name/rest` are looked for in folders of that name that the description is in, in
packages (with package.xml or model.config) beside these, and in the folders that the user names; `rest` stays inside
the package, where its links lead too. Other names are relative to the description or absolute, and stay among its own
files (io/files.py). Nothing is fetched from a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from linkwork.errors import LoadError, listing
from linkwork.io.files import checked, given_folders, is_own, is_package, own_folders, regular_size, shared
from linkwork.model.visual import MeshFile

SUFFIXES = (".stl", ".obj", ".dae")
MAX_BYTES = 32 * 2**20
NEAR = 2
"""A folder of the package's name counts without package.xml, too, if the description is at most so deep in it."""
PACKAGES = ("package://", "model://")


def locate(mesh: MeshFile) -> Path:
    """The file of a mesh; LoadError says why there is none."""
    description = Path(mesh.description)
    if not description.is_file():
        raise LoadError(f"mesh '{mesh.name}': a robot given as text has no folder to look in; load it from its file")
    home = Path(os.path.abspath(description)).parent
    if "\0" in mesh.name:
        raise LoadError(f"mesh {mesh.name!r} names no file")
    path = _in_package(mesh.name, home) if mesh.name.startswith(PACKAGES) else _beside(mesh.name, home)
    if path.suffix.lower() not in SUFFIXES:
        raise LoadError(f"mesh '{mesh.name}': '{path.suffix}' is not read; convert it to one of {listing(SUFFIXES)}")
    size = regular_size(path, f"mesh '{mesh.name}'")
    if size > MAX_BYTES:
        raise LoadError(f"mesh '{mesh.name}' has {size / 2**20:.0f} MiB; at most {MAX_BYTES >> 20} MiB are read")
    return path


def _in_package(name: str, home: Path) -> Path:
    package, _, rest = unquote(name.partition("://")[2]).lstrip("/").partition("/")
    inside = os.path.normpath(rest)
    if package in ("", ".", "..") or inside.startswith("..") or os.path.isabs(inside):
        raise LoadError(f"mesh '{name}' leaves its package; name a file inside it")
    found = next(
        (f / inside for f in _package_folders(package, home) if os.path.isfile(f / inside) and is_own(f / inside, [f])),
        None,
    )
    if found is None:
        raise LoadError(
            f"mesh '{name}' is not there: no '{package}/{inside}' above or beside {home}; ROS_PACKAGE_PATH "
            "may name more folders with packages"
        )
    return found


def _package_folders(package: str, home: Path) -> Iterator[Path]:
    own = list(own_folders(home))
    for n, above in enumerate((home, *home.parents)):
        if above.name == package and (is_package(above) or (n <= NEAR and not shared(above))):
            yield above
        if is_package(above / package) or is_own(above / package, own):
            yield above / package
    for folder in given_folders():
        yield folder / package


def _beside(name: str, home: Path) -> Path:
    scheme, separator, rest = name.partition("://")
    if separator and scheme != "file":
        raise LoadError(f"mesh '{name}': '{scheme}://' is not followed; meshes are read from files only")
    path = Path(os.path.normpath(home / (unquote(rest) if separator else name)))
    return checked(path, home, f"mesh '{name}'", MAX_BYTES)
