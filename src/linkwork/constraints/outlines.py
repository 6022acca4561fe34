"""Round bodies over curved ground: samples of their places, all around.

The places of a round body are centre + A x for unit vectors x: of a plane for the rim of a disc, in space for an
ellipsoid. On a plane one of them is the lowest; over curved ground a body may touch with any, and with several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from linkwork.backends.ops import Array
from linkwork.constraints.contact import Surface
from linkwork.constraints.ground_shapes import RoundContact

if TYPE_CHECKING:
    from linkwork.model.motion import Motion

FAR = 1e9
"""Metres: where there is nothing near."""


Candidate = TypeVar("Candidate", bound=RoundContact)


class Outline(Generic[Candidate]):
    """The places of a round body, and their distances from the ground at some of them."""

    def __init__(self, contact: Candidate, motion: Motion, ground: Surface) -> None:
        self.contact, self.ground, self.xp = contact, ground, motion.xp
        self.body, xp = contact.moving(motion), motion.xp
        self.centre, self.axes = self.body.centre, self.body.R @ xp.constant(contact.spread)
        places = [self.at(xp.constant(x)) for x in self.units]
        below = [ground.under(place, xp) for place in places]
        self.normals = [plane.axes[:, 2:3] for plane in below]
        self.gaps = [(n.T @ x)[0, 0] - b.height for n, x, b in zip(self.normals, places, below, strict=True)]

    @property
    def units(self) -> Sequence[np.ndarray]:
        """x of the samples, as columns."""
        raise NotImplementedError

    def at(self, x: Array) -> Array:
        """A place, in the world."""
        return self.centre + self.axes @ x

    def place(self, x: Array) -> Array:
        """A place, in the axes of the frame."""
        return self.xp.constant(self.contact.centre) + self.xp.constant(self.contact.spread) @ x

    def nearest(self, c: Candidate) -> Array:
        """The place of a candidate of this body, in the axes of the frame."""
        raise NotImplementedError

    def lowest(self, z: Sequence[Array], axes: Array, centre: Array) -> Array:
        """x of the nearest place of a body with this centre and A; z are the distances of its samples."""
        raise NotImplementedError
