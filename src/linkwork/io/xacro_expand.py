"""The process that expands a xacro file: `python -P -m linkwork.io.xacro_expand FILE FOLDER...`.

Before the first expression is evaluated, the process gives up all that it does not need: an audit hook refuses every
event but opening files below these folders for reading; time, memory and written files have limits.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from linkwork.system.processes import limit

MEMORY = 2 << 30
SECONDS = 3
"""Of processor time; the macros of a large robot take less than one."""
HARMLESS = frozenset(
    {
        "builtins.id", "code.__new__", "compile", "exec", "object.__getattr__", "object.__setattr__",
        "sys._getframe", "sys._getframemodulename", "sys.excepthook", "sys.unraisablehook", "cpython.run_file",
    }
)  # fmt: skip
"""Events that touch nothing outside of the process: expressions are compiled and executed."""


class Refused(Exception):
    """Something that the expansion of a file has no reason to do."""


def main(file: str, folders: list[str]) -> None:
    """Write the expanded document to stdout, or the reason why not to stderr."""
    import xml.dom.minidom
    import xml.dom.pulldom
    import xml.parsers.expat
    from xml.dom import expatbuilder

    import xacro
    import xacro.substitution_args
    import yaml

    modules = (xml.dom.minidom, xml.dom.pulldom, xml.parsers.expat, expatbuilder, yaml)
    assert all(modules)  # loaded now, as nothing can be imported later
    b"", b"".decode("utf-8"), "é".encode("ascii", "replace")
    real = [os.path.realpath(folder) for folder in folders]
    xacro.substitution_args._eval_find = lambda package: _package(package, real)
    limit(SECONDS, MEMORY)
    sys.addaudithook(lambda event, arguments: _audit(event, arguments, real))
    try:
        text = xacro.process_file(file).toxml("utf-8")
    except BaseException as problem:  # of any kind: it is about the file
        with suppress(Exception):
            sys.stderr.write(f"{type(problem).__name__}: {' '.join(str(problem).split())}\n")
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.buffer.write(text)
    sys.stdout.flush()
    os._exit(0)


def _audit(event: str, arguments: tuple[Any, ...], folders: list[str]) -> None:
    if event == "open":
        path, _, flags = arguments
        reads = not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if reads and isinstance(path, str | bytes) and _inside(os.fsdecode(path), folders):
            return
        raise Refused(f"the file {path!r} is not one of the robot's own; LINKWORK_ROBOTS may name its folder")
    if event not in HARMLESS and not event.startswith(("glob.", "os.listdir", "os.scandir")):
        raise Refused(f"a robot file has no reason for '{event}'")


def _inside(path: str, folders: list[str]) -> bool:
    real = os.path.realpath(path)
    return any(os.path.commonpath([real, folder]) == folder != os.sep for folder in folders)


def _package(name: str, folders: list[str]) -> str:
    """The folder of a package, among those of the description and those that the user names."""
    for folder in map(Path, folders):
        for place in (folder, *folder.parents, folder / name, *(above / name for above in folder.parents)):
            if place.name == name and place.is_dir() and _inside(str(place), folders):
                return str(place)
    raise Refused(f"the package '{name}' is not in the robot's folder; LINKWORK_ROBOTS may name the folder it is in")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
