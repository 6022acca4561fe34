"""A humanoid of human proportions, with hands and, if asked for, knees driven by four-bar linkages."""

from __future__ import annotations

import numpy as np

from linkwork.constraints import Hinge
from linkwork.joints import Free, Revolute
from linkwork.model import BodyInertia, Builder, Limits, Model, Placement
from linkwork.robots.mechanisms.parts import ball, box, cylinder, rod
from linkwork.robots.mechanisms.quadruped import check_crouch, grounded, place_joints

SIDES = ("left", "right")
FINGERS = ("thumb", "index", "middle", "ring", "little")
THIGH = SHANK = 0.40
"""Lengths of the two leg segments (m): equal, so that a foot stays below its hip when the leg bends."""
ANKLE = 0.08
LEVER = 0.05
"""Length (m) of the two levers of a knee's linkage: with the rod and the thigh they form a parallelogram."""


def humanoid(hands: bool = True, four_bar_legs: bool = False) -> Model:
    """A humanoid with a free base: nv = 37, with hands 67, with four-bar legs 4 more; 75 kg and 1.8 m.

    Legs and arms have 6 and 7 hinges, the waist 3, the neck 2, each finger 3. q starts with the pelvis'
    [x y z  qx qy qz qw]. Links are called `left_thigh`, `right_forearm`, ..., joints `left_knee`, `neck_yaw`, ...
    Frames: `left_foot`, `right_foot` on the soles (z up, x ahead), `left_hand`, `right_hand` in the palms, `head_top`,
    `left_index_tip`, ... Neutral q is upright with straight legs and hanging arms.

    With `four_bar_legs` each knee is driven by a crank near the hip through a rod (links `left_crank`, `left_rod`): a
    planar parallelogram closed by a hinge, 5 rows of which 2 matter, closed when crank = knee and rod = -knee.
    """
    b = Builder("humanoid")
    b.link("pelvis", joint=Free(), joint_name="root", inertia=box(10.0, (0.2, 0.28, 0.14)), actuated=False)
    _hinge(b, "waist_yaw", "pelvis", "waist_yaw", "z", (0, 0, 0.08), ball(1.0, 0.06), 150, 1.3)
    _hinge(b, "waist_roll", "waist_yaw", "waist_roll", "x", (0, 0, 0.02), ball(1.0, 0.06), 150, 0.6)
    _hinge(b, "torso", "waist_roll", "waist_pitch", "y", (0, 0, 0.02), box(22.0, (0.2, 0.32, 0.42), (0, 0, 0.22)), 200, 1.0)
    _hinge(b, "neck", "torso", "neck_yaw", "z", (0, 0, 0.45), cylinder(0.8, 0.05, 0.08, "z", (0, 0, 0.04)), 20, 1.5)
    _hinge(b, "head", "neck", "neck_pitch", "y", (0, 0, 0.08), ball(3.6, 0.1, (0, 0, 0.1)), 20, 0.8)
    b.frame("head_top", "head", Placement.at((0, 0, 0.2)))
    for side in SIDES:
        _leg(b, side, four_bar_legs)
        _arm(b, side, hands)
    return b.build()


def _hinge(b: Builder, link: str, parent: str, joint: str, axis: str, xyz: object, inertia: BodyInertia,
           effort: float, reach: float | tuple[float, float], actuated: bool = True) -> None:
    lower, upper = (-reach, reach) if isinstance(reach, (int, float)) else reach
    b.link(link, parent, Revolute(axis), placement=Placement.at(xyz), inertia=inertia, joint_name=joint,
           armature=1e-4 * effort if actuated else 0.0, limits=Limits(lower, upper, effort, 10.0), actuated=actuated)


def _leg(b: Builder, side: str, four_bar: bool) -> None:
    y = 1 if side == "left" else -1
    p = f"{side}_"
    _hinge(b, p + "hip_yaw", "pelvis", p + "hip_yaw", "z", (0, 0.09 * y, -0.06), ball(1.2, 0.05), 100, 0.8)
    _hinge(b, p + "hip_roll", p + "hip_yaw", p + "hip_roll", "x", (0, 0, -0.02), ball(1.2, 0.05), 150, 0.6)
    _hinge(b, p + "thigh", p + "hip_roll", p + "hip_pitch", "y", (0, 0, 0), rod(6.0, (0, 0, -THIGH), 0.07), 200, (-2.0, 0.8))
    _hinge(b, p + "shank", p + "thigh", p + "knee", "y", (0, 0, -THIGH), rod(3.5, (0, 0, -SHANK), 0.05), 250, (0.0, 2.4),
           actuated=not four_bar)
    _hinge(b, p + "ankle", p + "shank", p + "ankle_pitch", "y", (0, 0, -SHANK), ball(0.3, 0.03), 120, (-1.2, 0.8))
    _hinge(b, p + "foot_body", p + "ankle", p + "ankle_roll", "x", (0, 0, 0),
           box(1.2, (0.24, 0.1, 0.06), (0.04, 0, 0.03 - ANKLE)), 80, 0.5)
    b.frame(p + "foot", p + "foot_body", Placement.at((0.04, 0, -ANKLE)))
    if four_bar:
        top = 0.06
        _hinge(b, p + "crank", p + "thigh", p + "crank", "y", (0, 0, -top), rod(0.3, (-LEVER, 0, 0), 0.015), 250, (0.0, 2.4))
        _hinge(b, p + "rod", p + "crank", p + "rod", "y", (-LEVER, 0, 0), rod(0.4, (0, 0, top - THIGH), 0.01), 0, (-2.4, 0.0),
               actuated=False)
        b.frame(p + "rod_end", p + "rod", Placement.at((0, 0, top - THIGH)))
        b.frame(p + "knee_lever", p + "shank", Placement.at((-LEVER, 0, 0)))
        b.constraints.append(Hinge(p + "rod_end", p + "knee_lever", axis="y", name=p + "knee_loop"))
        b.independent.append(p + "crank")


