"""Visuals and collision shapes of robot files: shapes, placements, colours, friction, meshes by name.

They are read when they are needed (`Look`). One that cannot be read is left out with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from linkwork.errors import LinkworkError, listing
from linkwork.io.xml import Element
from linkwork.model.body import Placement
from linkwork.model.visual import (
    BodyFilter,
    Box,
    Collider,
    Colour,
    Cylinder,
    Ellipsoid,
    Figures,
    Floor,
    HalfSpace,
    Heights,
    Mesh,
    MeshFile,
    Partner,
    Shape,
    Visual,
)

Place = Callable[[Element], Placement]
"""Reads the pose of an element: <origin> or <pose>."""

MAX_VISUALS = 5_000
SHOWN_GROUPS = 3
"""MuJoCo shows geoms of groups 0, 1 and 2 unless asked for others."""


def urdf_visuals(link: Element, origin: Place, materials: Mapping[str, Element]) -> Iterator[Visual]:
    """The <visual> elements of a URDF link; `materials` are those of the robot, which a visual may name."""

    def made(element: Element) -> Visual:
        geometry = element.need("geometry")
        material = element.child("material")
        if material is not None and material.child("color") is None:
            material = materials.get(material.get("name", ""))
        colour = material.child("color") if material is not None else None
        return Visual(
            _urdf_shape(geometry), origin(element), None if colour is None else _colour(colour.numbers("rgba", 4))
        )

    return _understood(link.all("visual"), made)


def sdf_visuals(link: Element, pose: Place) -> Iterator[Visual]:
    """The <visual> elements of an SDF link."""

    def made(element: Element) -> Visual:
        material = element.child("material")
        diffuse = material.child("diffuse") if material is not None else None
        colour = None
        if diffuse is not None:
            words = len(diffuse.text.split())
            colour = _colour(
                np.append(diffuse.content(words), np.ones(4 - words)) if words in (3, 4) else diffuse.content(4)
            )
        return Visual(_sdf_shape(element.need("geometry")), pose(element), colour)

    return _understood(link.all("visual"), made)


def mjcf_visuals(m: Any, body: int) -> Iterator[Visual]:
    """The geoms of a body that MuJoCo shows by default, without planes and height fields."""
    for g in range(m.body_geomadr[body], m.body_geomadr[body] + m.body_geomnum[body]):
        if m.geom_group[g] >= SHOWN_GROUPS:
            continue
        shape = _geom_shape(m, g)
        material = int(m.geom_matid[g])
        rgba = m.mat_rgba[material] if material >= 0 else m.geom_rgba[g]
        if shape is not None and rgba[3] > 0:
            yield Visual(shape, _geom_place(m, g), _colour(rgba))


def urdf_colliders(link: Element, origin: Place) -> Iterator[Collider]:
    """The <collision> elements of a URDF link."""

    def made(element: Element) -> Collider:
        return Collider(_urdf_shape(element.need("geometry")), origin(element), element.get("name", "").strip())

    return _understood(link.all("collision"), made)


def sdf_colliders(link: Element, pose: Place, meets: int = 1) -> Iterator[Collider]:
    """The <collision> elements of an SDF link, with the friction of ODE's first direction.

    With `meets` 0 they touch the ground, and links that meet others, but not each other.
    """

    def made(element: Element) -> Collider:
        friction = element
        for tag in ("surface", "friction", "ode", "mu"):
            friction = friction if friction is None else friction.child(tag)  # type: ignore[assignment]
        mu = None if friction is None else abs(float(friction.content(1)[0]))
        name = element.get("name", "").strip()
        return Collider(_sdf_shape(element.need("geometry")), pose(element), name, mu, meets=meets)

    return _understood(link.all("collision"), made)


def mjcf_filter(m: Any, bodies: Sequence[str], base: str | None) -> BodyFilter:
    """Which bodies may touch each other; with a `base` that moves, its root is not part of the world."""
    import mujoco

    weld, parent = [0], [int(x) for x in m.body_parentid]
    for i in range(1, m.nbody):
        moves = m.body_jntnum[i] > 0 or (parent[i] == 0 and base not in (None, "fixed"))
        weld.append(i if moves else weld[parent[i]])
    above = {i: weld[parent[i]] for i in {*weld} - {0} if weld[parent[i]]}
    if m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT):
        above = {}
    excluded = [(int(x) >> 16, int(x) & 0xFFFF) for x in m.exclude_signature]
    return BodyFilter(
        {bodies[i]: bodies[w] for i, w in enumerate(weld)},
        {bodies[i]: bodies[p] for i, p in above.items()},
        tuple((bodies[i], bodies[k]) for i, k in excluded),
    )


def mjcf_colliders(m: Any, body: int, kept: bool, touching: BodyFilter) -> Iterator[Collider]:
    """The geoms of a body that may touch others; planes and height fields on the world only.

    What they may touch is `kept` in `geom_user` where the reader has compiled the model (mjcf.py). Those of a <pair>
    may touch each other.
    """
    paired = {int(g) for g in (*m.pair_geom1, *m.pair_geom2)}
    for g in range(m.body_geomadr[body], m.body_geomadr[body] + m.body_geomnum[body]):
        kind, meets = (int(x) for x in (m.geom_user[g] if kept else (m.geom_contype[g], m.geom_conaffinity[g])))
        shape = (_geom_shape(m, g) or (None if body else _geom_floor(m, g))) if kind or meets or g in paired else None
        if shape is not None:
            all_three, margin = _three(m.geom_friction[g]), max(float(m.geom_margin[g]), 0.0)
            figures = Figures(int(m.geom_condim[g]), all_three, int(m.geom_priority[g]), margin)
            own = figures.mixed(figures)
            how = own.friction, kind, meets, own.torsion, own.rolling
            partners = tuple(_partner(m, k) for k in range(m.npair) if m.pair_geom1[k] == g)
            yield Collider(shape, _geom_place(m, g), m.geom(g).name, *how, partners, figures, touching)


def _partner(m: Any, pair: int) -> Partner:
    """The second geom of a <pair>; of two coefficients along the tangents, or of rolling, the smaller one."""
    slide, other, torsion, roll, second = (float(x) for x in m.pair_friction[pair])
    dim, margin = int(m.pair_dim[pair]), max(float(m.pair_margin[pair]), 0.0)
    friction, rolling = min(slide, other) if dim >= 3 else 0.0, min(roll, second) if dim >= 6 else 0.0
    return Partner(m.geom(int(m.pair_geom2[pair])).name, friction, torsion if dim >= 4 else 0.0, rolling, margin)


def _geom_place(m: Any, g: int) -> Placement:
    return Placement.from_quaternion(m.geom_pos[g], np.asarray(m.geom_quat[g])[[1, 2, 3, 0]])


Read = TypeVar("Read", Visual, Collider)


def _understood(elements: list[Element], made: Callable[[Element], Read]) -> Iterator[Read]:
    for element in elements[MAX_VISUALS:][:1]:
        element.warn(f"{len(elements)} {element.tag}s on one link; those after {MAX_VISUALS} are left out")
    for element in elements[:MAX_VISUALS]:
        try:
            yield made(element)
        except LinkworkError as problem:
            element.warn(f"this {element.tag} is left out: {problem}")


def _urdf_shape(geometry: Element) -> Shape:
    for e in geometry.children:
        if e.tag == "box":
            return Box(_three(e.numbers("size", 3)))
        if e.tag == "sphere":
            return Ellipsoid((e.number("radius"),) * 3)
        if e.tag in ("cylinder", "capsule"):
            return Cylinder(e.number("radius"), e.number("length"), e.tag == "capsule")
        if e.tag == "mesh":
            return MeshFile(e.get("filename").strip(), e.file, _three(e.numbers("scale", 3, (1.0, 1.0, 1.0))))
    raise _unknown(geometry)


def _sdf_shape(geometry: Element) -> Shape:
    for e in geometry.children:
        if e.tag == "box":
            return Box(_three(e.need("size").content(3)))
        if e.tag == "sphere":
            return Ellipsoid((float(e.need("radius").content(1)[0]),) * 3)
        if e.tag == "ellipsoid":
            return Ellipsoid(_three(e.need("radii").content(3)))
        if e.tag in ("cylinder", "capsule"):
            radius, length = (float(e.need(tag).content(1)[0]) for tag in ("radius", "length"))
            return Cylinder(radius, length, e.tag == "capsule")
        if e.tag == "mesh":
            scale = e.child("scale")
            return MeshFile(e.need("uri").text, e.file, (1.0, 1.0, 1.0) if scale is None else _three(scale.content(3)))
    raise _unknown(geometry)


def _geom_shape(m: Any, g: int) -> Shape | None:
    """A geom's shape in Linkwork's sizes: MuJoCo's are halves."""
    import mujoco

    kinds = mujoco.mjtGeom
    kind, size = kinds(int(m.geom_type[g])), [float(x) for x in m.geom_size[g]]
    if kind == kinds.mjGEOM_BOX:
        return Box((2 * size[0], 2 * size[1], 2 * size[2]))
    if kind == kinds.mjGEOM_SPHERE:
        return Ellipsoid((size[0],) * 3)
    if kind == kinds.mjGEOM_ELLIPSOID:
        return Ellipsoid((size[0], size[1], size[2]))
    if kind in (kinds.mjGEOM_CYLINDER, kinds.mjGEOM_CAPSULE):
        return Cylinder(size[0], 2 * size[1], kind == kinds.mjGEOM_CAPSULE)
    if kind == kinds.mjGEOM_MESH:
        i = int(m.geom_dataid[g])
        vertices = m.mesh_vert[m.mesh_vertadr[i] : m.mesh_vertadr[i] + m.mesh_vertnum[i]]
        faces = m.mesh_face[m.mesh_faceadr[i] : m.mesh_faceadr[i] + m.mesh_facenum[i]]
        return Mesh(np.array(vertices, dtype=np.float32), np.array(faces, dtype=np.int32))
    return None


