"""Reading meshes: STL, OBJ and Collada, positions and plain colours. No package beyond NumPy is needed.

Not by trimesh: it opens any path after `mtllib`, takes minutes for 1 MB of `usemtl` lines, and leaves out Collada.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from linkwork.errors import LoadError
from linkwork.io.files import is_own
from linkwork.io.xml import MAX_NUMBER
from linkwork.model.visual import Colour, Mesh
from linkwork.viewer.collada import read_collada

Piece = tuple[Mesh, Colour | None]

MAX_LINES = 2_000_000
MAX_MATERIALS = 10
"""Files of materials that a mesh is coloured by, each of at most MAX_MATERIAL_BYTES."""
MAX_MATERIAL_BYTES = 2**20


def read_mesh(path: Path) -> list[Piece]:
    """The pieces of a mesh file, each with its own colour if the file gives one; LoadError if it makes no sense."""
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
    vertices: list[list[float]] = []
    faces: dict[str, list[tuple[int, int, int]]] = {}
    colours: dict[str, Colour] = {}
    material, seen = "", set[Path]()
    with path.open(errors="replace") as stream:
        for n, line in enumerate(stream):
            if n > MAX_LINES:
                raise LoadError(f"mesh {path} has more than {MAX_LINES} lines; at most so many are read")
            key, *words = line.split() or [""]
            if key == "v":
                vertices.append([float(w) for w in words[:3]])
            elif key == "f":
                corners = [_corner(w, len(vertices)) for w in words]
                faces.setdefault(material, []).extend((corners[0], b, c) for b, c in pairwise(corners[1:]))
            elif key == "usemtl":
                material = " ".join(words)
            elif key == "mtllib":
                beside = path.parent / Path(" ".join(words)).name
                if beside not in seen and len(seen) < MAX_MATERIALS:
                    seen.add(beside)
                    colours |= dict(_materials(beside))
    points = np.array(vertices, dtype=float).reshape(-1, 3)
    return [(Mesh(points, np.array(f).reshape(-1, 3)), colours.get(name)) for name, f in faces.items()]


def _corner(word: str, known: int) -> int:
    """ "7", "7/1/3" or "-1", counted from one or back from the last vertex."""
    index = int(word.partition("/")[0])
    return index - 1 if index > 0 else known + index


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
