"""Contacts of a model from the shapes of its links: where they may touch the ground."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

import numpy as np

from linkwork.checks import NAMES, NOT_NEGATIVE, checked, optional
from linkwork.constraints.collisions import Ball, Block, Body, Pair, Rod, touching
from linkwork.constraints.contact import Contact
from linkwork.constraints.ellipsoids import EllipsoidContact
from linkwork.constraints.ground_shapes import BoxContact
from linkwork.constraints.rims import RimContact
from linkwork.errors import LoadError, users_level
from linkwork.io.mesh_paths import locate
from linkwork.io.meshes import read_mesh
from linkwork.io.xml import LoadWarning
from linkwork.model import Model
from linkwork.model.body import Placement
from linkwork.model.model import MODEL
from linkwork.model.visual import Box, Collider, Cylinder, Ellipsoid, HalfSpace, Heights, Mesh, MeshFile, Partner

FRICTION = 0.8
"""Of shapes whose file gives none."""

CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))


@checked(model=MODEL, links=optional(NAMES), friction=optional(NOT_NEGATIVE))
def contacts(
    model: Model, links: Sequence[str] | None = None, *, friction: float | None = None
) -> list[Contact | Pair]:
    """The candidates of contact that a model's collision shapes have.

    | shape | contacts |
    |---|---|
    | sphere | 1 |
    | ellipsoid | 3: its lowest place, and where it will touch next |
    | capsule | 2: the spheres at its ends |
    | box | 4: the corners of its lowest face |
    | cylinder | 6: three points on each rim, the lowest one first |
    | mesh | at most 8: its corners, the vertices farthest along the diagonals of its axes |

    `links` are the names of links or of frames that were links (all by default); `friction` replaces what the shapes'
    file says. Shapes that may not touch a plane of MuJoCo's default kind are left out, unless they are in a <pair>. A
    <pair> of spheres, capsules and boxes is what `lw.touching` gives, with a friction and margin of its own; of two
    links it is taken if one of them is in `links`. Other contacts of links with each other are those of
    `lw.self_contacts`.

    Examples:
        >>> from linkwork.model.visual import Box, Collider
        >>> b = lw.Builder("crate")
        >>> b.link("crate", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), 0.1 * np.eye(3)))
        >>> b.collider("crate", Collider(Box((1, 1, 1)), friction=0.5))
        >>> [c.name for c in lw.contacts(b.build())]
        ['crate/0/0', 'crate/0/1', 'crate/0/2', 'crate/0/3']
    """
    wanted = None if links is None else {model.frame(name).link for name in links}
    out: list[Contact | Pair] = []
    paired, grounded = _pairs(model)
    for i in model.topology.links:
        if wanted is not None and i not in wanted:
            continue
        for k, collider in enumerate(model.links[i].colliders):
            own = Partner("", _friction(collider, None), collider.torsion, collider.rolling, 0.0)
            how = grounded.get((i, k), own if collider.kind & 1 or collider.meets & 1 else None)
            if how is not None:
                name, mu = f"{model.links[i].name}/{collider.name or k}", how.friction if friction is None else friction
                out += [_with(c, how) for c in _of(collider, model.links[i].name, name, mu)]
    for (i, a), (j, b), how in paired:
        if wanted is None or {i, j} & wanted:
            out += [_with(c, how) for c in touching(a, b, how.friction if friction is None else friction)]
    return out


Placed = tuple[int, Body]


def _pairs(model: Model) -> tuple[list[tuple[Placed, Placed, Partner]], dict[tuple[int, int], Partner]]:
    """Bodies of <pair> elements, and by link and number the shapes that are a <pair> with the ground."""
    shapes = [(i, k, c) for i in range(len(model.links)) for k, c in enumerate(model.links[i].colliders)]
    named, bodies, grounded = {(c.filter, c.name): (i, k, c) for i, k, c in shapes}, [], {}
    for i, k, c in shapes:
        for how in c.partners:
            if (c.filter, how.name) not in named:  # no shape that is read
                continue
            j, l, other = named[c.filter, how.name]
            floors = [isinstance(x.shape, HalfSpace | Heights) for x in (c, other)]
            a, b = body_of(model, i, c), body_of(model, j, other)
            if any(floors):
                grounded[(j, l) if floors[0] else (i, k)] = how
            elif a is not None and b is not None and i != j:
                bodies.append(((i, a), (j, b), how))
            else:
                kinds = " and ".join(type(x.shape).__name__.lower() for x in (c, other))
                said = (
                    f"a pair of {kinds} is left out, '{c.name}' and '{how.name}': spheres, capsules and boxes are taken"
                )
                warnings.warn(LoadWarning(said), stacklevel=4)
    return bodies, grounded


def body_of(model: Model, link: int, collider: Collider) -> Body | None:
    """A shape as one of those that may touch others; None if it is none of them."""
    X, shape, frame = collider.placement, collider.shape, model.links[link].name
    if isinstance(shape, Ellipsoid) and len({*shape.radii}) == 1:
        return Ball(frame, X.p, shape.radii[0])
    if isinstance(shape, Cylinder) and shape.round:
        half = shape.length / 2 * X.R[:, 2]
        return Rod(frame, X.p - half, X.p + half, shape.radius)
    return Block(frame, shape.size, X) if isinstance(shape, Box) else None


Candidate = TypeVar("Candidate", Contact, Pair)


def _with(c: Candidate, how: Partner) -> Candidate:
    """A contact that resists turning, and has a margin, as a file says."""
    return replace(c, torsion=how.torsion, rolling=how.rolling, margin=how.margin)


def _friction(collider: Collider, given: float | None) -> float:
    mu = collider.friction if given is None else given
    return FRICTION if mu is None else mu


def _of(collider: Collider, link: str, name: str, mu: float) -> Iterator[Contact]:
    X, shape = collider.placement, collider.shape
    if isinstance(shape, Ellipsoid):
        r = shape.radii
        if r[0] == r[1] == r[2]:
            yield Contact(link, X.p, r[0], mu, name=name)
        else:
            for k in range(3):
                yield EllipsoidContact(link, X.p, 0.0, mu, name=f"{name}/{k}", radii=r, placement=X, further=k)
    elif isinstance(shape, Cylinder):
        for end in (-1, 1):
            middle, called = X.p + end * shape.length / 2 * X.R[:, 2], f"{name}/{'top' if end > 0 else 'bottom'}"
            if shape.round:
                yield Contact(link, middle, shape.radius, mu, name=called)
                continue
            for k in range(3):
                turn = 2 * np.pi * k / 3
                yield RimContact(
                    link, middle, 0.0, mu, name=f"{called}{k}", axis=X.R[:, 2], rim=shape.radius, turn=turn
                )
    elif isinstance(shape, Box):
        for k in range(4):
            yield BoxContact(link, X.p, 0.0, mu, name=f"{name}/{k}", size=shape.size, corner=k, placement=X)
    elif isinstance(shape, Mesh | MeshFile):
        for k, corner in enumerate(_corners(shape, X)):
            yield Contact(link, corner, 0.0, mu, name=f"{name}/{k}")


def _corners(shape: Mesh | MeshFile, X: Placement) -> np.ndarray:
    """Points (n, 3) in the link's frame."""
    mesh = read_shape(shape)
    points = np.zeros((0, 3)) if mesh is None else extreme(mesh.vertices)
    return np.asarray(points @ X.R.T + X.p)


def read_shape(shape: Mesh | MeshFile) -> Mesh | None:
    """Vertices and faces, in metres; None, with a warning, if the file cannot be read."""
    if isinstance(shape, Mesh):
        return shape
    try:
        pieces = [mesh for mesh, _ in read_mesh(locate(shape))]
    except LoadError as problem:
        warnings.warn(LoadWarning(f"a collision shape is left out: {problem}"), stacklevel=users_level())
        return None
    first = np.cumsum([0, *(len(piece.vertices) for piece in pieces)])
    faces = [piece.faces + start for piece, start in zip(pieces, first, strict=False)]
    return Mesh(np.vstack([piece.vertices for piece in pieces]) * np.asarray(shape.scale), np.vstack(faces))


def extreme(vertices: np.ndarray) -> np.ndarray:
    """The vertices that are farthest along the diagonals of the mesh's principal axes, each once."""
    x = np.asarray(vertices, dtype=float)
    middle = (x.max(axis=0) + x.min(axis=0)) / 2
    size = np.ptp(x, axis=0)
    far = np.argmax((x - middle) @ (CORNERS / np.where(size > 0, size, 1.0)).T, axis=0)
    return np.asarray(x[np.unique(far)])