def _arm(b: Builder, side: str, hand: bool) -> None:
    y = 1 if side == "left" else -1
    p = f"{side}_"
    _hinge(b, p + "shoulder", "torso", p + "shoulder_pitch", "y", (0, 0.18 * y, 0.38), ball(0.8, 0.05), 80, 2.8)
    _hinge(b, p + "shoulder_roll", p + "shoulder", p + "shoulder_roll", "x", (0, 0.02 * y, 0), ball(0.8, 0.05), 80,
           (-0.2, 2.5) if y > 0 else (-2.5, 0.2))
    _hinge(b, p + "upper_arm", p + "shoulder_roll", p + "shoulder_yaw", "z", (0, 0, 0), rod(1.6, (0, 0, -0.28), 0.045), 60, 1.6)
    _hinge(b, p + "elbow", p + "upper_arm", p + "elbow", "y", (0, 0, -0.28), ball(0.3, 0.04), 60, (-2.4, 0.0))
    _hinge(b, p + "forearm", p + "elbow", p + "wrist_yaw", "z", (0, 0, 0), rod(1.0, (0, 0, -0.25), 0.035), 30, 1.6)
    _hinge(b, p + "wrist", p + "forearm", p + "wrist_roll", "x", (0, 0, -0.25), ball(0.1, 0.025), 20, 0.6)
    _hinge(b, p + "palm", p + "wrist", p + "wrist_pitch", "y", (0, 0, 0), box(0.4, (0.08, 0.03, 0.1), (0, 0, -0.05)), 20, 0.8)
    b.frame(p + "hand", p + "palm", Placement.at((0, -0.02 * y, -0.07)))
    if hand:
        for k, finger in enumerate(FINGERS):
            _finger(b, side, finger, (0.04, 0, -0.03) if k == 0 else (0.045 - 0.018 * k, 0, -0.1))


def _finger(b: Builder, side: str, finger: str, root: tuple[float, float, float]) -> None:
    """A spreading joint and two bending ones: phalanges of 45 and 30 mm that close towards the palm's inside."""
    p, inward = f"{side}_{finger}_", "x" if side == "left" else "-x"
    if finger == "thumb":
        inward = "-z" if side == "left" else "z"
    spread = "y" if finger != "thumb" else "-y"
    tip = (0, 0, -1) if finger != "thumb" else (1, 0, 0)
    reach = np.array(tip, dtype=float)
    _hinge(b, p + "base", f"{side}_palm", p + "spread", spread, root, ball(0.005, 0.008), 0.5, 0.35)
    _hinge(b, p + "proximal", p + "base", p + "bend", inward, (0, 0, 0), rod(0.03, 0.045 * reach, 0.008), 0.7, (0.0, 1.6))
    _hinge(b, p + "distal", p + "proximal", p + "curl", inward, 0.045 * reach, rod(0.02, 0.03 * reach, 0.007), 0.5, (0.0, 1.6))
    b.frame(p + "tip", p + "distal", Placement.at(0.03 * reach))


def standing_humanoid(model: Model, crouch: float = 0.3) -> np.ndarray:
    """q = [x y z  qx qy qz qw, joints] with both soles flat on the ground z = 0, below the hips, the pelvis level.

    `crouch` (rad) is how far the thighs lean forwards; the elbows are bent a little. Linkages of the legs are closed.
    """
    check_crouch(crouch)
    angles: dict[str, float] = {}
    for side in SIDES:
        angles |= {f"{side}_hip_pitch": -crouch, f"{side}_knee": 2 * crouch, f"{side}_ankle_pitch": -crouch,
                   f"{side}_elbow": -0.4}
        if f"{side}_crank" in (l.joint_name for l in model.links):
            angles |= {f"{side}_crank": 2 * crouch, f"{side}_rod": -2 * crouch}
    return grounded(model, place_joints(model, angles), tuple(f"{side}_foot" for side in SIDES))
