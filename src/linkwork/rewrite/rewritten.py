"""The rewritten model: the user's mechanism as kernels compute with it, in fewer operations.

Inertias are lumped, link frames and the origin of a free base chosen (inertia_lumping.py, frames.py, base_origin.py).
Inputs and outputs are converted: those of a moved free base, and inertias that are inputs. Found once for each model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.constraints import LinkRows
from linkwork.model import Model, Motion
from linkwork.model.body import TRIANGLE
from linkwork.model.memo import cached
from linkwork.model.motion import NOTHING, Given, motion_of
from linkwork.rewrite.base_origin import Based, based
from linkwork.rewrite.frames import reframed
from linkwork.rewrite.inertia_lumping import lump
from linkwork.spatial import RigidInertia, Transform
from linkwork.spatial.transforms import constant_moves


@dataclass(frozen=True)
class Rewritten:
    """A rewritten model; `base` converts coordinates where its free base has another origin.

    `source` is the user's model, and `lumps` says whether inertias that are inputs are lumped.
    """

    model: Model
    base: Based | None = None
    source: Model | None = None
    lumps: bool = False

    def motion(self, q: Array, v: Array, xp: Ops, inputs: Mapping[str, Array] | None = None) -> Motion:
        """The user's configuration, velocity and parameters among the `inputs` as those of this model."""
        given = self.given(inputs or {}, xp)
        if self.base is not None:
            q, v = self.base.position(q, xp), self.velocity(v, xp)
        return motion_of(self.model, q, v, xp) if given is NOTHING else Motion(self.model, q, v, xp, given)

    def velocity(self, v: Array, xp: Ops) -> Array:
        """Joint velocities of the user's model as those of this; accelerations are converted alike."""
        return v if self.base is None else self.base.velocity(v, xp)

    def given(self, inputs: Mapping[str, Array], xp: Ops) -> Given:
        """The parameters among the inputs of a function, as columns."""
        known: dict[str, Any] = {n: inputs[n] for n in ("armature", "gravity", "targets") if n in inputs}
        if "link_rows" in inputs:
            known["link_rows"] = self._link_rows(inputs["link_rows"], xp)
        if "inertia" not in inputs:
            return Given(**known) if known else NOTHING
        links, still = self.model.topology.links, _still(self.source or self.model, xp)
        bodies = [still, *(self._body(i, inputs["inertia"], xp) for i in links)]
        weightless = [None, *(self._weightless(i, bodies[i], xp) for i in links)]
        return Given(lump(self.model, bodies, xp) if self.lumps else bodies, weightless, **known)

    def _body(self, i: int, inertias: Array, xp: Ops) -> RigidInertia:
        """The inertia of link i in the axes of this model's link: in those of the user's it is an input."""
        x, I = inertias[10 * (i - 1) : 10 * i, :], [[inertias[0, 0]] * 3 for _ in range(3)]
        for (j, k), n in zip(TRIANGLE, range(4, 10), strict=True):
            I[j][k] = I[k][j] = x[n, 0]
        place = self.model.frame(self.model.links[i].name).placement
        X = Transform(constant_moves(place.R, place.p, xp), xp)
        return X.congruence(RigidInertia(x[0, 0], x[1:4, :], xp.matrix(I), xp))

    def _link_rows(self, given: Array, xp: Ops) -> dict[str, dict[str, Array]]:
        """K of all `LinkRows`, by constraint and link: K' = K X, X from this model's link to the user's."""
        found, begin = dict[str, dict[str, Array]](), 0
        for c in (self.source or self.model).constraints:
            if not isinstance(c, LinkRows):
                continue
            blocks = found.setdefault(c.name, {})
            for l in c.K:
                rows = [[given[begin + 6 * i + j, 0] for j in range(6)] for i in range(c.rows)]
                begin += 6 * c.rows
                place = self.model.frame(l).placement
                blocks[l] = (Transform(constant_moves(place.R, place.p, xp), xp).T @ xp.matrix(rows).T).T
        return found

    def _weightless(self, i: int, body: RigidInertia, xp: Ops) -> RigidInertia | None:
        """What gravity does not pull: all of the body if that is so in the user's model, else what it says."""
        link, own = (self.source or self.model).links[i], self.model.links[i].weightless
        if not (own.mass or own.first_moment.any()):
            return None
        if link.weightless.mass == link.inertia.mass and np.array_equal(
            link.weightless.first_moment, link.inertia.first_moment
        ):
            return body
        return RigidInertia(own.mass, xp.constant(own.first_moment), xp.zeros(3, 3), xp)

    def force(self, tau: Array, xp: Ops) -> Array:
        """Joint forces of the user's model as those of this."""
        return tau if self.base is None else self.base.force(tau, xp)

    def acceleration(self, a: Array, xp: Ops) -> Array:
        """Joint accelerations of this model as those of the user's."""
        return a if self.base is None else self.base.acceleration(a, xp)


def rewritten(model: Model, frames: str = "best") -> Rewritten:
    """The rewritten model for forward dynamics; the model itself in "given" frames.

    Inertias that are inputs are not lumped here: that saves 2 % of the operations, but the sums over all links behind a
    joint keep so many values alive that it costs 5 % of the time.
    """
    base = _based(model) if frames == "best" else None
    return replace(in_place(model, frames), lumps=False) if base is None else Rewritten(base.model, base, model)


def in_place(model: Model, frames: str = "best") -> Rewritten:
    """The same with the user's base origin: for results other than accelerations."""
    inner = rewritten_model(model, frames)
    return Rewritten(inner, None, model, lumps=inner is not model)


def rewritten_model(model: Model, frames: str = "best") -> Model:
    """The rewritten model with the user's base origin."""
    return reframed(model) if frames == "best" else model


@cached
def _based(model: Model) -> Based | None:
    return based(model, reframed(model))


def _still(model: Model, xp: Ops) -> RigidInertia:
    """The inertia of what is fixed to the world, which is no input: no force moves it."""
    body = model.links[0].inertia
    return RigidInertia(body.mass, xp.constant(body.first_moment), xp.constant(body.about_origin), xp)
