"""Another origin of a free base that takes fewer operations, with inputs and outputs converted.

The origin of the base may be anywhere on its link, at one of its joints for instance, which removes that joint's
translation and simplifies those of others. With r the new origin in the user's frame of the base, axes unchanged,

    p' = p + R r,    v' = v + w x r,    n' = n - r x f,    vdot = vdot' - wdot x r ,

[v; w] and [f; n] being the velocity of and the force on the base; everything else is that of rewrite/frames.py.
Another link as the root takes hardly fewer operations than this even without its conversion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwork.algorithms.tree.aba import aba
from linkwork.backends.ops import Array, Ops
from linkwork.joints import Free
from linkwork.model import Model, Motion
from linkwork.rewrite.frame_choice import choose
from linkwork.rewrite.frames import KEPT, moved, operations, reframed
from linkwork.rewrite.inertia_lumping import lumped
from linkwork.spatial.rotations import quaternion_matrix

if TYPE_CHECKING:
    from linkwork.kernels.programs.trace import Symbol


@dataclass(frozen=True)
class Based:
    """A rewritten mechanism: link 1 has a free joint, and its origin is `r` away from the user's."""

    model: Model
    r: np.ndarray

    def position(self, q: Array, xp: Ops) -> Array:
        """The user's q as q of this mechanism."""
        return xp.vstack([q[0:3, :] + quaternion_matrix(q[3:7, :], xp) @ xp.constant(self.r), q[3:, :]])

    def velocity(self, v: Array, xp: Ops) -> Array:
        """The user's v as v of this mechanism; differences and jumps of velocities too."""
        return xp.vstack([v[0:3, :] - xp.cross(xp.constant(self.r), v[3:6, :]), v[3:, :]])

    def force(self, tau: Array, xp: Ops) -> Array:
        """The user's tau as tau of this mechanism."""
        return xp.vstack([tau[0:3, :], tau[3:6, :] - xp.cross(xp.constant(self.r), tau[0:3, :]), tau[6:, :]])

    def acceleration(self, a: Array, xp: Ops) -> Array:
        """a of this mechanism as the user's a."""
        return xp.vstack([a[0:3, :] + xp.cross(xp.constant(self.r), a[3:6, :]), a[3:, :]])


def based(model: Model, plain: Model | None = None) -> Based | None:
    """The reframed mechanism with another origin of the free base, if that takes fewer operations.

    `plain` is the reframed mechanism with the user's origin, if it has been computed already. Conversions count.
    """
    free = model.nlinks > 0 and isinstance(model.links[1].joint, Free) and model.topology.children[0] == (1,)
    if not free or model.links[1].armature.any() or any(type(c) not in KEPT for c in model.constraints):
        return None
    light = lumped(model)
    W = choose(light, free_base=True)
    found = Based(lumped(moved(light, W)), W[1].p)
    return found if W[1].p.any() and operations_based(found) < operations(plain or reframed(model)) else None


def operations_based(based: Based) -> int:
    """Operations of the forward dynamics of the tree, conversions included."""
    from linkwork.kernels.programs.trace import trace

    model = based.model

    def body(xp: Ops, symbol: Symbol) -> dict[str, Array]:
        q, v = based.position(symbol("q", model.nq), xp), based.velocity(symbol("v", model.nv), xp)
        tau = based.force(symbol("tau", model.nv), xp)
        return {"a": based.acceleration(aba(Motion(model, q, v, xp), tau), xp)}

    return trace("aba", body).operations
