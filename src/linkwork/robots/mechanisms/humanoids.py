"""A humanoid of human proportions, with hands and, if asked for, knees driven by four-bar linkages."""

from __future__ import annotations

import numpy as np

from linkwork.checks import FLAG, checked
from linkwork.constraints import Hinge
from linkwork.joints import Free, Revolute
from linkwork.model import BodyInertia, Builder, Limits, Model, Placement
from linkwork.robots.mechanisms.parts import ball, box, cylinder, rod

SIDES = ("left", "right")
FINGERS = ("index", "middle", "ring", "little")
THIGH = SHANK = 0.40
"""Lengths of the two leg segments (m): equal, so that a foot stays below its hip when the leg bends."""
ANKLE = 0.08
"""Height of the ankle (m)."""
CRANK, LEVER = 0.06, 0.05
"""A knee's linkage (m): the crank's place below the hip, and the length of crank and lever. It is a parallelogram."""


@checked(hands=FLAG, four_bar_legs=FLAG)
def humanoid(hands: bool = True, four_bar_legs: bool = False) -> Model:
    """A humanoid with a free base: nv = 37, with hands 67, with four-bar legs 4 more; 75 kg and 1.8 m.

    Legs and arms have 6 and 7 hinges, the waist 3, the neck 2, each finger 3. q starts with the pelvis'
    [x y z  qx qy qz qw]. Links are called `left_thigh`, `right_forearm`, ..., joints `left_knee`, `neck_yaw`, ...
    Frames: `left_foot`, `right_foot` on the soles (z up, x ahead), `left_hand`, `right_hand` in the palms, `head_top`,
    `left_index_tip`, `left_thumb_tip`, ... Neutral q is upright with straight legs and hanging arms.

    With `four_bar_legs` each knee is driven by a crank near the hip through a rod (links `left_crank`, `left_rod`): a
    planar parallelogram closed by a hinge, 5 rows of which 2 matter, closed when crank = knee and rod = -knee.
    """
    b = Builder("humanoid")
    b.link("pelvis", joint=Free(), joint_name="root", inertia=box(10.0, (0.2, 0.28, 0.14)), actuated=False)
    _limb(
        b,
        "",
        "pelvis",
        [
            ("waist_yaw", "waist_yaw", "z", (0, 0, 0.08), ball(1.0, 0.06), 150, 1.3),
            ("waist_roll", "waist_roll", "x", (0, 0, 0.02), ball(1.0, 0.06), 150, 0.6),
            ("torso", "waist_pitch", "y", (0, 0, 0.02), box(22.0, (0.2, 0.32, 0.42), (0, 0, 0.22)), 200, 1.0),
            ("neck", "neck_yaw", "z", (0, 0, 0.45), cylinder(0.8, 0.05, 0.08, "z", (0, 0, 0.04)), 20, 1.5),
            ("head", "neck_pitch", "y", (0, 0, 0.08), ball(3.6, 0.1, (0, 0, 0.1)), 20, 0.8),
        ],
    )
    b.frame("head_top", "head", Placement.at((0, 0, 0.2)))
    for side in SIDES:
        _leg(b, side, four_bar_legs)
        _arm(b, side, hands)
    return b.build()


def biped() -> Model:
    """The four-bar legs of `humanoid` below a trunk: nv = 22, mobility 18, 53 kg.

    Links, joints and frames are called as there, the trunk is `pelvis`. Knees are driven by cranks.
    """
    b = Builder("biped")
    b.link("pelvis", joint=Free(), joint_name="root", inertia=box(25.0, (0.2, 0.3, 0.3), (0, 0, 0.1)), actuated=False)
    for side in SIDES:
        _leg(b, side, True)
    return b.build()


Row = tuple[str, str, str, tuple[float, float, float], BodyInertia, float, float | tuple[float, float]]
"""Link, joint, axis, place on the link before, inertia, torque limit (0: not actuated), range (one number: +-)."""


def _limb(b: Builder, prefix: str, parent: str, rows: list[Row]) -> None:
    """Hinges one after the other, from `parent` on; every name gets the prefix.

    Rotors grow with the torque.
    """
    for link, joint, axis, xyz, inertia, effort, reach in rows:
        lower, upper = reach if isinstance(reach, tuple) else (-reach, reach)
        b.link(
            prefix + link,
            parent,
            Revolute(axis),
            placement=Placement.at(xyz),
            inertia=inertia,
            joint_name=prefix + joint,
            armature=1e-4 * effort,
            limits=Limits(lower, upper, effort or np.inf, 10.0),
            actuated=effort > 0,
        )
        parent = prefix + link


