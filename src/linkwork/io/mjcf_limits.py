"""Limits of MJCF files before MuJoCo compiles them: bounded sizes, and no files but their own.

The compiler follows includes, copies what <replicate> and <attach> repeat, and allocates whatever sizes a file names.
All of that is checked before: every included file and attached model is read here as the file itself is, copies
multiply, and every file that is named must be one of the robot's own (io/files.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from linkwork.errors import LoadError
from linkwork.io.files import checked
from linkwork.io.xml import MAX_BYTES, MAX_ELEMENTS, Element, parse, read

MAX_BODIES = 2_000
MAX_COPIED = 20_000
"""Elements of any kind, copies counted."""
MAX_FILES = 1_000
MAX_ASSETS = 128 * 2**20
"""Bytes of meshes and textures, each as often as it is named."""
HULL = 8
"""How much longer a mesh takes that needs its convex hull."""
MAX_PIXELS = 2**25
MAX_HEIGHTS = 2**23
"""Of all textures, of all height fields; and cells of flexible bodies, in MAX_BODIES."""
MAX_RESOLUTION = 100
"""Of builtin meshes, and of octrees."""
MAX_POINTS = 100 * MAX_RESOLUTION**2
"""Of all builtin meshes."""
MAX_ROOM = 1_000
"""Entries that a file reserves for users: keyframes, user data, samples."""
STEPPING, MAX_STEPPING = ("njmax", "nconmax", "nstack"), 10_000_000
"""Rows, contacts and numbers that old files reserve for simulating: addresses only, which nothing touches here."""
MAX_NESTED = 8
"""Depth of models that attach models."""

COPIES = {"replicate", "composite", "flexcomp"}
ROOM = {("numeric", "size"), ("user", "dim"), ("contact", "num")}
AREAS = (
    ("texture", ("width", "height"), MAX_PIXELS),
    ("hfield", ("nrow", "ncol"), MAX_HEIGHTS),
    ("camera", ("resolution",), MAX_HEIGHTS),
    ("flexcomp", ("cellcount",), MAX_BODIES),
    ("flex", ("cellcount",), MAX_BODIES),
)
RESERVED = ("nsample", "nuser", "actdim", "octree")
FOLDERS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir", "flexcomp": "meshdir"}
PNG = b"\x89PNG\r\n\x1a\n"


def check(root: Element, data: bytes, path: Path | None) -> None:
    """Refuse files that would take the compiler unbounded time or memory, or read files of others."""
    home = (path.parent if path is not None else Path()).absolute()
    _Document(root, data, home, _Total(home)).check()


@dataclass
class _Total:
    """What all files of a robot share: the folder of the first, and the sizes so far."""

    home: Path
    read: int = 0
    files: int = 0
    assets: int = 0
    bytes: int = 0
    sizes: dict[str, float] = field(default_factory=dict)
    models: dict[Path, tuple[float, float]] = field(default_factory=dict)

    def bound(self, element: Element, what: str, size: float, limit: int) -> None:
        """Count points of a texture, height field or mesh among those of all others of its kind."""
        self.sizes[element.tag] = self.sizes.get(element.tag, 0.0) + size
        if not self.sizes[element.tag] <= limit:
            raise element.error(
                f"{what}: {size:.0f} points, {self.sizes[element.tag]:.0f} with all before it; at most {limit} are read"
            )

    def add(self, element: Element, size: int) -> None:
        self.read, self.files = self.read + size, self.files + 1
        if self.read > MAX_BYTES or self.files > MAX_FILES:
            raise element.error(
                f"it includes more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB; at most so much is read"
            )


class _Document:
    """A file in folder `here` with all that it includes; `above` are the models that attach it."""

    def __init__(self, root: Element, data: bytes, here: Path, total: _Total, above: tuple[Path, ...] = ()) -> None:
        _refuse_other_readings(root, data)
        self.root, self.here, self.total, self.above = root, here, total, above
        self.included: dict[Path, Element] = {}
        self.elements = list(self._walk(root))
        self.settings = [e for e in self.elements if e.tag == "compiler"]
        hulls = any(e.get("inertia", "") == "convex" or e.tag == "pair" for e in self.elements)
        self.weight = HULL if hulls else 1
        self.attached: dict[str, tuple[float, float]] = {}

    def check(self) -> tuple[float, float]:
        """How many bodies and elements the compiler makes of a file."""
        for element in self.elements:
            _check_numbers(element)
            self._check_areas(element)
            self._check_files(element)
        for element in self.elements:
            if element.tag == "model" and "file" in element.attributes:
                name = element.get("name", "") or Path(element.get("file")).stem
                self.attached[name] = self._model(element)
        bodies, elements = self._count()
        if not bodies <= MAX_BODIES or not elements <= MAX_COPIED:
            raise self.root.error(
                f"{bodies:.0f} bodies and {elements:.0f} elements, copies counted; at most "
                f"{MAX_BODIES} and {MAX_COPIED} are read"
            )
        return bodies, elements

    def _walk(self, root: Element) -> Iterator[Element]:
        """All elements, those of included files among them, each file once."""
        stack, count = [root], 0
        while stack:
            element = stack.pop()
            count += 1
            if count > MAX_ELEMENTS:
                raise element.error(f"more than {MAX_ELEMENTS} elements; this is no robot description")
            yield element
            stack += element.children
            if element.tag == "include":
                stack += self._include(element)

    def _include(self, element: Element) -> list[Element]:
        path = Path(os.path.normpath(self.here / element.get("file", "").strip()))
        if path not in self.included and os.path.lexists(path):
            inner = self._parsed(element, path)
            self.included[path] = inner
            return inner.children
        return []

    def _parsed(self, element: Element, path: Path) -> Element:
        """Another file of the same robot."""
        self._check_own(element, path, element.get("file"))
        data = read(path)
        self.total.add(element, len(data))
        root = parse(data, str(path))
        _refuse_other_readings(root, data)
        return root

    def _model(self, element: Element) -> tuple[float, float]:
        """How many bodies and elements a model has that this one attaches."""
        path = Path(os.path.normpath(self.here / element.get("file", "").strip()))
        if not os.path.lexists(path):
            return 0.0, 0.0
        if path in self.above or len(self.above) >= MAX_NESTED:
            raise element.error(f"models attach each other in a circle, or more than {MAX_NESTED} deep")
        if path not in self.total.models:
            root = self._parsed(element, path)
            inner = _Document(root, b"", path.parent, self.total, (*self.above, path))
            self.total.models[path] = inner.check()
        return self.total.models[path]

    def _count(self) -> tuple[float, float]:
        """Bodies and elements, with copies."""
        bodies = elements = 0.0
        stack = [(self.root, 1.0)]
        seen: set[int] = set()
        while stack:
            element, copies = stack.pop()
            if element.tag in COPIES:
                copies *= max(_product(_numbers(element, "count")), 1.0)
            more = self.attached.get(element.get("model", ""), (0.0, 0.0)) if element.tag == "attach" else (0.0, 0.0)
            bodies += copies * (float(element.tag in ("body", "composite", "flexcomp")) + more[0])
            elements += copies * (1.0 + more[1])
            if not bodies <= MAX_BODIES or not elements <= MAX_COPIED:
                return bodies, elements
            children = element.children
            if element.tag == "include":
                path = Path(os.path.normpath(self.here / element.get("file", "").strip()))
                inner = self.included.get(path)
                if inner is not None and id(inner) not in seen:
                    seen.add(id(inner))
                    children = inner.children
            stack.extend((c, copies) for c in children)
        return bodies, elements

    def _check_files(self, element: Element) -> None:
        """The assets that an element names, wherever the folders of the file may put them."""
        if element.tag in ("include", "model"):
            return
        for attribute, name in element.attributes.items():
            if not attribute.startswith("file") or not name.strip():
                continue
            paths = {
                Path(os.path.normpath(here / folder / name.strip()))
                for folder in self._folders(element.tag)
                for here in (self.here, self.total.home)
            }
            for path in filter(os.path.lexists, paths):
                self._check_asset(element, path, name)

    def _folders(self, tag: str) -> list[str]:
        wanted = ("assetdir", FOLDERS.get(tag, "meshdir"))
        named = [e.get(a).strip() for e in self.settings for a in wanted if a in e.attributes]
        return ["", *named]

    def _check_own(self, element: Element, path: Path, name: str) -> None:
        try:
            checked(path, self.total.home, f"'{name}'", MAX_BYTES)
        except LoadError as problem:
            raise element.error(str(problem)) from None

    def _check_asset(self, element: Element, path: Path, name: str) -> None:
        self._check_own(element, path, name)
        self.total.assets += 1
        self.total.bytes += path.stat().st_size * self.weight
        if self.total.bytes > MAX_ASSETS or self.total.assets > MAX_FILES:
            raise element.error(
                f"more than {MAX_FILES} meshes and textures, or {MAX_ASSETS >> 20} MiB of them (with "
                f"convex hulls {MAX_ASSETS // HULL >> 20}); at most so much is read"
            )
        with path.open("rb") as stream:
            head = stream.read(24)
        size = 1
        if head.startswith(PNG):
            size = int.from_bytes(head[16:20], "big") * int.from_bytes(head[20:24], "big")
        elif element.tag == "hfield":
            size = int.from_bytes(head[0:4], "little") * int.from_bytes(head[4:8], "little")
        self.total.bound(element, f"'{name}'", size, MAX_HEIGHTS if element.tag == "hfield" else MAX_PIXELS)

    def _check_areas(self, element: Element) -> None:
        """Elements whose size is a product of numbers."""
        for tag, sides, limit in AREAS:
            if element.tag == tag:
                area = _product([max(1.0, n) for a in sides for n in _numbers(element, a)])
                self.total.bound(element, " x ".join(sides), area, limit)
        if element.tag == "mesh" and "builtin" in element.attributes:
            self.total.bound(element, "params", max(_numbers(element, "params"), default=0.0) ** 2, MAX_POINTS)


def _check_numbers(element: Element) -> None:
    """Sizes that the compiler allocates, and entries that are not numbers."""
    for attribute, text in element.attributes.items():
        if attribute != "name" and "nan" in text.lower().split():
            raise element.error(f"the attribute '{attribute}' is {text!r}; finite numbers are needed")
    room = [a for a in element.attributes if a.startswith(RESERVED)]
    if element.tag == "size":
        room += [a for a in element.attributes if a.startswith("n") and a not in STEPPING]
        for attribute in element.attributes.keys() & set(STEPPING):
            _bounded(element, attribute, max(_numbers(element, attribute), default=0.0), MAX_STEPPING)
    room += [a for tag, a in ROOM if tag == element.tag and a in element.attributes]
    for attribute in room:
        _bounded(element, attribute, max(_numbers(element, attribute), default=0.0), MAX_ROOM)
    if element.tag == "mesh" and "builtin" in element.attributes:
        _bounded(element, "params", max(_numbers(element, "params"), default=0.0), MAX_RESOLUTION)


def _bounded(element: Element, what: str, value: float, limit: int) -> None:
    if not value <= limit:
        raise element.error(f"{what} is {value:g}; at most {limit} are read")


def _numbers(element: Element, attribute: str) -> list[float]:
    """The numbers of an attribute, without signs; the compiler refuses words that are none."""
    out = []
    for word in element.get(attribute, "").split()[:100]:
        try:
            out.append(abs(float(word)))
        except ValueError:
            continue
    return out


def _product(values: list[float]) -> float:
    out = 1.0
    for v in values:
        out *= v
    return out


def _refuse_other_readings(root: Element, data: bytes) -> None:
    """The compiler has its own XML reader: text that it could read differently from ours is refused."""
    if b"<!DOCTYPE" in data:
        raise root.error("it has a document type (<!DOCTYPE), which MJCF files do not have; remove it")
    declared = re.match(rb"\s*(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)", data)
    name = declared.group(1).decode("ascii", "replace") if declared else "utf-8"
    letters = bytes(range(128))
    try:
        plain = letters.decode(name) == letters.decode("ascii") and not data.startswith((b"\xff\xfe", b"\xfe\xff"))
    except (LookupError, ValueError):
        plain = False
    if not plain:
        raise LoadError(f"{root.file}: the encoding {name!r} is not read in MJCF files; save it as UTF-8")
