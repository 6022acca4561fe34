"""A quadruped of the size of a Unitree Go1 or an MIT Mini Cheetah."""

from __future__ import annotations

from linkwork.joints import Free, Revolute
from linkwork.model import Builder, Limits, Model, Placement
from linkwork.robots.mechanisms.parts import ball, box, cylinder, rod

LEGS = ("front_left", "front_right", "rear_left", "rear_right")
THIGH = SHANK = 0.213
"""Lengths of the two leg segments (m): equal, so that a foot stays below its hip when the leg bends."""


def quadruped() -> Model:
    """A quadruped with a free base and three hinges in each leg: nv = 18, 12.1 kg.

    Links: `trunk` and, for each leg `front_left` ... `rear_right`, `<leg>_hip` (abduction, x), `<leg>_thigh` (y),
    `<leg>_shank` (y, knee). Frames `<leg>_foot` are the contact points. q starts with the trunk's
    [x y z  qx qy qz qw]. Hips at x = +-0.188, y = +-0.047; thighs 0.08 m outside; thigh and shank 0.213 m.
    """
    b = Builder("quadruped")
    b.link("trunk", joint=Free(), joint_name="root", inertia=box(5.6, (0.4, 0.19, 0.11)), actuated=False)
    for leg in LEGS:
        fore = 1 if leg.startswith("front") else -1
        side = 1 if leg.endswith("left") else -1
        b.link(
            f"{leg}_hip",
            "trunk",
            Revolute("x"),
            placement=Placement.at((0.188 * fore, 0.047 * side, 0)),
            inertia=cylinder(0.6, 0.045, 0.05, "y", (0, 0.03 * side, 0)),
            armature=0.005,
            joint_name=f"{leg}_abduction",
            limits=Limits(-0.86, 0.86, 23.7, 30.0),
        )
        b.link(
            f"{leg}_thigh",
            f"{leg}_hip",
            Revolute("y"),
            placement=Placement.at((0, 0.08 * side, 0)),
            inertia=rod(0.85, (0, 0, -THIGH), 0.025),
            armature=0.005,
            joint_name=f"{leg}_hip_pitch",
            limits=Limits(-0.69, 4.5, 23.7, 30.0),
        )
        b.link(
            f"{leg}_shank",
            f"{leg}_thigh",
            Revolute("y"),
            placement=Placement.at((0, 0, -THIGH)),
            inertia=rod(0.115, (0, 0, -SHANK), 0.012) + ball(0.06, 0.02, (0, 0, -SHANK)),
            armature=0.01,
            joint_name=f"{leg}_knee",
            limits=Limits(-2.8, 0.5, 35.5, 20.0),
        )
        b.frame(f"{leg}_foot", f"{leg}_shank", Placement.at((0, 0, -SHANK)))
    return b.build()
