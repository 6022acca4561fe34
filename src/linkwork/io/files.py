"""Which files a robot description may open: it is untrusted, and reads only files of its own.

Its own is what lies, with symbolic links resolved, below
- its folder;
- the package that its folder is in (a folder with package.xml or model.config), or the folder above one that is called
  "urdf" or the like, as descriptions and meshes usually lie side by side;
- folders that the user names: LINKWORK_ROBOTS, ROS_PACKAGE_PATH, and AMENT_PREFIX_PATH (share). Links in the latter two
  may lead elsewhere, as those of a workspace do.

Shared folders (/, /home, the temporary folder, world-writable ones) are no packages.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

from linkwork.errors import LoadError

PACKAGE_FILES = ("package.xml", "model.config")
BESIDE_MESHES = ("urdf", "sdf", "mjcf", "xacro")
ROBOTS = (("LINKWORK_ROBOTS", ""),)
WORKSPACES = (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share"))


class NotThere(LoadError):
    """A file that a description names and that is missing."""


def given_folders(variables: tuple[tuple[str, str], ...] = (*ROBOTS, *WORKSPACES)) -> Iterator[Path]:
    """The folders that the user names."""
    for variable, below in variables:
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            if os.path.isabs(entry):
                yield Path(os.path.normpath(entry), below)


def own_folders(home: Path) -> Iterator[Path]:
    """The folders below which lie the files of a description in `home`."""
    for folder in dict.fromkeys((Path(os.path.abspath(home)), Path(os.path.realpath(home)))):
        yield folder
        package = next((f for f in (folder, *folder.parents) if is_package(f)), None)
        if package is not None:
            yield package
        elif folder.name.lower() in BESIDE_MESHES and not shared(folder.parent):
            yield folder.parent


def is_package(folder: Path) -> bool:
    return not shared(folder) and any((folder / name).is_file() for name in PACKAGE_FILES)


def shared(folder: Path) -> bool:
    """Whether a folder is shared by many users."""
    folder = Path(os.path.realpath(folder))
    user = os.path.expanduser("~")  # stays "~" for a user without a home
    home = Path(os.path.realpath(user)) if os.path.isabs(user) else Path("/")
    temporary = Path(os.path.realpath(tempfile.gettempdir()))
    if len(folder.parts) <= 2 or folder == temporary or folder in (home, *home.parents):
        return True
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def is_own(path: Path, folders: Iterator[Path] | list[Path]) -> bool:
    """Whether a file, with links resolved, is below one of the folders or below one that the user names."""
    real = Path(os.path.realpath(path))
    plain = Path(os.path.normpath(os.path.abspath(path)))
    return any(_below(real, Path(os.path.realpath(f))) for f in (*folders, *given_folders(ROBOTS))) or any(
        _below(plain, f) for f in given_folders(WORKSPACES)
    )


def _below(path: Path, folder: Path) -> bool:
    """Whether a path is below a folder; all is below /, so there it must be in it."""
    return path.is_relative_to(folder) if folder != folder.parent else path.parent == folder


PACKAGES = ("package://", "model://")
NEAR = 2
"""A folder of a package's name counts without package.xml, too, if the description is at most so deep in it."""


def in_package(name: str, home: Path, what: str, there: Callable[[Path], bool] = os.path.isfile) -> Path:
    """What `package://name/rest` or `model://name/rest` stands for, seen from a description in `home`.

    Looked for in folders of that name that the description is in, in packages beside these, and in folders that the
    user names; `rest` stays inside the package, where its links lead too. `what` names it in errors.
    """
    package, _, rest = unquote(name.partition("://")[2]).lstrip("/").partition("/")
    inside = os.path.normpath(rest) if rest else ""
    if package in ("", ".", "..") or inside.startswith("..") or os.path.isabs(inside) or "\0" in name:
        raise LoadError(f"{what} leaves its package; name a file inside it")
    folders = _package_folders(package, home)
    found = next((f / inside for f in folders if there(f / inside) and is_own(f / inside, [f])), None)
    if found is None:
        raise NotThere(
            f"{what} is not there: no '{package}/{inside}' above or beside {home}; ROS_PACKAGE_PATH or LINKWORK_ROBOTS "
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


def checked(path: Path, home: Path, what: str, limit: int) -> Path:
    """The path, if it is a file of a description in `home` and no larger than `limit` bytes.

    `what` names it.
    """
    if not is_own(path, own_folders(home)):
        raise LoadError(
            f"{what} lies outside of the robot's folder {home}; move it there, or name a folder that holds "
            "both in LINKWORK_ROBOTS"
        )
    size = regular_size(path, what)
    if size > limit:
        raise LoadError(f"{what} has {size / 2**20:.0f} MiB; at most {limit >> 20} MiB are read")
    return path


def regular_size(path: Path, what: str) -> int:
    """The size of a regular file; a folder, pipe or device, which may block or never end, is refused."""
    where = "" if what == str(path) else f" ({path})"
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise NotThere(f"{what} is not there{where}; give the path of a file that is") from None
    except (OSError, ValueError) as problem:
        raise LoadError(f"{what} cannot be read: {problem}") from problem
    if stat.S_ISDIR(found.st_mode):
        raise LoadError(f"{what} is a directory{where}; give a file in it")
    if not stat.S_ISREG(found.st_mode):
        raise LoadError(f"{what} is no file but a pipe, socket or device{where}; give a regular file")
    return found.st_size
