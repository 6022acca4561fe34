"""Contacts of meshes, whose places are found outside of the step and are inputs of it.

A kernel has a fixed program, and the nearest features of two meshes are anything but. So a `MeshPair` is a slot: one
contact with a place, a normal and a gap that `lw.find_contacts` looks up in each configuration, by the library coal,

    u = C^T (velocity of the first at y - velocity of the second at y),      C = [t1 t2 n],

with y on the second body and n from the second to the first; a slot that nothing needs has a gap of FAR. Forces act on
both at one place, so that they keep the angular momentum; it moves with neither by more than the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.backends.ops import Array
from linkwork.checks import ARRAY, NAME, NOT_NEGATIVE, POSITIVE, checked, checked_class, instance, optional, whole
from linkwork.constraints.collisions import Ball, Block, Pair, Rod, between
from linkwork.constraints.contact import RESTITUTION, Contact, Ground, Surface, Touch
from linkwork.errors import InputError, UnsupportedError
from linkwork.model.body import PLACEMENT, Placement
from linkwork.value_objects import Value, read_only

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion

PLACE = 7
"""Numbers of a place of contact: y and n, in world axes, and the gap."""

FLAT = 1e-6
"""The least extent of a solid, relative to its largest one: on points in a plane coal's hull, by qhull, crashes."""

FAR = 1e3
"""The gap of a slot that touches nothing, in metres: farther than anything moves in a step."""

CONVEX = 1e-6
"""How far vertices may be in front of a face of a mesh that counts as convex, relative to its size."""


@checked_class(frame=NAME, vertices=ARRAY, faces=optional(ARRAY), placement=optional(PLACEMENT))
@dataclass(frozen=True, eq=False, repr=False)
class MeshBody(Value):
    """A solid on `frame` that is bounded by triangles, or the convex hull of its vertices.

    `vertices` are (n, 3), in metres, along the axes of `placement` in `frame`. Without `faces` the solid is their
    convex hull; `faces` (m, 3), the indices of three corners each, are a closed surface, which need not be convex. Its
    orientation is found: faces may all be turned one way or the other.

    Examples:
        >>> corners = [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]
        >>> lw.MeshBody("tip", corners).convex
        True
    """

    frame: str
    vertices: Any
    faces: Any = None
    placement: Placement | None = None

    def __post_init__(self) -> None:
        x, owner = np.array(self.vertices, dtype=float), f"the mesh on '{self.frame}'"
        if x.ndim != 2 or x.shape[1] != 3 or len(x) < 4:
            raise InputError(f"{owner}: its vertices are of shape {x.shape}; a solid has at least four, (n, 3)")
        extent = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
        if not extent[2] > FLAT * extent[0]:
            raise InputError(f"{owner} is flat: its vertices are in one plane, or nearly so; a solid has a volume")
        if self.faces is not None:
            x, faces = closed_surface(x, np.asarray(self.faces), owner)
            object.__setattr__(self, "faces", read_only(faces))
        object.__setattr__(self, "vertices", read_only(x))

    @property
    def convex(self) -> bool:
        """Whether the solid is its convex hull."""
        if self.faces is None:
            return True
        corners = self.vertices[self.faces]
        n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        n /= np.linalg.norm(n, axis=1)[:, None]
        ahead = np.max(n @ self.vertices.T - np.einsum("ij,ij->i", n, corners[:, 0])[:, None])
        return bool(ahead <= CONVEX * np.ptp(self.vertices, axis=0).max())


