"""Meshes of a robot file as solids that may touch others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from linkwork.checks import FLAG, NAMES, checked, optional
from linkwork.constraints.meshes import MeshBody
from linkwork.errors import InputError, users_level
from linkwork.io.xml import LoadWarning
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.model.visual import Mesh, MeshFile
from linkwork.simulation.ground.contact_points import read_shape


@checked(model=MODEL, links=optional(NAMES), hull=FLAG)
def mesh_bodies(model: Model, links: Sequence[str] | None = None, *, hull: bool = True) -> list[MeshBody]:
    """The collision meshes of a model's links, for `lw.mesh_pairs`.

    They are convex hulls, as in MuJoCo, or with hull=False surfaces as they are, which then have to be closed. `links`
    are the names of links or of frames that were links, "world" among them (all by default). A mesh that is flat or
    cannot be read is left out with a warning.

    Examples:
        >>> from linkwork.model.visual import Collider, Mesh
        >>> b = lw.Builder("wedge")
        >>> b.link("wedge", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), 0.1 * np.eye(3)))
        >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
        >>> faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
        >>> b.collider("wedge", Collider(Mesh(corners, faces)))
        >>> [body.frame for body in lw.mesh_bodies(b.build())]
        ['wedge']
    """
    wanted = range(len(model.links)) if links is None else sorted({model.frame(name).link for name in links})
    out = []
    for i in wanted:
        for collider in model.links[i].colliders:
            mesh = read_shape(collider.shape) if isinstance(collider.shape, Mesh | MeshFile) else None
            if mesh is None:
                continue
            body = model.links[i].name, np.asarray(mesh.vertices, dtype=float)
            try:
                out.append(MeshBody(*body, None if hull else mesh.faces, collider.placement))
            except InputError as problem:
                if not hull:
                    raise
                warnings.warn(LoadWarning(f"a collision shape is left out: {problem}"), stacklevel=users_level())
    return out
