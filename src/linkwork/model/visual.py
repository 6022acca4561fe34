"""Shapes of links: visuals for viewers, and colliders that contacts are made from.

Neither smooth dynamics nor digests depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkwork.model.body import Placement
from linkwork.value_objects import Value

Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity, from 0 to 1."""


@dataclass(frozen=True)
class Box:
    """Edges along the axes."""

    size: tuple[float, float, float]


@dataclass(frozen=True)
class Ellipsoid:
    """Half axes along the axes; three equal ones are a sphere."""

    radii: tuple[float, float, float]


@dataclass(frozen=True)
class Cylinder:
    """Along z, with its middle at the origin.

    `round` ends, half spheres beyond its length, make it a capsule.
    """

    radius: float
    length: float
    round: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Mesh(Value):
    """Triangles: vertices (n, 3) and, for each face, the indices of its corners (m, 3)."""

    vertices: np.ndarray
    faces: np.ndarray


@dataclass(frozen=True)
class MeshFile:
    """A mesh by the name that the robot's file `description` gives it.

    Nothing is opened before it is drawn.
    """

    name: str
    description: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class HalfSpace:
    """All below z = 0."""


@dataclass(frozen=True, eq=False, repr=False)
class Heights(Value):
    """All below heights z on a grid around the origin; rows are along y, `size` is along x and y."""

    z: np.ndarray
    size: tuple[float, float]


Shape = Box | Ellipsoid | Cylinder | Mesh | MeshFile
Floor = HalfSpace | Heights


@dataclass(frozen=True)
class Visual:
    """A shape at a place on its link; without a colour, the viewer chooses one."""

    shape: Shape
    placement: Placement = field(default_factory=Placement)
    colour: Colour | None = None

    def moved(self, X: Placement) -> Visual:
        """In the frame in which this link frame has placement X."""
        return replace(self, placement=X @ self.placement)


@dataclass(frozen=True)
class Partner:
    """A shape, by its name, that another one touches as these figures say, whatever their kinds."""

    name: str
    friction: float
    torsion: float
    rolling: float
    margin: float


@dataclass(frozen=True)
class Figures:
    """What MuJoCo mixes of two geoms that touch.

    `friction` is that along the surface, and of turning about the normal and of rolling (lengths).
    """

    condim: int
    friction: tuple[float, float, float]
    priority: int
    margin: float

    def mixed(self, other: Figures) -> Partner:
        """Of both: the larger figures, or those of higher priority; margins add up, as since MuJoCo 4."""
        equal = self.priority == other.priority
        first = self if self.priority >= other.priority else other
        condim = max(self.condim, other.condim) if equal else first.condim
        most = tuple(map(max, self.friction, other.friction)) if equal else first.friction
        friction, torsion, rolling = (x if condim >= dim else 0.0 for x, dim in zip(most, (3, 4, 6), strict=True))
        return Partner("", friction, torsion, rolling, self.margin + other.margin)


@dataclass(frozen=True, eq=False, repr=False)
class BodyFilter(Value):
    """Which bodies of an MJCF file may touch each other.

    `welded` says of each body which one stands for all that are welded to it; `above` which one carries those, where
    that is not the world; `excluded` are the pairs of its <exclude> elements.
    """

    welded: Mapping[str, str]
    above: Mapping[str, str]
    excluded: tuple[tuple[str, str], ...]

    def apart(self, one: str, other: str) -> bool:
        """Whether these bodies never touch: of one piece, parent and child, or excluded."""
        a, b = self.welded[one], self.welded[other]
        joined = a == b or self.above.get(a) == b or self.above.get(b) == a
        return joined or (one, other) in self.excluded or (other, one) in self.excluded

    def renamed(self, name: Callable[[str], str]) -> BodyFilter:
        """The same of bodies with other names."""
        welded, above = ({name(a): name(b) for a, b in x.items()} for x in (self.welded, self.above))
        return BodyFilter(welded, above, tuple((name(a), name(b)) for a, b in self.excluded))


@dataclass(frozen=True)
class Collider:
    """A shape that may touch others, at a place on its link.

    `friction` is Coulomb's coefficient, None where the file gives none. As in MuJoCo, two shapes touch if the `kind` of
    one has a bit in common with what the other one `meets`. `torsion` and `rolling` are those of `lw.Contact`. Those of
    the world may be a `Floor`. `partners` are the shapes of <pair> elements of MJCF, `figures` what MuJoCo mixes with
    those of another geom, and `filter` which bodies of the file touch. `body` is the link that it was written for,
    which a fixed joint may have made part of another.
    """

    shape: Shape | Floor
    placement: Placement = field(default_factory=Placement)
    name: str = ""
    friction: float | None = None
    kind: int = 1
    meets: int = 1
    torsion: float = 0.0
    rolling: float = 0.0
    partners: tuple[Partner, ...] = ()
    figures: Figures | None = None
    filter: BodyFilter | None = None
    body: str = ""

    def moved(self, X: Placement) -> Collider:
        """In the frame in which this link frame has placement X."""
        return replace(self, placement=X @ self.placement)

    def renamed(self, name: Callable[[str], str]) -> Collider:
        """The same on bodies with other names."""
        return replace(self, body=name(self.body), filter=None if self.filter is None else self.filter.renamed(name))


@dataclass(frozen=True)
class Given:
    """Shapes that have been read, as the `read` of a `Look`."""

    visuals: tuple[Any, ...]

    def __call__(self) -> tuple[Any, ...]:
        return self.visuals


@dataclass(frozen=True)
class Look:
    """Visuals or colliders of a link that are read when they are needed.

    Most never are, and loading stays fast. Of colliders it knows the `body` that they are written for, and how bodies
    are `called` since models were combined.
    """

    read: Callable[[], Iterable[Any]]
    placement: Placement | None = None
    body: str = ""
    called: tuple[Callable[[str], str], ...] = ()

    def moved(self, X: Placement) -> Look:
        """In the frame in which this link frame has placement X."""
        return replace(self, placement=X if self.placement is None else X @ self.placement)

    def of(self, body: str) -> Look:
        """Colliders written for this body, unless it is known already."""
        return replace(self, body=self.body or body)

    def renamed(self, name: Callable[[str], str]) -> Look:
        """Colliders on bodies with other names."""
        return replace(self, called=(*self.called, name))

    def visuals(self) -> list[Any]:
        out = [v if self.placement is None else v.moved(self.placement) for v in self.read()]
        if self.body:
            out = [replace(v, body=v.body or self.body) for v in out]
        for name in self.called:
            out = [v.renamed(name) for v in out]
        return out

    def __reduce__(self) -> tuple[type[Look], tuple[Given]]:
        """Pickle the visuals themselves, not the files or the functions that read them."""
        return Look, (Given(tuple(self.visuals())),)
