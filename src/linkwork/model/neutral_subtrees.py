"""The bodies that joints carry."""

from __future__ import annotations

from linkwork.model.body import BodyInertia
from linkwork.model.memo import cached
from linkwork.model.model import Model


@cached
def carried(model: Model) -> list[BodyInertia]:
    """The subtree of each joint as one body in the frame of its link, in the neutral configuration."""
    bodies = [l.inertia for l in model.links]
    for i in reversed(model.topology.links):
        bodies[model.links[i].parent] = bodies[model.links[i].parent] + bodies[i].moved(model.links[i].placement)
    return bodies