def closed_surface(x: np.ndarray, faces: np.ndarray, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices, each once, and triangles with an area, counterclockwise seen from outside.

    InputError if the surface is open.
    """
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces) or (faces != np.round(faces)).any():
        raise InputError(f"{owner}: its faces are of shape {faces.shape}; they are indices of corners, whole, (m, 3)")
    if faces.min() < 0 or faces.max() >= len(x):
        raise InputError(f"{owner}: its faces name vertices {int(faces.min())} to {int(faces.max())}; it has {len(x)}")
    once, which = np.unique(x, axis=0, return_inverse=True)
    triangles = which.reshape(-1)[faces.astype(int)]
    corners = once[triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    triangles = triangles[area > 0]
    edges = np.concatenate([triangles[:, [k, (k + 1) % 3]] for k in range(3)])
    directed, counts = np.unique(edges, axis=0, return_counts=True)
    alone = {*map(tuple, directed.tolist())} - {(b, a) for a, b in directed.tolist()}
    if alone or (counts > 1).any():
        number = max(len(alone), int((counts > 1).sum()))
        raise InputError(
            f"{owner} is no closed surface: {number} of its edges do not have one face on either side; repair it, or "
            "leave faces out for its convex hull"
        )
    corners = once[triangles]
    volume = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    return once, triangles if volume > 0 else triangles[:, ::-1].copy()


Meshed = Ball | Rod | Block | MeshBody
MESHED = instance((Ball, Rod, Block, MeshBody), "a Ball, Rod, Block or MeshBody")
PARTNER = instance((Ball, Rod, Block, MeshBody, Ground), "a Ball, Rod, Block, MeshBody or Ground")


@checked_class(
    a=MESHED,
    b=PARTNER,
    friction=NOT_NEGATIVE,
    restitution=RESTITUTION,
    slot=whole(0),
    name=NAME,
    torsion=NOT_NEGATIVE,
    rolling=NOT_NEGATIVE,
    margin=NOT_NEGATIVE,
    reach=POSITIVE,
)
@dataclass(frozen=True, eq=False, repr=False)
class MeshPair(Pair):
    """A slot for one of the places where two solids touch; `lw.mesh_pairs` gives as many as they need.

    `slot` is its number. Places are inputs of steps, as `lw.find_contacts` gives them. Surfaces that are
    not convex are looked at where they are nearer to each other than `reach`, in metres.

    Examples:
        >>> corners = [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]
        >>> lw.MeshPair(lw.MeshBody("tip", corners), lw.Ground()).name
        'tip-ground/0'
    """

    a: Any
    b: Any
    reach: float = 0.05

    def __post_init__(self) -> None:
        other = "ground" if isinstance(self.b, Ground) else self.b.frame
        object.__setattr__(self, "name", self.name or f"{self.a.frame}-{other}/{self.slot}")

    def check(self, model: Model) -> None:
        """Raise unless a joint is between the two."""
        a, b = model.frame(self.a.frame).link, 0 if isinstance(self.b, Ground) else model.frame(self.b.frame).link
        between = {*model.topology.supports[a]} ^ {*model.topology.supports[b]}
        if not any(model.links[i].joint.nv for i in between):
            raise InputError(f"contact '{self.name}': no joint moves these bodies against each other")

    def evaluate(self, motion: Motion, ground: Surface) -> Touch:
        """Places are inputs: those of a configuration are in `PlacedPair`."""
        raise UnsupportedError(
            f"contact '{self.name}' is of a mesh: where it touches is an input of lw.step, `places`, which "
            "lw.find_contacts(model, contacts)(q) gives"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PlacedPair(MeshPair):
    """A slot with its place, 7 x 1: y on the second body and n, in world axes, and the gap."""

    place: Any = None

    def evaluate(self, motion: Motion, ground: Surface) -> Touch:
        """Rows and distance for this place."""
        xp, y, n, gap = motion.xp, self.place[0:3, :], self.place[3:6, :], self.place[6, 0]
        links = [0 if isinstance(x, Ground) else motion.model.frame(x.frame).link for x in (self.a, self.b)]
        return between(motion, links, y, n / xp.sqrt((n.T @ n)[0, 0]), gap - self.margin, (self.a, self.b, self.slot))


def mesh_slots(contacts: Sequence[Contact | Pair]) -> list[int]:
    """The numbers of contacts whose places are inputs."""
    return [k for k, c in enumerate(contacts) if isinstance(c, MeshPair)]


def placed(contacts: Sequence[Contact | Pair], places: Array | None) -> list[Contact | Pair]:
    """The contacts with these places, 7 for each slot in their order."""
    out = list(contacts)
    for row, k in enumerate(mesh_slots(contacts)):
        assert places is not None
        own = {f.name: getattr(contacts[k], f.name) for f in fields(MeshPair)}
        out[k] = PlacedPair(**own, place=places[PLACE * row : PLACE * (row + 1), :])
    return out


def refuse_meshes(contacts: Sequence[Contact | Pair]) -> None:
    """Raise if places of contacts are inputs of each step: a native loop has nobody to find them."""
    slots = mesh_slots(contacts)
    if slots:
        raise UnsupportedError(
            f"contact '{contacts[slots[0]].name}' is of a mesh: coal finds in Python where it touches, before each "
            "step, and a rollout is a loop in machine code; use lw.simulate, or lw.step with lw.find_contacts"
        )


def far_places(count: int, near: np.ndarray) -> np.ndarray:
    """Slots that touch nothing, (count, 7), at a place in the bodies.

    Elsewhere a body that turns would have velocities that are none of its own.
    """
    return np.tile([*near, 0.0, 0.0, 1.0, FAR], (count, 1))


@checked(
    a=MESHED,
    b=PARTNER,
    slots=whole(1),
    friction=NOT_NEGATIVE,
    restitution=RESTITUTION,
    torsion=NOT_NEGATIVE,
    rolling=NOT_NEGATIVE,
    reach=POSITIVE,
)
def mesh_pairs(
    a: Meshed,
    b: Meshed | Ground,
    slots: int = 4,
    friction: float = 0.8,
    restitution: float = 0.0,
    torsion: float = 0.0,
    rolling: float = 0.0,
    reach: float = 0.05,
) -> list[MeshPair]:
    """Slots for the contacts of two solids, of which meshes may be one or both; or of a solid and a plane.

    `a` is a `MeshBody`, `Ball`, `Rod` or `Block`, `b` one of these, or a `Ground`. Four `slots` are enough for bodies
    that lie on each other with one face, a ball in a bowl needs three. `friction`, `restitution`, `torsion` and
    `rolling` are those of a `Contact`; surfaces that are not convex are looked at where they are nearer to each other
    than `reach`, in metres. Extra `linkwork[meshes]`.

    Examples:
        >>> corners = [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]
        >>> len(lw.mesh_pairs(lw.MeshBody("tip", corners), lw.Ball("world", radius=0.1), slots=3))
        3
    """
    how: dict[str, Any] = {"friction": friction, "restitution": restitution, "reach": reach}
    how |= {"torsion": torsion, "rolling": rolling}
    return [MeshPair(a, b, slot=k, **how) for k in range(slots)]
