"""A free base whose frame sits where it is cheap, with positions, velocities and forces converted at the edges.

The origin of the base may be anywhere on its link, at one of its joints for instance, which removes that joint's
translation and simplifies those of others. With r the new origin in the user's frame of the base, axes unchanged,

    p' = p + R r,    v' = v + w x r,    n' = n - r x f,    vdot = vdot' - wdot x r ,

[v; w] and [f; n] being the velocity of and the force on the base; everything else is as rewrite/frames.py has it.
Another link as the root was tried, too: it takes hardly fewer operations than this even before its conversion.
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
from linkwork.rewrite.lumping import lumped
from linkwork.spatial.rotations import quaternion_matrix

if TYPE_CHECKING:
    from linkwork.kernels.trace import Symbol


@dataclass(frozen=True)
class Based:
    """A mechanism that stands for another: link 1 of both has a free joint, its origins are `r` apart."""

    model: Model
    r: np.ndarray

    def position(self, q: Array, xp: Ops) -> Array:
        """q of the other mechanism as q of this one."""
        return xp.vstack([q[0:3, :] + quaternion_matrix(q[3:7, :], xp) @ xp.constant(self.r), q[3:, :]])

    def velocity(self, v: Array, xp: Ops) -> Array:
        """v as v of this one; differences of velocities and impulses of velocity too."""
        return xp.vstack([v[0:3, :] - xp.cross(xp.constant(self.r), v[3:6, :]), v[3:, :]])

    def force(self, tau: Array, xp: Ops) -> Array:
        """tau as tau of this one."""
        return xp.vstack([tau[0:3, :], tau[3:6, :] - xp.cross(xp.constant(self.r), tau[0:3, :]), tau[6:, :]])

    def acceleration(self, a: Array, xp: Ops) -> Array:
        """a of this mechanism as a of the other."""
        return xp.vstack([a[0:3, :] + xp.cross(xp.constant(self.r), a[3:6, :]), a[3:, :]])


def based(model: Model, plain: Model | None = None) -> Based | None:
    """The mechanism in its best frames with another origin of the free base, if that takes fewer operations in all.

    `plain` is the mechanism in its best frames with the origin where it is, if that is known already.
    """
    free = model.nlinks > 0 and isinstance(model.links[1].joint, Free) and model.topology.children[0] == (1,)
    if not free or model.links[1].armature.any() or any(type(c) not in KEPT for c in model.constraints):
        return None
    light = lumped(model)
    W = choose(light, free_base=True)
    found = Based(lumped(moved(light, W)), W[1].p)
    return found if W[1].p.any() and operations_based(found) < operations(plain or reframed(model)) else None


def operations_based(based: Based) -> int:
    """What the forward dynamics of the tree take, conversions included."""
    from linkwork.kernels.trace import trace

    model = based.model

    def body(xp: Ops, symbol: Symbol) -> dict[str, Array]:
        q, v = based.position(symbol("q", model.nq), xp), based.velocity(symbol("v", model.nv), xp)
        tau = based.force(symbol("tau", model.nv), xp)
        return {"a": based.acceleration(aba(Motion(model, q, v, xp), tau), xp)}

    return trace("aba", body).operations
