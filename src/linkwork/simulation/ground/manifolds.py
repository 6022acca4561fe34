"""Where two solids touch: points, normals and gaps of what is nearest to each other.

Of two convex solids coal gives the distance d and the direction n (GJK, EPA). Where a face of one is the plane that
separates them, which it is if the other one's distance from it is d, they touch with the part of the other's opposite
face that is over it (Sutherland, Hodgman 1974: a polygon is cut by one side after the other), each point with its own
height as a gap. Else two edges cross each other, or vertices meet: one point.

Of other surfaces coal gives the pairs of triangles that are near each other. They touch with the vertices of each that
are over a triangle of the other, and where edges cross between faces that are almost parallel. Other edges that cross
each other do not touch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from linkwork.constraints.meshes import far_places

ALIGNED = 0.99
"""The least cosine between n and the normal of a face that may separate two convex solids."""

ROUNDING = 1e-6
"""Of distances, relative to the size of solids."""

OVER = 1e-9
"""How far beside a face a point may be and still be over it, relative to the size of the solid."""

COPLANAR = 1e-8
"""How far the cosine of two triangles of one face is from 1: 1e-4 rad, which is hundred times less than in a sphere of
10 000 triangles."""

SLIVER = 1e-9
"""Twice the area of triangles whose normals are rounding, relative to the square of the size."""

PARALLEL = 0.996
"""The least cosine between faces whose edges are looked at: five degrees."""

BAND = 0.02
"""Vertices that are lower than the lowest one and this share of the size may touch a plane next."""

SUNK = 0.02
"""How far a vertex, or the middle of a ball, may be behind a surface and still come out there, relative to the size of
the smaller solid: behind a wall is another face."""

APART = 1e-3
"""The least difference of two slots: of places relative to the size, of directions."""


class Faces(NamedTuple):
    """Plane faces of a convex solid: unit normals (f, 3), heights n^T x (f,), corners counterclockwise."""

    normals: np.ndarray
    heights: np.ndarray
    corners: list[np.ndarray]


class Solid(NamedTuple):
    """A polyhedron, or all within `radius` of a point or segment, which has no `triangles` (m, 3).

    Of a convex one there are `faces`. `shape` is coal's, of the solid or its surface, `surface` that of the triangles;
    `at` is where these are.
    """

    vertices: np.ndarray
    radius: float
    faces: Faces | None
    triangles: np.ndarray | None
    shape: Any
    surface: Any
    at: tuple[np.ndarray, np.ndarray]

    @property
    def size(self) -> float:
        return float(np.ptp(self.vertices, axis=0).max()) + self.radius

    @property
    def convex(self) -> bool:
        return self.faces is not None or self.triangles is None

    def moved(self, R: np.ndarray, p: np.ndarray) -> Solid:
        """The same in the world, for a link there."""
        faces = self.faces
        if faces is not None:
            normals = faces.normals @ R.T
            faces = Faces(normals, faces.heights + normals @ p, faces.corners)
        at = R @ self.at[0], R @ self.at[1] + p
        return self._replace(vertices=self.vertices @ R.T + p, faces=faces, at=at)


def scale(*solids: Solid) -> float:
    """The size of the smallest one that has any."""
    return min((s.size for s in solids if s.size > 0), default=1.0)


def faces_of(vertices: np.ndarray, triangles: np.ndarray) -> Faces:
    """Plane faces of a convex polyhedron from its triangles: neighbours in one plane are one face."""
    corners = vertices[triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    triangles = triangles[area > SLIVER * np.ptp(vertices, axis=0).max() ** 2]
    n, group = normals_of(vertices[triangles]), list(range(len(triangles)))
    for i, j in _neighbours(triangles):
        if n[i] @ n[j] > 1 - COPLANAR:
            one, other = _root(group, int(i)), _root(group, int(j))
            group[max(one, other)] = min(one, other)
    members: dict[int, list[int]] = {}
    for k in range(len(group)):
        members.setdefault(_root(group, k), []).append(k)
    order = [_around(vertices, np.unique(triangles[faces]), n[k]) for k, faces in members.items()]
    heights = [float((vertices[corners] @ n[k]).max()) for k, corners in zip(members, order, strict=True)]
    return Faces(n[[*members]], np.array(heights), order)


def _neighbours(triangles: np.ndarray) -> np.ndarray:
    """Pairs of triangles that share an edge."""
    edges = np.sort(np.concatenate([triangles[:, [k, (k + 1) % 3]] for k in range(3)]), axis=1)
    owner = np.tile(np.arange(len(triangles)), 3)
    order = np.lexsort(edges.T)
    same = (edges[order[1:]] == edges[order[:-1]]).all(axis=1)
    return np.stack([owner[order[1:]][same], owner[order[:-1]][same]], axis=1)


def _root(group: list[int], k: int) -> int:
    """The first member of the group that k is in."""
    while group[k] != k:
        group[k] = group[group[k]]
        k = group[k]
    return k


def outward(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Triangles of a convex polyhedron, counterclockwise seen from outside."""
    corners = vertices[triangles]
    n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", n, corners[:, 0] - vertices.mean(axis=0)) < 0
    return np.asarray(np.where(inward[:, None], triangles[:, ::-1], triangles))


