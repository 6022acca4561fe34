"""The mechanism that kernels compute with instead of the user's: the same one, in fewer operations.

Inertias are lumped, link frames and the origin of a free base chosen (lumping.py, frames.py, rooting.py). What goes in
and comes out is converted at the edges; only a moved free base needs that. Found once for each model.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.backends.ops import Array, Ops
from linkwork.model import Model, Motion
from linkwork.model.memo import cached
from linkwork.rewrite.frames import reframed
from linkwork.rewrite.rooting import Based, based


@dataclass(frozen=True)
class Inside:
    """A model that stands for another; `base` converts where its free base has another origin."""

    model: Model
    base: Based | None = None

    def motion(self, q: Array, v: Array, xp: Ops) -> Motion:
        """The state of the user's model as one of this."""
        if self.base is None:
            return Motion(self.model, q, v, xp)
        return Motion(self.model, self.base.position(q, xp), self.base.velocity(v, xp), xp)

    def force(self, tau: Array, xp: Ops) -> Array:
        """Joint forces of the user's model as those of this."""
        return tau if self.base is None else self.base.force(tau, xp)

    def acceleration(self, a: Array, xp: Ops) -> Array:
        """Joint accelerations of this model as those of the user's."""
        return a if self.base is None else self.base.acceleration(a, xp)


def inside(model: Model, frames: str = "best") -> Inside:
    """What to compute forward dynamics with: the model itself in "given" frames."""
    if frames != "best":
        return Inside(model)
    base = _based(model)
    return Inside(cheaper(model)) if base is None else Inside(base.model, base)


def cheaper(model: Model, frames: str = "best") -> Model:
    """The same with the user's origin of a free base: for functions with other results than accelerations."""
    return reframed(model) if frames == "best" else model


@cached
def _based(model: Model) -> Based | None:
    return based(model, cheaper(model))
