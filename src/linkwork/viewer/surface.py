"""Triangles ready to be drawn: welded, thinned out, with normals that are smooth where the surface is.

thinned   corners in the same cell of a grid become one, their mean; triangles that collapse vanish
smooth    the normal at a corner is the area-weighted mean over those faces around it that bend less than CREASE
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwork.model.visual import Mesh

CREASE = np.cos(np.deg2rad(40.0))
CROWD = 200
"""Faces around one corner that are still smoothed over."""


@dataclass(frozen=True)
class Surface:
    """Vertices and normals (n, 3), faces (m, 3)."""

    vertices: np.ndarray
    normals: np.ndarray
    faces: np.ndarray

    def moved(self, R: np.ndarray, p: np.ndarray) -> Surface:
        """Turned by R, then shifted by p."""
        return Surface(self.vertices @ R.T + p, self.normals @ R.T, self.faces)


def thinned(mesh: Mesh, cell: float) -> Mesh:
    """The mesh on a grid of cells this wide; corners less than a cell apart may become one."""
    low = mesh.vertices.min(axis=0, initial=np.inf)
    keys = np.floor((mesh.vertices - low) / cell).astype(np.int64)
    size = keys.max(axis=0, initial=0) + 1
    _, index = np.unique((keys[:, 0] * size[1] + keys[:, 1]) * size[2] + keys[:, 2], return_inverse=True)
    count = np.bincount(index)
    vertices = np.stack([np.bincount(index, mesh.vertices[:, k]) / count for k in range(3)], axis=1)
    faces = index[mesh.faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    a, b, c = np.sort(faces, axis=1).T
    _, edge = np.unique(a * len(count) + b, return_inverse=True)
    _, once = np.unique(edge * len(count) + c, return_index=True)
    return Mesh(vertices, faces[np.sort(once)])


def thinned_to(meshes: Sequence[Mesh], triangles: int) -> list[Mesh]:
    """The meshes with at most about so many triangles in all, on the same grid for each.

    Welded in any case.
    """
    spans = [np.ptp(m.vertices, axis=0).max() if len(m.vertices) else 0.0 for m in meshes]
    largest = max([1e-9, *(float(s) for s in spans)])
    welded = out = [thinned(m, largest * 1e-6) for m in meshes]
    share = 1 / 250
    while (count := sum(len(m.faces) for m in out)) > triangles and share < 0.2:
        share *= max(1.1, 0.9 * np.sqrt(count / triangles)) if out is not welded else 1.0
        # parts keep their shape: a cell is at most an eighth of the part that it thins out. Each coarser pass starts
        # from the result of the one before: its corners are means already, and fewer
        out = [thinned(m, max(min(largest * share, float(s) / 8), 1e-9)) for m, s in zip(out, spans, strict=True)]
    return out


def smooth(mesh: Mesh) -> Surface:
    """The surface of a welded mesh, with one vertex for each corner and normal."""
    V, F = mesh.vertices, mesh.faces
    across = np.cross(V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]])
    area = np.linalg.norm(across, axis=1)
    F, across, area = F[area > 0], across[area > 0], area[area > 0]
    unit = across / area[:, None]
    corners = F.ravel()
    order = np.argsort(corners, kind="stable")
    around = np.bincount(corners, minlength=len(V))
    crowded = around[corners] > CROWD  # too many pairs: such corners keep the normals of their faces
    first = np.concatenate([[0], np.cumsum(around)])[:-1]
    # every pair of a corner and a corner at the same vertex: (one, other), as indices of corners
    many = np.where(crowded, 0, around[corners])
    one = np.repeat(np.arange(len(corners)), many)
    steps = np.arange(len(one)) - np.repeat(np.cumsum(many) - many, many)
    other = order[first[corners[one]] + steps]
    near = np.einsum("ij,ij->i", unit[one // 3], unit[other // 3]) >= CREASE
    one, other = one[near], other[near]
    normals = np.stack([np.bincount(one, across[other // 3, k], len(corners)) for k in range(3)], axis=1)
    normals[crowded] = across[np.flatnonzero(crowded) // 3]
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    keys = np.column_stack([corners, np.round(normals * 50).astype(np.int64)])
    _, kept, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return Surface(V[corners[kept]], normals[kept], index.reshape(-1, 3))


def joined(surfaces: Sequence[Surface]) -> Surface:
    """Several as one."""
    starts = np.cumsum([0, *(len(s.vertices) for s in surfaces)])
    empty = np.zeros((0, 3))
    return Surface(
        np.concatenate([empty, *(s.vertices for s in surfaces)]),
        np.concatenate([empty, *(s.normals for s in surfaces)]),
        np.concatenate([empty.astype(np.int64), *(s.faces + n for s, n in zip(surfaces, starts[:-1]))]),
    )
