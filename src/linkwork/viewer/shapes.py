"""Plain shapes as triangles: boxes, ellipsoids, cylinders, capsules, and bones between joints."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from linkwork.model.visual import Box, Cylinder, Ellipsoid, Mesh
from linkwork.viewer.surface import Surface, smooth

AROUND = 24
"""Corners of a circle."""


def box(size: object) -> Surface:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.asarray(size) / 2
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return smooth(Mesh(corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])))


def turned(profile: list[tuple[float, float]], around: int = AROUND) -> Mesh:
    """The surface that a profile of (radius, z), from bottom to top, sweeps about z.

    Ends of radius 0 are points.
    """
    vertices: list[tuple[float, float, float]] = []
    rings: list[list[int]] = []
    for radius, z in profile:
        start = len(vertices)
        angles = [0.0] if radius == 0 else [2 * np.pi * k / around for k in range(around)]
        vertices += [(radius * np.cos(t), radius * np.sin(t), z) for t in angles]
        rings.append([start] * around if radius == 0 else [start + k for k in range(around)])
    faces = []
    for low, high in pairwise(rings):
        for k in range(around):
            n = (k + 1) % around
            faces += [(low[k], low[n], high[n]), (low[k], high[n], high[k])]
    triangles = np.array([f for f in faces if len(set(f)) == 3])
    return Mesh(np.array(vertices), triangles)


def ellipsoid(radii: object) -> Surface:
    """A sphere's vertices, stretched; normals are those of the sphere, divided by the radii."""
    half = AROUND // 2
    ball = turned(
        [(np.sin(np.pi * k / half) if 0 < k < half else 0.0, -np.cos(np.pi * k / half)) for k in range(half + 1)]
    )
    size = np.maximum(np.asarray(radii, dtype=float), 1e-6)
    normals = ball.vertices / size
    return Surface(ball.vertices * size, normals / np.linalg.norm(normals, axis=1)[:, None], ball.faces)


def cylinder(radius: float, length: float, around: int = AROUND) -> Surface:
    h = length / 2
    return smooth(turned([(0.0, -h), (radius, -h), (radius, h), (0.0, h)], around))


def capsule(low: float, high: float, length: float) -> Surface:
    """Two half spheres of these radii with their centres at z = 0 and z = length, and what lies between."""
    steps = [np.pi / 2 * k / 5 for k in range(5)]
    below = [(low * np.sin(t), -low * np.cos(t)) for t in steps]
    above = [(high * np.sin(t), length + high * np.cos(t)) for t in reversed(steps)]
    return smooth(
        turned(
            [(0.0 if r < 1e-12 else float(r), float(z)) for r, z in [*below, (low, 0.0), (high, length), *above]], 18
        )
    )


def bone(end: np.ndarray, near: float, far: float) -> Surface:
    """A capsule from the origin to `end`, with a radius at each."""
    length = float(np.linalg.norm(end))
    return capsule(near, far, length).moved(towards(end), np.zeros(3))


def towards(direction: np.ndarray) -> np.ndarray:
    """A rotation that takes z to a direction."""
    z = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def primitive(shape: Box | Ellipsoid | Cylinder) -> Surface:
    """A shape of a description."""
    if isinstance(shape, Box):
        return box(shape.size)
    if isinstance(shape, Ellipsoid):
        return ellipsoid(shape.radii)
    if shape.round:
        return capsule(shape.radius, shape.radius, shape.length).moved(np.eye(3), np.array([0, 0, -shape.length / 2]))
    return cylinder(shape.radius, shape.length)