def _unknown(geometry: Element) -> LinkworkError:
    known = ("box", "sphere", "cylinder", "capsule", "mesh")
    found = listing([e.tag for e in geometry.children])
    return geometry.error(f"no supported shape; there is {found}, and {listing(known)} are drawn")


def _geom_floor(m: Any, g: int) -> Floor | None:
    """A plane or height field; MuJoCo's heights are shares of a largest one, and its sizes are halves."""
    import mujoco

    if m.geom_type[g] == mujoco.mjtGeom.mjGEOM_PLANE:
        return HalfSpace()
    if m.geom_type[g] != mujoco.mjtGeom.mjGEOM_HFIELD:
        return None
    i = int(m.geom_dataid[g])
    rows, columns, first = int(m.hfield_nrow[i]), int(m.hfield_ncol[i]), int(m.hfield_adr[i])
    x, y, most, _ = (float(size) for size in m.hfield_size[i])
    return Heights(
        most * np.array(m.hfield_data[first : first + rows * columns]).reshape(rows, columns), (2 * x, 2 * y)
    )


def _three(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (float(v) for v in values)
    return x, y, z


def _colour(values: Any) -> Colour:
    r, g, b, a = (float(v) for v in np.clip(values, 0.0, 1.0))
    return r, g, b, a
