"""Parametric mechanisms: scaling studies, closed linkages, transmissions, and two legged robots for everyone.

Each function returns a frozen `Model`. Those with loops are closed at neutral q unless their docstring says otherwise.
"""

from __future__ import annotations

from linkwork.robots.mechanisms.humanoid import humanoid, standing_humanoid
from linkwork.robots.mechanisms.linkages import four_bar
from linkwork.robots.mechanisms.parts import ball, box, closed, cylinder, frame_pose, rod
from linkwork.robots.mechanisms.quadruped import quadruped, standing_quadruped
from linkwork.robots.mechanisms.trees import arm, chain, ladder, random_tree, stem

__all__ = [
    "arm",
    "ball",
    "box",
    "chain",
    "closed",
    "cylinder",
    "four_bar",
    "frame_pose",
    "humanoid",
    "ladder",
    "quadruped",
    "random_tree",
    "rod",
    "standing_humanoid",
    "standing_quadruped",
    "stem",
]
