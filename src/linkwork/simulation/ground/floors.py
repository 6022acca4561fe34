"""The ground of a model from the shapes of its world: planes and height fields of MJCF files."""

from __future__ import annotations

import warnings

import numpy as np

from linkwork.checks import checked
from linkwork.constraints.contact import Ground, Surface
from linkwork.constraints.terrain import HeightField
from linkwork.errors import InputError, users_level
from linkwork.io.xml import LoadWarning
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.model.visual import Collider, HalfSpace, Heights

UPRIGHT = 1e-9
"""The largest entry of an upright height field's axes that should be 0."""


@checked(model=MODEL)
def ground(model: Model) -> Surface:
    """The ground that a model's file has: a height field, else a plane; the plane z = 0 if it has none.

    For `ground=` of `lw.step`, `lw.rollout` and `lw.simulate`. Coefficients of friction are those of contacts: what the
    file says of the ground's own is not used. Of several the first is taken, with a warning.

    Examples:
        >>> lw.ground(quadruped())
        Ground(normal='z', height=0)
    """
    shapes = model.links[0].colliders
    floors = [c for kind in (Heights, HalfSpace) for c in shapes if isinstance(c.shape, kind)]
    if len(floors) > 1:
        named = ", ".join(f"'{c.name}'" for c in floors[1:])
        warnings.warn(
            LoadWarning(f"one ground is taken, '{floors[0].name}'; {named} are left out"), stacklevel=users_level()
        )
    return _surface(floors[0]) if floors else Ground()


def _surface(floor: Collider) -> Surface:
    X, shape = floor.placement, floor.shape
    if isinstance(shape, HalfSpace):
        return Ground(X.R[:, 2], float(X.R[:, 2] @ X.p))
    assert isinstance(shape, Heights)
    if np.abs(X.R - np.eye(3)).max() > UPRIGHT:
        raise InputError(f"the height field '{floor.name}' is turned: one along the axes of the world can be ground")
    return HeightField(shape.z + X.p[2], shape.size, X.p[:2])
