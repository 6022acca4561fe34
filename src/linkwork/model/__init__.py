"""The mechanism as data: links, joints, frames and topology."""

from __future__ import annotations

from linkwork.model.actuator import Actuator
from linkwork.model.body import BodyInertia, Placement
from linkwork.model.builder import Builder
from linkwork.model.link import Limits, Link, Passive
from linkwork.model.model import WORLD, Frame, Model
from linkwork.model.motion import Motion
from linkwork.model.parameters import Parameters
from linkwork.model.tendon import Tendon
from linkwork.model.topology import Topology
from linkwork.model.visual import Visual

__all__ = [
    "WORLD",
    "Actuator",
    "BodyInertia",
    "Builder",
    "Frame",
    "Limits",
    "Link",
    "Model",
    "Motion",
    "Parameters",
    "Passive",
    "Placement",
    "Tendon",
    "Topology",
    "Visual",
]
