"""Lumped inertias: parts of a link's inertia that its joint does not move, moved to the parent.

An inertia G with G S = 0 that the joint's motion does not change acts on the parent only: a mass on the axis of a
hinge, say. Lumped into the parent, it changes neither joint forces nor external ones: without it the recursions find
IA_i - G and the same U and D. What remains has fewer entries: seven of ten for a link on a hinge, and no mass (the base
parameters of identification: Khalil and Dombre, chapter 9).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwork.joints import Joint
from linkwork.model import Model
from linkwork.model.body import Moments
from linkwork.model.memo import cached


@cached
def lumped(model: Model) -> Model:
    """The same mechanism with as few entries in its inertias as its joints allow.

    Dynamics with any external forces and constraints are the same; inertias of single links are no longer those of
    bodies.
    """
    bodies = [Moments.of(l.inertia) for l in model.links]
    for i in reversed(model.topology.links):
        link = model.links[i]
        given = shared(link.joint, bodies[i])
        bodies[i] = tidied(bodies[i] + -given, bodies[i])
        bodies[link.parent] = bodies[link.parent] + given.moved(link.placement)
    return replace(model, links=tuple(replace(l, inertia=b) for l, b in zip(model.links, bodies, strict=True)))


def shared(joint: Joint, body: Moments) -> Moments:
    """The part of a body's inertia that can be lumped into the parent."""
    mass, h, I, none = body.mass, body.h, body.I, np.zeros(3)
    if joint.kind == "fixed":
        return body
    if joint.kind == "prismatic":
        return Moments(0.0, none, I)
    if joint.kind in ("spherical", "universal"):
        return Moments(mass)
    if joint.kind not in ("revolute", "helical", "cylindrical", "planar"):
        return Moments()
    u = getattr(joint, "axis", np.array([0.0, 0.0, 1.0]))
    across = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
    across = across / np.linalg.norm(across)
    disc = (across @ I @ across) * (np.eye(3) - np.outer(u, u))
    return Moments(mass, none, disc, (h @ u) * u) if joint.kind == "revolute" else Moments(0.0, none, disc)


def tidied(body: Moments, before: Moments) -> Moments:
    """The inertia with entries set to zero that are rounding of those before."""
    eps = 8 * np.finfo(float).eps
    h = np.where(np.abs(body.h) <= eps * np.abs(before.h).max(), 0.0, body.h)
    I = np.where(np.abs(body.I) <= eps * np.abs(before.I).max(), 0.0, body.I)
    return Moments(body.mass, np.zeros(3), I, h)
