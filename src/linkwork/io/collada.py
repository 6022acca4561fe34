"""Reading Collada (.dae): the triangles of its scene in metres, with plain diffuse colours.

<up_axis> is ignored, as robot descriptions expect it (their tools place meshes in the file's own axes).
Textures, lights, skins and animations are not read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from linkwork.io.xml import Element, parse
from linkwork.model.visual import Colour, Mesh

Piece = tuple[Mesh, Colour | None]

MAX_NODES = 20_000
"""Nodes of a scene, instances counted."""
MAX_TRIANGLES = 1_000_000
MAX_NUMBERS = 6_000_000


def read_collada(path: Path) -> list[Piece]:
    """Every geometry that the scene places; all geometries as they are if there is no scene."""
    return _Collada(parse(path.read_bytes(), str(path))).pieces()


class _Collada:
    def __init__(self, root: Element) -> None:
        self.root = root
        self.ids: dict[str, Element] = {}
        self.nodes = self.triangles = 0
        self.cached: dict[int, np.ndarray] = {}
        stack = [root]
        while stack:
            element = stack.pop()
            if "id" in element.attributes:
                self.ids[element.attributes["id"]] = element
            stack += element.children

    def pieces(self) -> list[Piece]:
        asset = self.root.child("asset")
        unit = asset.child("unit") if asset is not None else None
        scale = unit.number("meter", 1.0) if unit is not None else 1.0
        out: list[Piece] = []
        scenes = [s for library in self.root.all("library_visual_scenes") for s in library.all("visual_scene")]
        for scene in scenes[:1]:
            for node in scene.all("node"):
                self._node(node, np.diag([scale, scale, scale, 1.0]), out)
        if not scenes:
            for library in self.root.all("library_geometries"):
                for geometry in library.all("geometry"):
                    self._geometry(geometry, np.diag([scale, scale, scale, 1.0]), {}, out)
        return out

    def _node(self, node: Element, placed: np.ndarray, out: list[Piece], depth: int = 0) -> None:
        if depth > 50:
            raise node.error("nodes are nested more than 50 deep, or contain themselves")
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise node.error(f"more than {MAX_NODES} nodes, instances counted; at most so many are read")
        for child in node.children:
            placed = placed @ _transform(child)
        for instance in node.all("instance_geometry"):
            self._geometry(self._referred(instance), placed, self._bound(instance), out)
        for child in node.all("node"):
            self._node(child, placed, out, depth + 1)
        for instance in node.all("instance_node"):
            self._node(self._referred(instance), placed, out, depth + 1)

    def _referred(self, element: Element, attribute: str = "url") -> Element:
        wanted = element.get(attribute)
        if wanted.lstrip("#") not in self.ids:
            raise element.error(f"there is nothing with the id {wanted!r} in this file")
        return self.ids[wanted.lstrip("#")]

    def _bound(self, instance: Element) -> dict[str, Colour]:
        """The colour of each material symbol of an instance."""
        out: dict[str, Colour] = {}
        bind = instance.child("bind_material")
        common = bind.child("technique_common") if bind is not None else None
        for each in common.all("instance_material") if common is not None else []:
            colour = self._diffuse(self._referred(self._referred(each, "target").need("instance_effect")))
            if colour is not None:
                out[each.get("symbol")] = colour
        return out

    def _diffuse(self, effect: Element) -> Colour | None:
        stack = [effect]
        while stack:
            element = stack.pop()
            if element.tag == "diffuse":
                colour = element.child("color")
                if colour is None:
                    return None
                r, g, b, *_ = (float(w) for w in np.clip([float(w) for w in colour.text.split()], 0.0, 1.0))
                return r, g, b, 1.0
            stack += element.children
        return None

    def _geometry(self, geometry: Element, placed: np.ndarray, colours: dict[str, Colour], out: list[Piece]) -> None:
        mesh = geometry.child("mesh")
        for element in mesh.children if mesh is not None else []:
            if element.tag not in ("triangles", "polylist", "polygons"):
                continue
            inputs = {i.get("semantic"): i for i in element.all("input")}
            if "VERTEX" not in inputs:
                raise element.error("it has no input VERTEX")
            points = self._positions(inputs["VERTEX"])
            if id(element) not in self.cached:  # a geometry may have many instances; its text is read once
                self.cached[id(element)] = _faces(
                    element, 1 + max(_offset(i) for i in inputs.values()), _offset(inputs["VERTEX"])
                )
            faces = self.cached[id(element)]
            self.triangles += len(faces)
            if self.triangles > MAX_TRIANGLES:
                raise element.error(f"more than {MAX_TRIANGLES} triangles, instances counted; at most so many are read")
            points = points @ placed[:3, :3].T + placed[:3, 3]
            if np.linalg.det(placed[:3, :3]) < 0:
                faces = faces[:, ::-1]
            out.append((Mesh(points, faces), colours.get(element.get("material", ""))))

    def _positions(self, vertex: Element) -> np.ndarray:
        holder = self._referred(vertex, "source")
        for element in holder.all("input"):
            if element.get("semantic") == "POSITION":
                holder = self._referred(element, "source")
        numbers = holder.need("float_array")
        if id(numbers) not in self.cached:
            self.cached[id(numbers)] = _floats(numbers.text).reshape(-1, 3)
        return self.cached[id(numbers)]


def _faces(element: Element, stride: int, offset: int) -> np.ndarray:
    """Triangles; polygons become fans."""
    numbers = [_numbers(p.text, np.int64).reshape(-1, stride)[:, offset] for p in element.all("p")]
    if element.tag == "polygons":
        sizes = np.array([len(n) for n in numbers], dtype=np.int64)
    elif element.tag == "polylist":
        sizes = _numbers(element.need("vcount").text, np.int64)
    else:
        sizes = np.full(sum(len(n) // 3 for n in numbers), 3)
    index = np.concatenate([np.zeros(0, dtype=np.int64), *numbers])
    if sizes.min(initial=0) < 0 or sizes.max(initial=0) > len(index) or sizes.sum() > len(index):
        raise element.error(f"polygons of {sizes.sum()} corners, and {len(index)} are there")
    return fans(index, sizes)


def fans(index: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Polygons, of so many corners each, as triangles around their first corner."""
    first = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    count = np.maximum(sizes - 2, 0)
    start = np.repeat(first, count)
    k = np.arange(len(start)) - np.repeat(np.cumsum(count) - count, count) + 1
    return np.stack([index[start], index[start + k], index[start + k + 1]], axis=1)


