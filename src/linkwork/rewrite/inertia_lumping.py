"""Lumped inertias: parts of a link's inertia that its joint does not move, moved to the parent.

An inertia G with G S = 0 that the joint's motion does not change acts on the parent only: a mass on the axis of a
hinge, say. Lumped into the parent, it changes neither joint forces nor external ones: without it the recursions find
IA_i - G and the same U and D. What remains has fewer entries: seven of ten for a link on a hinge, and no mass (the base
parameters of identification: Khalil and Dombre, chapter 9). All of it is linear in the inertias, which may be inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import Ops
from linkwork.joints import Joint
from linkwork.model import Model
from linkwork.model.body import Moments
from linkwork.model.memo import cached
from linkwork.spatial import RigidInertia, Transform
from linkwork.spatial.transforms import constant_moves


@cached
def lumped(model: Model) -> Model:
    """The same mechanism with as few entries in its inertias as its joints allow.

    Dynamics with any external forces and constraints are the same; inertias of single links are no longer those of
    bodies.
    """
    bodies = [Moments.of(l.inertia) for l in model.links]
    for i in reversed(model.topology.links):
        link = model.links[i]
        given = shared_moments(link.joint, bodies[i])
        bodies[i] = tidied(bodies[i] + -given, bodies[i])
        bodies[link.parent] = bodies[link.parent] + given.moved(link.placement)
    return replace(model, links=tuple(replace(l, inertia=b) for l, b in zip(model.links, bodies, strict=True)))


def lump(model: Model, bodies: Sequence[RigidInertia], xp: Ops) -> list[RigidInertia]:
    """The same for inertias that are inputs, in the axes of the model's links."""
    out = list(bodies)
    for i in reversed(model.topology.links):
        link, before = model.links[i], out[i]
        given = shared(link.joint, before, xp)
        mass = before.mass if isinstance(given.mass, float) else 0.0
        out[i] = RigidInertia(mass, before.h - given.h, before.I - given.I, xp)
        X = Transform(constant_moves(link.placement.R, link.placement.p, xp), xp)
        out[link.parent] = out[link.parent] + X.congruence(given)
    return out


def shared(joint: Joint, body: RigidInertia, xp: Ops) -> RigidInertia:
    """The part of a body's inertia that can be lumped into the parent."""
    none, flat = xp.zeros(3), xp.zeros(3, 3)
    if joint.kind == "fixed":
        return body
    if joint.kind == "prismatic":
        return RigidInertia(0.0, none, body.I, xp)
    if joint.kind in ("spherical", "universal"):
        return RigidInertia(body.mass, none, flat, xp)
    if joint.kind not in ("revolute", "helical", "cylindrical", "planar"):
        return RigidInertia(0.0, none, flat, xp)
    u = getattr(joint, "axis", np.array([0.0, 0.0, 1.0]))
    across = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
    across = xp.constant(across / np.linalg.norm(across))
    disc = (across.T @ body.I @ across)[0, 0] * xp.constant(np.eye(3) - np.outer(u, u))
    if joint.kind != "revolute":
        return RigidInertia(0.0, none, disc, xp)
    return RigidInertia(body.mass, (body.h.T @ xp.constant(u))[0, 0] * xp.constant(u), disc, xp)


def shared_moments(joint: Joint, body: Moments) -> Moments:
    """The same for a body that is known."""
    part = shared(joint, RigidInertia(body.mass, body.h[:, None], body.I, NUMPY), NUMPY)
    return Moments(float(part.mass), np.zeros(3), np.asarray(part.I), np.asarray(part.h)[:, 0])


def tidied(body: Moments, before: Moments) -> Moments:
    """The inertia with entries set to zero that are rounding of those before."""
    eps = 8 * np.finfo(float).eps
    h = np.where(np.abs(body.h) <= eps * np.abs(before.h).max(), 0.0, body.h)
    I = np.where(np.abs(body.I) <= eps * np.abs(before.I).max(), 0.0, body.I)
    return Moments(body.mass, np.zeros(3), I, h)