def _leg(b: Builder, side: str, four_bar: bool) -> None:
    p, y = f"{side}_", 1 if side == "left" else -1
    _limb(
        b,
        p,
        "pelvis",
        [
            ("hip_yaw", "hip_yaw", "z", (0, 0.09 * y, -0.06), ball(1.2, 0.05), 100, 0.8),
            ("hip_roll", "hip_roll", "x", (0, 0, -0.02), ball(1.2, 0.05), 150, 0.6),
            ("thigh", "hip_pitch", "y", (0, 0, 0), rod(6.0, (0, 0, -THIGH), 0.07), 200, (-2.0, 0.8)),
            ("shank", "knee", "y", (0, 0, -THIGH), rod(3.5, (0, 0, -SHANK), 0.05), 0 if four_bar else 250, (0.0, 2.4)),
            ("ankle", "ankle_pitch", "y", (0, 0, -SHANK), ball(0.3, 0.03), 120, (-1.2, 0.8)),
            ("sole", "ankle_roll", "x", (0, 0, 0), box(1.2, (0.24, 0.1, 0.06), (0.04, 0, 0.03 - ANKLE)), 80, 0.5),
        ],
    )
    b.frame(p + "foot", p + "sole", Placement.at((0.04, 0, -ANKLE)))
    if four_bar:
        _limb(
            b,
            p,
            p + "thigh",
            [
                ("crank", "crank", "y", (0, 0, -CRANK), rod(0.3, (-LEVER, 0, 0), 0.015), 250, (0.0, 2.4)),
                ("rod", "rod", "y", (-LEVER, 0, 0), rod(0.4, (0, 0, CRANK - THIGH), 0.01), 0, (-2.4, 0.0)),
            ],
        )
        b.frame(p + "rod_end", p + "rod", Placement.at((0, 0, CRANK - THIGH)))
        b.frame(p + "knee_lever", p + "shank", Placement.at((-LEVER, 0, 0)))
        b.constraints.append(Hinge(p + "rod_end", p + "knee_lever", axis="y", name=p + "knee_loop"))
        b.independent.append(p + "crank")


def _arm(b: Builder, side: str, hand: bool) -> None:
    p, y = f"{side}_", 1 if side == "left" else -1
    outward = (-0.2, 2.5) if side == "left" else (-2.5, 0.2)
    _limb(
        b,
        p,
        "torso",
        [
            ("shoulder_pitch", "shoulder_pitch", "y", (0, 0.18 * y, 0.38), ball(0.8, 0.05), 80, 2.8),
            ("shoulder_roll", "shoulder_roll", "x", (0, 0.02 * y, 0), ball(0.8, 0.05), 80, outward),
            ("upper_arm", "shoulder_yaw", "z", (0, 0, 0), rod(1.6, (0, 0, -0.28), 0.045), 60, 1.6),
            ("elbow", "elbow", "y", (0, 0, -0.28), ball(0.3, 0.04), 60, (-2.4, 0.0)),
            ("forearm", "wrist_yaw", "z", (0, 0, 0), rod(1.0, (0, 0, -0.25), 0.035), 30, 1.6),
            ("wrist", "wrist_roll", "x", (0, 0, -0.25), ball(0.1, 0.025), 20, 0.6),
            ("palm", "wrist_pitch", "y", (0, 0, 0), box(0.4, (0.08, 0.03, 0.1), (0, 0, -0.05)), 20, 0.8),
        ],
    )
    b.frame(p + "hand", p + "palm", Placement.at((0, -0.02 * y, -0.07)))
    if hand:
        inward = "-x" if side == "left" else "x"
        for k, finger in enumerate(FINGERS):
            _finger(b, f"{side}_{finger}_", f"{side}_palm", (0.035 - 0.02 * k, 0, -0.1), "y", inward, (0, 0, -1))
        across = "z" if side == "right" else "-z"
        _finger(b, f"{side}_thumb_", f"{side}_palm", (0.04, 0, -0.03), "y", across, (1, 0, 0))


def _finger(
    b: Builder,
    p: str,
    palm: str,
    root: tuple[float, float, float],
    spread: str,
    bend: str,
    along: tuple[float, float, float],
) -> None:
    """A spreading joint and two bending ones.

    Phalanges of 45 and 30 mm that close towards the palm's inside.
    """
    x, y, z = along
    near, far = (0.045 * x, 0.045 * y, 0.045 * z), (0.03 * x, 0.03 * y, 0.03 * z)
    _limb(
        b,
        p,
        palm,
        [
            ("base", "spread", spread, root, ball(0.005, 0.008), 0.5, 0.35),
            ("proximal", "bend", bend, (0, 0, 0), rod(0.03, near, 0.008), 0.7, (0.0, 1.6)),
            ("distal", "curl", bend, near, rod(0.02, far, 0.007), 0.5, (0.0, 1.6)),
        ],
    )
    b.frame(p + "tip", p + "distal", Placement.at(far))
