"""The drawing of a model, link by link: its visuals, or stand-ins made of inertias, joints and bones.

A stand-in is the solid ellipsoid of the link's mass and inertia (I_x = m (b^2 + c^2) / 5, ...), bones from its origin
to the joints and closures that it carries, and a pin along each axis of its own joint.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import LinkworkError, listing
from linkwork.io.mesh_paths import locate
from linkwork.io.meshes import Piece, read_mesh, work
from linkwork.model import BodyInertia, Model, Motion
from linkwork.model.visual import Colour, Mesh, MeshFile, Visual
from linkwork.viewer import shapes
from linkwork.viewer.surface import Surface, joined, smooth, thinned_to

PLAIN: Colour = (0.74, 0.77, 0.82, 1.0)
MASS: Colour = (0.62, 0.70, 0.80, 0.55)
BONE: Colour = (0.86, 0.87, 0.90, 1.0)
PIN: Colour = (0.20, 0.23, 0.28, 1.0)
LIGHTEST = 400.0
"""Density (kg/m^3) of a stand-in: inertias in real files are often guesses, and a larger solid would hide the robot."""
MAX_VISUALS = 5_000
MAX_TRIANGLES = 1_000_000
"""Triangles of all meshes together, before decimation; further visuals are left out."""
MAX_WORK = 64 * 2**20
"""Bytes of mesh files that are read in all, those of OBJ counted as `meshes.work` does."""
TRIANGLES = 60_000
"""Triangles of all meshes of a scene, by default."""


@dataclass(frozen=True)
class Part:
    """A rigid part of a link, in its frame; `kind` is "body", "inertia" (ellipsoids) or "joint" (axes)."""

    link: int
    kind: str
    surface: Surface
    colour: Colour


@dataclass(frozen=True)
class Scene:
    """The parts, how large the robot is in metres at neutral q, and notes on what could not be drawn."""

    model: Model
    parts: tuple[Part, ...]
    size: float
    notes: tuple[str, ...]

    @property
    def drawn(self) -> set[int]:
        """The links that have a body."""
        return {p.link for p in self.parts if p.kind == "body"}


def make_scene(model: Model, *, triangles: int = TRIANGLES) -> Scene:
    """The parts of all links; meshes are thinned out to about so many triangles in all."""
    notes: list[str] = []
    drawn, failed = _visuals(model, notes)
    bodies = _bodies(drawn, triangles)
    size = _size(model, bodies)
    has = {p.link for p in bodies}
    inertias = [
        Part(i, "inertia", e, MASS)
        for i, l in enumerate(model.links)
        if i and (e := _ellipsoid(l.inertia, size)) is not None
    ]
    pins = [Part(i, "joint", s, PIN) for i in model.topology.links if (s := _pins(model, i, size)) is not None]
    stand_ins = [i for i in model.topology.links if i not in has and (not has or i in failed)]
    for i in stand_ins:
        bodies += [Part(i, "body", p.surface, p.colour) for p in pins if p.link == i]
        if (solid := _ellipsoid(model.links[i].inertia, size, LIGHTEST)) is not None:
            bodies.append(Part(i, "body", solid, MASS))
    for i in [0, *stand_ins] if stand_ins else []:
        if (bones := _bones(model, i, size)) is not None:
            bodies.append(Part(i, "body", bones, BONE))
    return Scene(model, (*bodies, *inertias, *pins), size, tuple(notes))


Drawn = list[tuple[int, Visual, list[Piece] | None]]


def _visuals(model: Model, notes: list[str]) -> tuple[Drawn, set[int]]:
    """Every visual with the pieces of its mesh file, and the links of those that cannot be drawn."""
    drawn: Drawn = []
    failed: set[int] = set()
    missing: dict[str, str] = {}
    known: dict[tuple[str, str], list[Piece] | None] = {}
    triangles, done, left_out = 0, 0, False
    for i, link in enumerate(model.links):
        if len(drawn) >= MAX_VISUALS:
            left_out = True
            break
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            visuals = link.visuals
        notes += [str(w.message) for w in warned]
        failed |= {i} if warned else set()
        for v in visuals:
            pieces = None
            if isinstance(v.shape, MeshFile) and triangles <= MAX_TRIANGLES:
                file = (v.shape.name, v.shape.description)
                if file not in known:
                    try:
                        path = locate(v.shape)
                        done += work(path)
                        if done > MAX_WORK:
                            left_out = True
                            failed.add(i)
                            continue
                        known[file] = read_mesh(path)
                    except LinkworkError as problem:
                        known[file] = None
                        missing.setdefault(v.shape.name, str(problem))
                pieces = known[file]
                if pieces is None:
                    failed.add(i)
                    continue
            triangles += sum(len(m.faces) for m, _ in pieces or ())
            triangles += len(v.shape.faces) if isinstance(v.shape, Mesh) else 0
            if len(drawn) < MAX_VISUALS and triangles <= MAX_TRIANGLES:
                drawn.append((i, v, pieces))
            else:
                left_out = True
                failed.add(i)
    if left_out:
        notes.append(
            f"visuals are left out: at most {MAX_VISUALS}, of {MAX_TRIANGLES} triangles and {MAX_WORK >> 20} "
            "MiB in all (OBJ a quarter of that), are drawn"
        )
    if missing:
        first = next(iter(missing.values()))
        notes.append(f"{len(missing)} meshes are not drawn: {listing(missing, 4)}. The first: {first}")
    return drawn, failed


def _bodies(drawn: Drawn, triangles: int) -> list[Part]:
    """The visuals as surfaces in link frames; those of one link and colour are one part."""
    groups: dict[tuple[int, Colour], list[Surface]] = {}
    meshes: list[tuple[int, Colour, Mesh]] = []
    for i, v, pieces in drawn:
        if isinstance(v.shape, Mesh):
            pieces, scale = [(v.shape, None)], np.ones(3)
        elif isinstance(v.shape, MeshFile):
            scale = np.array(v.shape.scale)
        else:
            moved = shapes.primitive(v.shape).moved(v.placement.R, v.placement.p)
            groups.setdefault((i, v.colour or PLAIN), []).append(moved)
            continue
        for mesh, own in pieces or []:
            faces = mesh.faces if scale.prod() > 0 else mesh.faces[:, ::-1]
            points = mesh.vertices.astype(float) * scale @ v.placement.R.T + v.placement.p
            meshes.append((i, v.colour or own or PLAIN, Mesh(points, faces)))
    for (i, colour, _), mesh in zip(meshes, thinned_to([m for *_, m in meshes], triangles), strict=True):
        groups.setdefault((i, colour), []).append(smooth(mesh))
    return [Part(i, "body", joined(s), colour) for (i, colour), s in groups.items() if any(len(x.faces) for x in s)]


def _size(model: Model, bodies: list[Part]) -> float:
    """The longest edge of the box around all joints, masses and bodies at neutral q."""
    poses = Motion(model, model.neutral()[:, None], np.zeros((model.nv, 1)), NUMPY).poses
    points = [poses[i][1][:, 0] for i in model.topology.links]
    points += [poses[i][1][:, 0] + poses[i][0] @ l.inertia.com for i, l in enumerate(model.links) if l.inertia.mass > 0]
    for part in bodies:
        R, p = poses[part.link]
        low, high = part.surface.vertices.min(axis=0), part.surface.vertices.max(axis=0)
        points += [p[:, 0] + R @ np.where(corner, high, low) for corner in np.ndindex(2, 2, 2)]
    return max(float(np.ptp(points, axis=0).max()), 0.05) if points else 0.05


def _ellipsoid(body: BodyInertia, size: float, density: float = 0.0) -> Surface | None:
    """The solid ellipsoid of this mass and inertia; extreme ones are limited to what can be seen.

    It shrinks to this density (kg/m^3) where it is lighter.
    """
    if not body.mass > 0:
        return None
    moments, axes = np.linalg.eigh(body.I)
    squares = 2.5 / body.mass * (moments.sum() - 2 * moments)
    radii = np.clip(np.sqrt(np.maximum(squares, 0.0)), 0.008 * size, 0.6 * size)
    radii = radii * min(1.0, body.mass / max(density * 4 / 3 * np.pi * radii.prod(), 1e-300)) ** (1 / 3)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return shapes.ellipsoid(radii).moved(axes, body.com)


def _pins(model: Model, i: int, size: float) -> Surface | None:
    """A cylinder along each axis that the joint turns about, a bar along each that it slides along."""
    joint = model.links[i].joint
    if joint.nv == 0 or joint.nv == 6:
        return None
    S = np.asarray(joint.subspace(joint.neutral()[:, None], NUMPY))
    out = []
    for linear, angular in zip(S[:3].T, S[3:].T, strict=True):
        turns = bool(np.abs(angular).max() > 1e-9)
        bar = np.array([0.015, 0.015, 0.1]) * size
        shape = shapes.cylinder(0.012 * size, 0.05 * size) if turns else shapes.box(bar)
        out.append(shape.moved(shapes.towards(angular if turns else linear), np.zeros(3)))
    return joined(out)


def _bones(model: Model, i: int, size: float) -> Surface | None:
    """From the link's origin to the joints and closures that it carries, but not to floating bases."""
    ends = [l.placement.p for l in model.links[1:] if l.parent == i and l.joint.nv < 6]
    named = [model.frame(n) for c in model.constraints for n in (getattr(c, "a", None), getattr(c, "b", None)) if n]
    ends += [f.placement.p for f in named if f.link == i]
    if i and not model.topology.children[i]:
        ends.append(model.links[i].inertia.com)
    out = []
    for end in ends:
        length = float(np.linalg.norm(end))
        if length > 0.01 * size:
            thick = float(np.clip(0.1 * length, 0.006 * size, 0.018 * size))
            out.append(shapes.bone(end, thick, 0.7 * thick))
    return joined(out) if out else None
