"""The rewritten model: the user's mechanism as kernels compute with it, in fewer operations.

Inertias are lumped, link frames and the origin of a free base chosen (lumping.py, frames.py, rooting.py). Inputs
and outputs are converted; only a moved free base needs that. Found once for each model.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.backends.ops import Array, Ops
from linkwork.model import Model, Motion
from linkwork.model.memo import cached
from linkwork.model.motion import motion_of
from linkwork.rewrite.frames import reframed
from linkwork.rewrite.rooting import Based, based


@dataclass(frozen=True)
class Rewritten:
    """A rewritten model; `base` converts coordinates where its free base has another origin."""

    model: Model
    base: Based | None = None

    def motion(self, q: Array, v: Array, xp: Ops) -> Motion:
        """The user's configuration and velocity as those of this model."""
        if self.base is None:
            return motion_of(self.model, q, v, xp)
        return motion_of(self.model, self.base.position(q, xp), self.base.velocity(v, xp), xp)

    def force(self, tau: Array, xp: Ops) -> Array:
        """Joint forces of the user's model as those of this."""
        return tau if self.base is None else self.base.force(tau, xp)

    def acceleration(self, a: Array, xp: Ops) -> Array:
        """Joint accelerations of this model as those of the user's."""
        return a if self.base is None else self.base.acceleration(a, xp)


def rewritten(model: Model, frames: str = "best") -> Rewritten:
    """The rewritten model for forward dynamics; the model itself in "given" frames."""
    if frames != "best":
        return Rewritten(model)
    base = _based(model)
    return Rewritten(rewritten_model(model)) if base is None else Rewritten(base.model, base)


def rewritten_model(model: Model, frames: str = "best") -> Model:
    """The rewritten model with the user's base origin: for results other than accelerations."""
    return reframed(model) if frames == "best" else model


@cached
def _based(model: Model) -> Based | None:
    return based(model, rewritten_model(model))
