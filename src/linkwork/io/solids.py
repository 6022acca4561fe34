"""Masses and inertias of solid shapes, for files that give a density instead of an inertia."""

from __future__ import annotations

import numpy as np

from linkwork.errors import listing
from linkwork.io.xml import Element
from linkwork.model.body import BodyInertia

WATER = 1000.0
"""SDF's density where it gives none (kg/m^3)."""


def sdf_solid(geometry: Element, density: float) -> BodyInertia:
    """The body of an SDF <geometry>, in its own frame; meshes and surfaces are refused."""
    for e in geometry.children:
        if e.tag == "box":
            x, y, z = _lengths(e, "size", 3)
            return _body(density * x * y * z, [(y * y + z * z) / 12, (z * z + x * x) / 12, (x * x + y * y) / 12])
        if e.tag == "sphere":
            return _ellipsoid(density, np.repeat(_lengths(e, "radius"), 3))
        if e.tag == "ellipsoid":
            return _ellipsoid(density, _lengths(e, "radii", 3))
        if e.tag in ("cylinder", "capsule"):
            (r,), (h,) = _lengths(e, "radius"), _lengths(e, "length")
            middle = _cylinder(density, r, h)
            return middle + _cap(density, r, h / 2) + _cap(density, r, -h / 2) if e.tag == "capsule" else middle
        if e.tag == "cone":  # its tip is up, its frame at half its height
            (r,), (h,) = _lengths(e, "radius"), _lengths(e, "length")
            across = 3 * (4 * r * r + h * h) / 80
            return _body(density * np.pi * r * r * h / 3, [across, across, 0.3 * r * r], -h / 4)
    known = ("box", "sphere", "ellipsoid", "cylinder", "capsule", "cone")
    raise geometry.error(
        f"no inertia is computed from {listing([e.tag for e in geometry.children])}, only from {listing(known)}; give "
        "the link's <inertial> in numbers, without auto"
    )


def _lengths(shape: Element, tag: str, count: int = 1) -> np.ndarray:
    values = shape.need(tag).content(count)
    if not (values > 0).all():
        raise shape.error(f"<{tag}> must be above zero for a body with a mass")
    return values


def _body(mass: float, per_mass: list[float], height: float = 0.0) -> BodyInertia:
    return BodyInertia(mass, np.array([0.0, 0.0, height]), mass * np.diag(per_mass))


def _ellipsoid(density: float, radii: np.ndarray) -> BodyInertia:
    squares = radii**2
    return _body(density * 4 / 3 * np.pi * float(radii.prod()), list((squares.sum() - squares) / 5))


def _cylinder(density: float, r: float, h: float) -> BodyInertia:
    across = r * r / 4 + h * h / 12
    return _body(density * np.pi * r * r * h, [across, across, r * r / 2])


def _cap(density: float, r: float, at: float) -> BodyInertia:
    """Half a sphere whose flat side is at a height, bulging away from zero.

    Its centre of mass is 3/8 r beyond.
    """
    across = 0.4 * r * r - (3 * r / 8) ** 2
    return _body(density * 2 / 3 * np.pi * r**3, [across, across, 0.4 * r * r], at + float(np.sign(at)) * 3 * r / 8)
