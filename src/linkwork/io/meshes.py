"""Reading meshes: STL, OBJ and Collada, positions and plain colours.

No package beyond NumPy is needed.

Not by trimesh: it opens any path after `mtllib`, takes minutes for 1 MB of `usemtl` lines, and leaves out Collada.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from linkwork.errors import LoadError
from linkwork.io.collada import fans, read_collada
from linkwork.io.files import is_own
from linkwork.io.xml import MAX_NUMBER
from linkwork.model.visual import Colour, Mesh

Piece = tuple[Mesh, Colour | None]

MAX_LINES = 1_000_000
WORK = {".obj": 4}
"""How much longer these files take to read than others, per byte."""
MAX_PIECES = 200
"""Materials of one mesh, each of which becomes a piece."""
MAX_MATERIALS = 10
"""Files of materials that a mesh is coloured by, each of at most MAX_MATERIAL_BYTES."""
MAX_MATERIAL_BYTES = 2**20


def work(path: Path) -> int:
    """The work of reading a file, in bytes."""
    return path.stat().st_size * WORK.get(path.suffix.lower(), 1)


def read_mesh(path: Path) -> list[Piece]:
    """The pieces of a mesh file, with colours if the file gives them; LoadError if it is malformed."""
    readers = {".stl": _stl, ".obj": _obj, ".dae": read_collada}
    try:
        pieces = readers[path.suffix.lower()](path)
    except (ValueError, IndexError, OverflowError) as problem:
        raise LoadError(f"mesh {path} cannot be read: {problem}") from problem
    for mesh, _ in pieces:
        if not (np.abs(mesh.vertices) <= MAX_NUMBER).all() or not _within(mesh):
            raise LoadError(f"mesh {path} cannot be read: corners that are not there, or not finite")
    pieces = [piece for piece in pieces if len(piece[0].faces)]
    if not pieces:
        raise LoadError(f"mesh {path} has no triangle")
    return pieces


def _within(mesh: Mesh) -> bool:
    return not mesh.faces.size or bool(mesh.faces.min() >= 0 and mesh.faces.max() < len(mesh.vertices))


def _stl(path: Path) -> list[Piece]:
    """Binary (80 bytes, a count, 50 bytes per triangle) or text; a binary one may start like text."""
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if len(data) >= 84 + 50 * count and not (data.startswith(b"solid") and b"facet" in data[:400]):
        rows = np.frombuffer(data, np.uint8, 50 * count, 84).reshape(count, 50)
        corners = np.ascontiguousarray(rows[:, 12:48]).view("<f4").reshape(-1, 3)
    else:
        words = re.findall(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", data)
        corners = np.array(words, dtype=float).reshape(-1, 3)
    corners = corners[: len(corners) // 3 * 3]
    return [(Mesh(np.asarray(corners, dtype=np.float64), np.arange(len(corners)).reshape(-1, 3)), None)]


def _obj(path: Path) -> list[Piece]:
    """Vertices and polygons; colours are the diffuse ones of the material files beside it."""
    vertices: list[list[str]] = []
    corners: list[str] = []
    polygons: list[tuple[int, int, int]] = []  # how many corners, how many vertices were known, which material
    numbers: dict[str, int] = {"": 0}
    colours: dict[str, Colour] = {}
    material, seen = 0, set[Path]()
    with path.open(errors="replace") as stream:
        for n, line in enumerate(stream):
            if n > MAX_LINES:
                raise LoadError(f"mesh {path} has more than {MAX_LINES} lines; at most so many are read")
            key, *words = line.split() or [""]
            if key == "v":
                vertices.append(words[:3])
            elif key == "f":
                corners += words
                polygons.append((len(words), len(vertices), material))
            elif key == "usemtl":
                material = numbers.setdefault(" ".join(words), len(numbers))
                if material > MAX_PIECES:
                    raise LoadError(f"mesh {path} has more than {MAX_PIECES} materials; at most so many are read")
            elif key == "mtllib":
                beside = path.parent / Path(" ".join(words)).name
                if beside not in seen and len(seen) < MAX_MATERIALS:
                    seen.add(beside)
                    colours |= dict(_materials(beside))
    points = np.array(vertices, dtype=float).reshape(-1, 3)
    sizes, known, owner = np.array(polygons, dtype=np.int64).reshape(-1, 3).T
    index = np.array([w.partition("/")[0] for w in corners], dtype=np.int64)  # "7", "7/1/3", or "-1": the last one
    faces = fans(np.where(index > 0, index - 1, np.repeat(known, sizes) + index), sizes)
    owner = np.repeat(owner, np.maximum(sizes - 2, 0))
    return [(Mesh(points, faces[owner == k]), colours.get(name)) for name, k in numbers.items() if (owner == k).any()]


def _materials(path: Path) -> Iterator[tuple[str, Colour]]:
    if not os.path.isfile(path) or not is_own(path, [path.parent]) or path.stat().st_size > MAX_MATERIAL_BYTES:
        return
    name = ""
    with path.open(errors="replace") as stream:
        for line in stream:
            key, *words = line.split() or [""]
            if key == "newmtl":
                name = " ".join(words)
            elif key == "Kd" and len(words) >= 3:
                r, g, b = (float(w) for w in words[:3])
                yield name, (r, g, b, 1.0)