def _around(vertices: np.ndarray, corners: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Corners of a face counterclockwise about its normal."""
    x = vertices[corners] - vertices[corners].mean(axis=0)
    first = x[np.argmax(np.einsum("ij,ij->i", x, x))]
    return np.asarray(corners[np.argsort(np.arctan2(x @ np.cross(n, first), x @ first))])


class Points(NamedTuple):
    """Places of contact: y on the second solid (m, 3), normals from it to the first, gaps (m,)."""

    y: np.ndarray
    n: np.ndarray
    gap: np.ndarray

    def slots(self, count: int, size: float, near: np.ndarray) -> np.ndarray:
        """As many rows [y n gap]: the nearest one, then those that differ most from these; the rest is far.

        Of two that differ as much, that counts more which is nearer: by half, if the other is BAND farther.
        """
        out = far_places(count, near)
        if not len(self.gap):
            return out
        where = np.hstack([self.y / size, self.n])
        chosen = [int(np.argmin(self.gap))]
        counts = 1.0 / (1.0 + (self.gap - self.gap.min()) / (BAND * size))
        apart = np.linalg.norm(where - where[chosen[0]], axis=1)
        while len(chosen) < min(count, len(self.gap)):
            k = int(np.argmax(apart * counts))
            if apart[k] <= APART:
                break
            chosen.append(k)
            apart = np.minimum(apart, np.linalg.norm(where - where[k], axis=1))
        chosen.sort()
        out[: len(chosen)] = np.hstack([self.y, self.n, self.gap[:, None]])[chosen]
        return out

    def swapped(self) -> Points:
        """Of the second solid and the first."""
        return Points(self.y + self.gap[:, None] * self.n, -self.n, self.gap)


def between_convex(a: Solid, b: Solid, d: float, n: np.ndarray, y: np.ndarray) -> Points:
    """Of two convex solids with the distance d along n, from b to a, and the nearest point y of b."""
    best: tuple[float, Solid, Solid, float, int] | None = None
    for own, other, sign in ((b, a, 1.0), (a, b, -1.0)):
        if own.faces is None:
            continue
        for f in map(int, np.flatnonzero(sign * (own.faces.normals @ n) > ALIGNED)):
            apart = float((other.vertices @ own.faces.normals[f]).min() - own.faces.heights[f]) - own.radius
            if best is None or apart - other.radius > best[0]:
                best = apart - other.radius, own, other, sign, f
    size = scale(a, b)
    if best is not None and best[0] >= d - ROUNDING * size:
        _, own, other, sign, f = best
        assert own.faces is not None
        N, height = own.faces.normals[f], own.faces.heights[f]
        x = cut(opposite(other, N), own.vertices[own.faces.corners[f]], N, OVER * size)
        gaps = x @ N - height - own.radius - other.radius
        if len(x) and gaps.min() <= d + ROUNDING * size:  # else the nearest point is a little beside the face
            down = gaps + other.radius if sign > 0 else np.full(len(x), -other.radius)
            return Points(x - sign * down[:, None] * N, np.tile(sign * N, (len(x), 1)), gaps)
    return Points(y[None], n[None], np.array([d]))


def opposite(solid: Solid, N: np.ndarray) -> np.ndarray:
    """The corners of the face that looks against N; a point or segment itself."""
    if solid.faces is None:
        return solid.vertices
    return np.asarray(solid.vertices[solid.faces.corners[int(np.argmin(solid.faces.normals @ N))]])


def cut(x: np.ndarray, polygon: np.ndarray, N: np.ndarray, tolerance: float) -> np.ndarray:
    """The part of a polygon, segment or point that is over another polygon, along the normal N of that."""
    for start, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if not len(x):
            break
        out = np.cross(end - start, N)
        beyond = (x - start) @ (out / (np.linalg.norm(out) or 1.0)) - tolerance
        kept: list[np.ndarray] = []
        for k in range(len(x)):
            j = (k + 1) % len(x)
            if beyond[k] <= 0:
                kept.append(x[k])
            if beyond[k] * beyond[j] < 0 and not (len(x) == 2 and j == 0):
                kept.append(x[k] + beyond[k] / (beyond[k] - beyond[j]) * (x[j] - x[k]))
        x = np.array(kept).reshape(-1, 3)
    return x


def on_plane(a: Solid, normal: np.ndarray, height: float, count: int) -> Points:
    """Of a solid and the plane n^T x = height: so many lowest vertices, and those little higher."""
    above = a.vertices @ normal - height - a.radius
    low = np.flatnonzero(above <= max(above.min() + BAND * a.size, np.sort(above)[:count][-1]))
    y = a.vertices[low] - (above[low] + a.radius)[:, None] * normal
    return Points(y, np.tile(normal, (len(low), 1)), above[low])


# surfaces that need not be convex


def ball_on_surface(centre: np.ndarray, radius: float, corners: np.ndarray, size: float) -> Points:
    """Of a ball and triangles (m, 3, 3): the nearest points of those that it is in front of."""
    y, n = nearest_on_triangles(centre, corners), normals_of(corners)
    apart = centre - y
    distance = np.linalg.norm(apart, axis=1)
    front = np.einsum("ij,ij->i", centre - corners[:, 0], n)
    inside = np.abs(distance - np.abs(front)) <= OVER * size  # over the triangle: its own normal
    gap = np.where(inside, front, distance)
    kept = np.flatnonzero((front >= 0) | (inside & (front > -SUNK * size)))
    direction = np.where(inside[:, None], n, apart / np.where(distance > 0, distance, 1.0)[:, None])
    return once(Points(y[kept], direction[kept], gap[kept] - radius), size)


def between_surfaces(a: np.ndarray, b: np.ndarray, size: float, reach: float) -> Points:
    """Of pairs of triangles (m, 3, 3): vertices over faces, and edges between parallel faces."""
    na, nb = normals_of(a), normals_of(b)
    facing = np.einsum("ij,ij->i", na, nb) < 0
    a, b, na, nb = a[facing], b[facing], na[facing], nb[facing]
    parts = [_vertices_over(a, b, nb, size), _vertices_over(b, a, na, size).swapped()]
    along = np.einsum("ij,ij->i", na, nb) < -PARALLEL
    parts.append(_crossings(a[along], b[along], nb[along], size))
    found = Points(*(np.concatenate([p[k] for p in parts]) for k in range(3)))
    near = (found.gap <= reach) & (found.gap > -SUNK * size)
    return once(Points(found.y[near], found.n[near], found.gap[near]), size)


def _vertices_over(a: np.ndarray, b: np.ndarray, n: np.ndarray, size: float) -> Points:
    """Corners of triangles a that are over the triangles b, whose normals are n."""
    x, base, normal = a.reshape(-1, 3), np.repeat(b, 3, axis=0), np.repeat(n, 3, axis=0)
    gap = np.einsum("ij,ij->i", x - base[:, 0], normal)
    y = x - gap[:, None] * normal
    over = _within(y, base, normal, size)
    return Points(y[over], normal[over], gap[over])


def _within(y: np.ndarray, corners: np.ndarray, n: np.ndarray, size: float) -> np.ndarray:
    """Whether points in the planes of triangles are in the triangles."""
    inside = np.ones(len(y), dtype=bool)
    for k in range(3):
        edge = corners[:, (k + 1) % 3] - corners[:, k]
        out = np.cross(edge, n)
        inside &= np.einsum("ij,ij->i", y - corners[:, k], out) <= OVER * size * np.linalg.norm(out, axis=1)
    return inside


def _crossings(a: np.ndarray, b: np.ndarray, n: np.ndarray, size: float) -> Points:
    """Where edges of a cross edges of b, seen along n."""
    parts = [Points(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0))]
    for i in range(3):
        for j in range(3):
            x, d = a[:, i], a[:, (i + 1) % 3] - a[:, i]
            z, e = b[:, j], b[:, (j + 1) % 3] - b[:, j]
            across = np.einsum("ij,ij->i", n, np.cross(d, e))
            skew = np.abs(across) > OVER * np.linalg.norm(d, axis=1) * np.linalg.norm(e, axis=1)
            over = np.where(skew, across, 1.0)
            s = np.einsum("ij,ij->i", n, np.cross(z - x, e)) / over
            t = np.einsum("ij,ij->i", n, np.cross(z - x, d)) / over
            k = np.flatnonzero(skew & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1))
            y = z[k] + t[k, None] * e[k]
            gap = np.einsum("ij,ij->i", x[k] + s[k, None] * d[k] - y, n[k])
            parts.append(Points(y, n[k], gap))
    return Points(*(np.concatenate([p[k] for p in parts]) for k in range(3)))


def once(points: Points, size: float) -> Points:
    """The same places with the same normal once, the nearest one."""
    order = np.argsort(points.gap, kind="stable")
    rounded = np.round(np.hstack([points.y / size, points.n])[order] / (10 * ROUNDING)).astype(np.int64)
    kept = np.sort(order[np.unique(rounded, axis=0, return_index=True)[1]])
    return Points(points.y[kept], points.n[kept], points.gap[kept])


def normals_of(corners: np.ndarray) -> np.ndarray:
    """Unit normals of triangles (m, 3, 3)."""
    n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return np.asarray(n / np.linalg.norm(n, axis=1)[:, None])


def nearest_on_triangles(x: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """The nearest points of triangles (m, 3, 3) to a point: over them, else on an edge."""
    n = normals_of(corners)
    foot = x - np.einsum("ij,ij->i", x - corners[:, 0], n)[:, None] * n
    within = _within(foot, corners, n, 0.0)
    best, least = foot, np.where(within, 0.0, np.inf)
    for k in range(3):
        start, edge = corners[:, k], corners[:, (k + 1) % 3] - corners[:, k]
        s = np.clip(np.einsum("ij,ij->i", x - start, edge) / np.einsum("ij,ij->i", edge, edge), 0.0, 1.0)
        y = start + s[:, None] * edge
        far = np.where(within, np.inf, np.linalg.norm(x - y, axis=1))
        best, least = np.where((far < least)[:, None], y, best), np.minimum(far, least)
    return np.asarray(best)
