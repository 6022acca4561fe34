"""The mechanism as data: links, joints, frames and topology."""

from __future__ import annotations

from linkwork.model.body import BodyInertia, Placement
from linkwork.model.builder import Builder
from linkwork.model.link import Limits, Link
from linkwork.model.model import WORLD, Frame, Model
from linkwork.model.motion import Motion
from linkwork.model.topology import Topology
from linkwork.model.visual import Visual

__all__ = [
    "WORLD",
    "BodyInertia",
    "Builder",
    "Frame",
    "Limits",
    "Link",
    "Model",
    "Motion",
    "Placement",
    "Topology",
    "Visual",
]
