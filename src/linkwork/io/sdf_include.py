"""<include> in SDF files: the models that it names take its place, read as safely as meshes.

`model://name` is a folder with model.config, which names the file; `model://name/file.sdf` and paths beside the
description are files themselves. <name>, <pose> and <static> of the include replace the model's own. Nothing is fetched
from a network. What is missing is left out with a warning, as a robot without its scenery is still one; files of others
are refused.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from linkwork.errors import LoadError
from linkwork.io.files import PACKAGES, NotThere, checked, in_package, is_own, own_folders
from linkwork.io.xml import MAX_BYTES, MAX_ELEMENTS, Element, parse, read

MAX_NESTED = 16
MAX_FILES = 1_000
CONFIG = "model.config"
NETWORK = ("http://", "https://", "fuel://")
REPLACED = ("name", "pose", "static")


def included(root: Element, path: Path | None) -> None:
    """Put the models that <include> elements name in their place, in a file and in all that it includes."""
    _Including().into(root, None if path is None else Path(os.path.abspath(path)))


@dataclass
class _Including:
    """What all files of a robot share: bytes, files and elements so far."""

    bytes: int = 0
    files: int = 0
    elements: int = 0

    def into(self, owner: Element, path: Path | None, above: tuple[Path, ...] = ()) -> None:
        stack = [owner]
        while stack:
            element = stack.pop()
            self.elements += 1
            if self.elements > MAX_ELEMENTS:
                raise element.error(f"more than {MAX_ELEMENTS} elements with all that is included")
            if element.tag in ("world", "model") and element.child("include") is not None:
                element.children = [new for child in element.children for new in self._in_place_of(child, path, above)]
            if element.tag in ("sdf", "world", "model"):
                stack += [c for c in element.children if c.tag in ("world", "model") and c.file == owner.file]

    def _in_place_of(self, child: Element, path: Path | None, above: tuple[Path, ...]) -> list[Element]:
        if child.tag != "include":
            return [child]
        uri = child.child("uri")
        name = "" if uri is None else uri.text
        if not name or name.startswith(NETWORK):
            child.warn(f"left out: {name or 'an <include> without <uri>'} is not on this machine; download it first")
            return []
        if path is None:
            child.warn(f"left out: '{name}': a robot given as text has no folder to look in; load it from its file")
            return []
        try:
            file = _file(name, path.parent)
        except NotThere as problem:
            child.warn(f"left out: {problem}")
            return []
        except LoadError as problem:
            raise child.error(str(problem)) from None
        if file in above or len(above) >= MAX_NESTED:
            raise child.error(f"'{name}': models include each other in a circle, or more than {MAX_NESTED} deep")
        model = self._model(child, file, (*above, file))
        return [_renamed(model, child)]

    def _model(self, child: Element, file: Path, above: tuple[Path, ...]) -> Element:
        data = read(file)
        self.bytes, self.files = self.bytes + len(data), self.files + 1
        if self.bytes > MAX_BYTES or self.files > MAX_FILES:
            raise child.error(f"it includes more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB; so much is not read")
        root = parse(data, str(file))
        models = root.all("model")
        if root.tag != "sdf" or len(models) != 1:
            raise child.error(f"{file} has {len(models)} models; an included file has one <model> in <sdf>")
        self.into(root, file, above)
        return models[0]


def _file(name: str, home: Path) -> Path:
    """The file of a URI; for a folder, the one that its model.config names."""
    what = f"include '{name}'"
    if name.startswith(PACKAGES):
        found = in_package(name, home, what, os.path.exists)
    else:
        scheme, separator, rest = name.partition("://")
        if separator and scheme != "file":
            raise LoadError(f"{what}: '{scheme}://' is not followed; models are read from files only")
        found = Path(os.path.normpath(home / (unquote(rest) if separator else name)))
        if not is_own(found, own_folders(home)):
            raise LoadError(f"{what} lies outside of the robot's folder {home}; LINKWORK_ROBOTS may name another")
    if not found.is_dir():
        return checked(found, found.parent, what, MAX_BYTES)
    config = parse(read(checked(found / CONFIG, found, f"{what}: its {CONFIG}", MAX_BYTES)), str(found / CONFIG))
    named = config.all("sdf")
    if not named:
        raise LoadError(f"{what}: {found / CONFIG} names no <sdf> file")
    last = max(named, key=lambda e: [int(n) for n in e.get("version", "0").split(".") if n.isdecimal()])
    return checked(Path(os.path.normpath(found / last.text)), found, f"{what}: '{last.text}'", MAX_BYTES)


def _renamed(model: Element, include: Element) -> Element:
    """The model with the name, pose and so on of its <include>."""
    attributes, children = dict(model.attributes), list(model.children)
    for tag in REPLACED:
        given = include.child(tag)
        if given is None:
            continue
        if tag == "name":
            attributes["name"] = given.text
        else:
            children = [given, *(c for c in children if c.tag != tag)]
    if include.child("placement_frame") is not None:
        include.warn("<placement_frame> is not read; the pose is that of the model's own frame")
    return Element("model", attributes, model.line, model.file, children, model.text)
