"""Which file a mesh's name in a robot description stands for. Only the file named is opened, never one elsewhere.

`package://name/rest` and `model://name/rest` are looked for in the folders above the description and beside them, and
in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH; `rest` stays inside the package. Other names are relative to the description
or absolute, and stay below the folder that holds the description's folder. Nothing is fetched from a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from linkwork.errors import LoadError, listing
from linkwork.model.visual import MeshFile

SUFFIXES = (".stl", ".obj", ".dae")
MAX_BYTES = 128 * 2**20
PACKAGES = ("package://", "model://")


def locate(mesh: MeshFile) -> Path:
    """The file of a mesh; LoadError says why there is none."""
    description = Path(mesh.description)
    if not description.is_file():
        raise LoadError(f"mesh '{mesh.name}': a robot given as text has no folder to look in; load it from its file")
    home = Path(os.path.abspath(description)).parent
    path = _in_package(mesh.name, home) if mesh.name.startswith(PACKAGES) else _beside(mesh.name, home)
    if path.suffix.lower() not in SUFFIXES:
        raise LoadError(f"mesh '{mesh.name}': '{path.suffix}' is not read; convert it to one of {listing(SUFFIXES)}")
    if not path.is_file():
        raise LoadError(f"mesh '{mesh.name}' is not there: {path}")
    if path.stat().st_size > MAX_BYTES:
        raise LoadError(f"mesh '{mesh.name}' has more than {MAX_BYTES >> 20} MiB")
    return path


def _in_package(name: str, home: Path) -> Path:
    package, _, rest = unquote(name.partition("://")[2]).lstrip("/").partition("/")
    inside = os.path.normpath(rest)
    if package in ("", ".", "..") or inside.startswith("..") or os.path.isabs(inside):
        raise LoadError(f"mesh '{name}' leaves its package; name a file inside it")
    folders = list(_package_folders(package, home))
    found = next((f / inside for f in folders if (f / inside).is_file()), None)
    if found is None:
        raise LoadError(f"mesh '{name}' is not there: no '{package}/{inside}' above or beside {home}; ROS_PACKAGE_PATH "
                        "may name more folders with packages")
    return found


def _package_folders(package: str, home: Path) -> Iterator[Path]:
    for above in (home, *home.parents):
        if above.name == package:
            yield above
        yield above / package
    for variable, below in (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share")):
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(entry, below, package)


def _beside(name: str, home: Path) -> Path:
    scheme, separator, rest = name.partition("://")
    if separator and scheme != "file":
        raise LoadError(f"mesh '{name}': '{scheme}://' is not followed; meshes are read from files only")
    path = Path(os.path.normpath(home / (unquote(rest) if separator else name)))
    if not path.is_relative_to(home.parent):
        raise LoadError(f"mesh '{name}' lies outside of the robot's folder {home.parent}; move it there")
    return path
