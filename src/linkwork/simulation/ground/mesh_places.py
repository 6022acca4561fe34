"""Places of contact of meshes in a configuration, by the library coal (extra `meshes`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from linkwork.checks import checked, choice
from linkwork.constraints.collisions import CONTACTS, Ball, Block, Pair, Rod
from linkwork.constraints.contact import Contact, Ground
from linkwork.constraints.meshes import FLAT, PLACE, Meshed, MeshPair, mesh_slots, placed
from linkwork.errors import InputError, MissingExtra, UnsupportedError
from linkwork.functions.kinematics import forward_kinematics
from linkwork.model import Model
from linkwork.model.body import Placement
from linkwork.model.model import MODEL
from linkwork.simulation.ground.manifolds import (
    Points,
    Solid,
    ball_on_surface,
    between_convex,
    between_surfaces,
    faces_of,
    on_plane,
    outward,
    scale,
)

CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))

TOLERANCE, ITERATIONS = 1e-10, 500
"""Of coal's distances, relative to the size of solids. With 1e-6, its default, a face that lies on another one was
taken for an edge in two of three cases."""

MOST = 20_000
"""Pairs of triangles of two surfaces that are looked at."""

COARSER = "take a coarser mesh"
POINTS, HULL = 200_000, 20_000
"""The most vertices of which a convex hull is taken, and the most that it may have: two seconds each."""


@checked(model=MODEL, contacts=CONTACTS, backend=choice("backend for kinematics", ("kernel", "numpy")))
def find_contacts(model: Model, contacts: Sequence[Contact | Pair], backend: str = "kernel") -> ContactFinder:
    """`find(q) -> places`: where the meshes among these contacts touch, an input of `lw.step`.

    `places` has 7 numbers for each `lw.MeshPair`, in the order of `contacts`, for one configuration or a batch: a point
    y on the second body and the unit normal n from there to the first, in world axes, and the gap between them; a slot
    without a place has a gap of 10^6 m. `lw.simulate` calls it by itself. Extra `linkwork[meshes]`.

    Examples:
        >>> cube = [[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)]
        >>> b = lw.Builder("dice")
        >>> b.link("die", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3) / 150))
        >>> model = b.build()
        >>> contacts = lw.mesh_pairs(lw.MeshBody("die", cube), lw.Ground())
        >>> find, step = lw.find_contacts(model, contacts), lw.step(model, contacts)
        >>> q = np.array([0, 0, 0.1, 0, 0, 0, 1])
        >>> after = step(q, np.zeros(6), np.zeros(6), 1e-3, find(q))
        >>> print(after.forces.reshape(4, 3)[:, 2].sum().round(6))
        9.81
    """
    if not mesh_slots(contacts):
        raise InputError("none of these contacts is of a mesh (lw.mesh_pairs): lw.step needs no places")
    return ContactFinder(model, contacts, backend)


class ContactFinder:
    """`find(q) -> places`; see `find_contacts`."""

    def __init__(self, model: Model, contacts: Sequence[Contact | Pair], backend: str) -> None:
        self.coal = imported()
        self.model, self.contacts = model, tuple(contacts)
        self.groups: dict[tuple[Any, Any], list[int]] = {}
        self.reach: dict[tuple[Any, Any], float] = {}
        for row, c in enumerate(c for c in contacts if isinstance(c, MeshPair)):
            c.check(model)
            self.groups.setdefault((c.a, c.b), []).append(row)
            self.reach[c.a, c.b] = c.reach
        bodies = {body for pair in self.groups for body in pair if not isinstance(body, Ground)}
        self.solids = {body: solid_of(model, body, self.coal) for body in bodies}
        self.rows = sum(map(len, self.groups.values()))
        self.kinematics = forward_kinematics(model, [link.name for link in model.links[1:]], backend=backend)

    def __call__(self, q: object) -> np.ndarray:
        """Places (7 n,) in a configuration (nq,), or (B, 7 n) for (B, nq)."""
        poses = self.kinematics(q)
        if poses.positions.ndim == 2:
            return self._places(poses.rotations, poses.positions)
        found = [self._places(R, p) for R, p in zip(poses.rotations, poses.positions, strict=True)]
        return np.array(found).reshape(len(found), PLACE * self.rows)

    def placed(self, q: np.ndarray) -> list[Contact | Pair]:
        """All contacts, those of meshes where they are in one configuration."""
        return placed(self.contacts, self(q)[:, None])

    def _places(self, R: np.ndarray, p: np.ndarray) -> np.ndarray:
        out = np.zeros((self.rows, PLACE))
        moved = {}
        for body, solid in self.solids.items():
            i = self.model.frame(body.frame).link
            moved[body] = solid.moved(R[i - 1], p[i - 1]) if i else solid
        for (one, other), rows in self.groups.items():
            a = moved[one]
            if isinstance(other, Ground):
                n = other.axes[:, 2]
                found, size = on_plane(a, n, other.height, len(rows)), scale(a)
            else:
                b = moved[other]
                found, size = self._between(a, b, self.reach[one, other]), scale(a, b)
            out[rows] = found.slots(len(rows), size, a.vertices.mean(axis=0))
        return out.reshape(-1)

    def _between(self, a: Solid, b: Solid, reach: float) -> Points:
        """Of two solids in the world."""
        coal = self.coal
        if a.convex and b.convex:
            request, result = coal.DistanceRequest(), coal.DistanceResult()
            request.gjk_tolerance = request.epa_tolerance = TOLERANCE * scale(a, b)
            request.gjk_max_iterations = request.epa_max_iterations = ITERATIONS
            d = coal.distance(a.shape, _at(coal, a), b.shape, _at(coal, b), request, result)
            return between_convex(a, b, float(d), -np.array(result.normal), np.array(result.getNearestPoint2()))
        if b.triangles is None:
            return self._between(b, a, reach).swapped()
        near = self._near(a, b, reach)
        if a.triangles is None:
            corners = b.vertices[b.triangles[np.unique(near[:, 1])]]
            parts = [ball_on_surface(x, a.radius, corners, scale(a, b)) for x in a.vertices]
            return Points(*(np.concatenate([part[k] for part in parts]) for k in range(3)))
        one, other = a.vertices[a.triangles[near[:, 0]]], b.vertices[b.triangles[near[:, 1]]]
        return between_surfaces(one, other, scale(a, b), reach)

    def _near(self, a: Solid, b: Solid, reach: float) -> np.ndarray:
        """The numbers (m, 2) of triangles of two solids that are near each other."""
        coal = self.coal
        request, result = coal.CollisionRequest(coal.CollisionRequestFlag.CONTACT, MOST), coal.CollisionResult()
        request.security_margin = reach
        coal.collide(a.surface, _at(coal, a), b.surface, _at(coal, b), request, result)
        found = result.getContacts()
        if len(found) >= MOST:
            raise UnsupportedError(
                f"more than {MOST} pairs of triangles are within reach of each other, {reach:g} m: take a smaller "
                "reach, coarser meshes, or convex hulls"
            )
        return np.array([(c.b1, c.b2) for c in found], dtype=int).reshape(-1, 2)


def imported() -> Any:
    """The library coal."""
    try:
        import coal
    except ImportError:
        raise MissingExtra("coal", "meshes", "contact of meshes") from None
    return coal


def _at(coal: Any, solid: Solid) -> Any:
    return coal.Transform3s(*solid.at)


def solid_of(model: Model, body: Meshed, coal: Any) -> Solid:
    """A body in the axes of its link."""
    X = model.frame(body.frame).placement
    still = (np.eye(3), np.zeros(3))
    if isinstance(body, Ball):
        middle = X.R @ np.asarray(body.offset, dtype=float) + X.p
        ball = coal.Sphere(body.radius)
        return Solid(middle[None], body.radius, None, None, ball, ball, (np.eye(3), middle))
    if isinstance(body, Rod):
        ends = np.array([body.start, body.end], dtype=float) @ X.R.T + X.p
        along, middle = ends[1] - ends[0], ends.mean(axis=0)
        rod = coal.Capsule(body.radius, float(np.linalg.norm(along)))
        turn = Ground(along).axes if along.any() else np.eye(3)
        return Solid(ends, body.radius, None, None, rod, rod, (turn, middle))
    X = X @ (body.placement or Placement())
    if isinstance(body, Block) and not min(body.size) > FLAT * max(body.size):  # type: ignore[call-overload]
        raise InputError(f"the block on '{body.frame}' is flat; contacts of meshes need solids with a volume")
    points = CORNERS * np.asarray(body.size, dtype=float) / 2 if isinstance(body, Block) else body.vertices
    if isinstance(body, Block) or body.convex:
        if len(points) > POINTS:
            raise UnsupportedError(
                f"the mesh on '{body.frame}' has {len(points)} vertices, more than {POINTS}: {COARSER}"
            )
        points, triangles = hull_of(points, coal)
        if len(points) > HULL:
            raise UnsupportedError(
                f"the convex hull of the mesh on '{body.frame}' has {len(points)} vertices, more than {HULL}: {COARSER}"
            )
        x = points @ X.R.T + X.p
        faces = faces_of(x, triangles)
        shape = coal.Convex(_vectors(x, coal), _triangles(triangles, coal))
        return Solid(x, 0.0, faces, triangles, shape, _surface(x, triangles, coal), still)
    x = points @ X.R.T + X.p
    surface = _surface(x, body.faces, coal)
    return Solid(x, 0.0, None, body.faces, surface, surface, still)


def hull_of(points: np.ndarray, coal: Any) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of the convex hull; qhull sees it around the origin, and of size one."""
    middle, size = points.mean(axis=0), np.ptp(points, axis=0).max()
    hull = coal.Convex.convexHull(_vectors((points - middle) / size, coal), True, "Qt")
    x = np.array(hull.points()).reshape(-1, 3) * size + middle
    corners = [hull.polygons(k) for k in range(hull.num_polygons)]
    return x, outward(x, np.array([[corner[j] for j in range(3)] for corner in corners]))


def _vectors(x: np.ndarray, coal: Any) -> Any:
    out = coal.StdVec_Vec3s()
    for point in x:
        out.append(point)
    return out


def _triangles(triangles: np.ndarray, coal: Any) -> Any:
    out = coal.StdVec_Triangle()
    for i, j, k in triangles.tolist():
        out.append(coal.Triangle(i, j, k))
    return out


def _surface(x: np.ndarray, triangles: np.ndarray, coal: Any) -> Any:
    """Triangles with a hierarchy of boxes around them."""
    out = coal.BVHModelOBBRSS()
    out.beginModel(len(triangles), len(x))
    out.addSubModel(_vectors(x, coal), _triangles(triangles, coal))
    out.endModel()
    return out
