"""Parametric mechanisms: scaling studies, closed linkages, transmissions, and three legged robots.

Each function returns a frozen `Model`. Those with loops are closed at neutral q unless their docstring says otherwise.
"""

from __future__ import annotations

from linkwork.robots.mechanisms.fuzz import random_mechanism
from linkwork.robots.mechanisms.humanoids import biped, humanoid
from linkwork.robots.mechanisms.linkages import bricard, four_bar, gripper, planar_leg, six_bar
from linkwork.robots.mechanisms.loops import all_coupled_loops, chain_of_loops, ring, star_of_loops
from linkwork.robots.mechanisms.parts import ball, box, closed, cylinder, frame_pose, rod
from linkwork.robots.mechanisms.postures import grounded, posture, standing
from linkwork.robots.mechanisms.quadrupeds import quadruped
from linkwork.robots.mechanisms.transmissions import belt_chain, differential, geared_chain
from linkwork.robots.mechanisms.trees import arm, chain, ladder, random_tree, stem

__all__ = [
    "all_coupled_loops",
    "arm",
    "ball",
    "belt_chain",
    "biped",
    "box",
    "bricard",
    "chain",
    "chain_of_loops",
    "closed",
    "cylinder",
    "differential",
    "four_bar",
    "frame_pose",
    "geared_chain",
    "gripper",
    "grounded",
    "humanoid",
    "ladder",
    "planar_leg",
    "posture",
    "quadruped",
    "random_mechanism",
    "random_tree",
    "ring",
    "rod",
    "six_bar",
    "standing",
    "star_of_loops",
    "stem",
]