def _offset(element: Element) -> int:
    """The offset of an input among the indices of a corner."""
    offset = element.number("offset", 0.0)
    if not 0 <= offset < 100:
        raise element.error(f"the attribute 'offset' is {offset:g}; it counts from 0, and there are few inputs")
    return int(offset)


def _transform(element: Element) -> np.ndarray:
    """The 4 x 4 matrix of <matrix>, <translate>, <rotate> or <scale>; of anything else, one."""
    T = np.eye(4)
    if element.tag == "matrix":
        T = _floats(element.text).reshape(4, 4)
    elif element.tag == "translate":
        T[:3, 3] = element.content(3)
    elif element.tag == "scale":
        T[:3, :3] = np.diag(element.content(3))
    elif element.tag == "rotate":
        x, y, z, degrees = element.content(4)
        c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
        u = np.array([x, y, z]) / max(float(np.linalg.norm([x, y, z])), 1e-12)
        cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        T[:3, :3] = c * np.eye(3) + s * cross + (1 - c) * np.outer(u, u)
    return T


def _floats(text: str) -> np.ndarray:
    return _numbers(text, np.float64)


def _numbers(text: str, kind: type) -> np.ndarray:
    """Numbers between blanks; ValueError where something else is among them."""
    if sum(text.count(blank) for blank in " \n\t\r") > MAX_NUMBERS:
        raise ValueError(f"more than {MAX_NUMBERS} numbers in a list; at most so many are read")
    return np.array(text.split(), dtype=kind)
