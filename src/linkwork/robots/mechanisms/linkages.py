"""Closed linkages: four-bar, six-bar, Bricard's over-constrained one, and a gripper."""

from __future__ import annotations

import numpy as np

from linkwork.checks import FLAG, checked, choice
from linkwork.constraints import Closure, Coupling
from linkwork.errors import InputError
from linkwork.joints import Prismatic, Revolute
from linkwork.model import Builder, Limits, Model, Placement
from linkwork.model.builder import base_joint
from linkwork.robots.mechanisms.parts import ANGLE, BASE, LENGTH, attach_base, ball, box, cylinder, rod

UPRIGHT = Placement.at(rpy=(np.pi / 2, 0, 0))
"""The plane of planar linkages in the world: their x is the world's x, their y the world's z, hinges turn about -y."""
BAR, GAP = 0.06, 0.025
"""The four-bar gripper (m): length of the bars that carry a finger, and their distance."""
PLANAR_CUTS = ("revolute", "spherical", "cylindrical", "universal", "point_on_line", "fixed")
"""Cut joints that close a planar loop with mobility 1; "fixed" welds the end to an extra pin."""
PLANAR_CUT = choice("cut joint of a planar linkage", PLANAR_CUTS)


@checked(ground=LENGTH, crank=LENGTH, coupler=LENGTH, rocker=LENGTH, angle=ANGLE, crossed=FLAG, cut=PLANAR_CUT)
def four_bar(
    ground: float = 1.0,
    crank: float = 0.5,
    coupler: float = 1.0,
    rocker: float = 0.5,
    *,
    angle: float = np.pi / 3,
    crossed: bool = False,
    cut: str = "revolute",
) -> Model:
    """A planar four-bar linkage in a vertical plane: three hinges and a loop, mobility 1.

    Links `crank` (on the world at the origin), `coupler` (on the crank) and `rocker` (on the world at x = ground),
    1 kg per metre, along their own x. Neutral q is closed, with the crank `angle` above the ground link, and the other
    links placed by the lengths (`crossed` takes the other of the two assemblies). Frames `coupler_end`, `rocker_end`
    are joined by the cut joint: "revolute" gives 5 rows of rank 2, "spherical" 3; "fixed" gives 6 rows of rank 3,
    between the rocker and a small link `coupler_pin` on a fourth hinge at the coupler's end.
    """
    pin = crank * np.array([np.cos(angle), np.sin(angle)])
    end = meeting(pin, coupler, np.array([ground, 0.0]), rocker, crossed)
    b = Builder("four-bar")
    _bar(b, "crank", "world", UPRIGHT, crank, angle)
    _bar(b, "coupler", "crank", Placement.at((crank, 0, 0)), coupler, _bearing(end - pin) - angle)
    _bar(b, "rocker", "world", UPRIGHT @ Placement.at((ground, 0, 0)), rocker, _bearing(end - [ground, 0]))
    _join(b, "coupler", coupler, "rocker", rocker, cut, angle_between=_bearing(end - pin) - _bearing(end - [ground, 0]))
    b.independent.append("crank_joint")
    return b.build()


@checked(ground=LENGTH, crank=LENGTH, coupler=LENGTH, rocker=LENGTH, angle=ANGLE, cut=PLANAR_CUT)
def six_bar(
    ground: float = 1.0,
    crank: float = 0.3,
    coupler: float = 0.9,
    rocker: float = 0.6,
    *,
    angle: float = np.pi / 3,
    cut: str = "revolute",
) -> Model:
    """Watt's six-bar linkage: two four-bars that share the ground and the rocker.

    Five hinges, two loops, mobility 1.

    `crank`, `coupler` and `rocker` are those of `four_bar`. The rocker carries on to an arm of its own length, at a
    right angle; from its end `coupler2` leads to `output`, which swings about x = 2 ground. Both of them are as long
    as the ground link. Neutral q is closed; 5 rows for each loop, of rank 2.
    """
    pivot, far = np.array([ground, 0.0]), np.array([2 * ground, 0.0])
    pin = crank * np.array([np.cos(angle), np.sin(angle)])
    end = meeting(pin, coupler, pivot, rocker, False)
    elbow = pivot + [[0, 1], [-1, 0]] @ (end - pivot)
    out = meeting(elbow, ground, far, ground, False)
    b = Builder("six-bar")
    swing = _bearing(end - pivot)
    _bar(b, "crank", "world", UPRIGHT, crank, angle)
    _bar(b, "coupler", "crank", Placement.at((crank, 0, 0)), coupler, _bearing(end - pin) - angle)
    _bar(b, "rocker", "world", UPRIGHT @ Placement.at((ground, 0, 0)), rocker, swing)
    _bar(b, "coupler2", "rocker", Placement.at((0, -rocker, 0)), ground, _bearing(out - elbow) - swing)
    _bar(b, "output", "world", UPRIGHT @ Placement.at((2 * ground, 0, 0)), ground, _bearing(out - far))
    _join(b, "coupler", coupler, "rocker", rocker, cut, _bearing(end - pin) - swing)
    _join(b, "coupler2", ground, "output", ground, cut, _bearing(out - elbow) - _bearing(out - far))
    b.independent.append("crank_joint")
    return b.build()


@checked(length=LENGTH, cut=choice("cut joint of a Bricard linkage", ("fixed", "revolute")))
def bricard(length: float = 0.5, *, cut: str = "fixed") -> Model:
    """Bricard's linkage: six equal bars, six hinges, each at a right angle to the next.

    Over-constrained, mobility 1.

    Neutral q is closed: the bars are six edges of a cube, all links have the world's axes, and hinges turn about
    z, x, y in turn. Counting freedoms gives 0, the linkage has 1. cut="fixed": the last link `bar6`, on its hinge, is
    welded to the world, 6 rows of rank 5. cut="revolute": five hinges in the tree, the sixth is the loop's, 5 rows of
    rank 4.
    """
    edges = length * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]], dtype=float)
    axes = ["z", "x", "y", "z", "x", "y"]  # at the end of each edge: across it and the next
    b, parent, place = Builder("bricard"), "world", Placement(p=edges[0])
    for k in range(1, 6):
        b.link(f"bar{k}", parent, Revolute(axes[k - 1]), placement=place, inertia=rod(length, edges[k], 0.02))
        parent, place = f"bar{k}", Placement(p=edges[k])
    b.independent.append("bar1_joint")
    if cut == "revolute":
        b.frame("end", parent, place)
        b.constraints.append(Closure("end", "world", "revolute", axes[5]))
        return b.build()
    b.link("bar6", parent, Revolute(axes[5]), placement=place, inertia=rod(length, edges[0], 0.02))
    b.constraints.append(Closure("bar6", "world", "fixed"))
    return b.build()


@checked(thigh=LENGTH, shank=LENGTH, lever=LENGTH, base=BASE)
def planar_leg(thigh: float = 0.3, shank: float = 0.3, lever: float = 0.06, *, base: str = "fixed") -> Model:
    """A leg in the xz plane whose knee is driven from the hip through a parallelogram: nv = 4, mobility 2.

    `thigh` and `crank` turn about the hip (y), `rod` hangs on the crank and pushes a lever behind the knee of
    `shank`: 5 rows of rank 2. Closed when crank = knee + thigh and rod = -knee, neutral q (leg straight down) among
    them. With base="planar" or "free" a body `base` of 2 kg carries the leg. Frame `foot`.
    """
    b = Builder("planar leg")
    hip = attach_base(b, base, ball(2.0, 0.1), UPRIGHT if base == "planar" else None)
    down = Placement.at(rpy=(-np.pi / 2, 0, 0)) if base == "planar" else Placement()
    b.link("thigh", hip, Revolute("y"), placement=down, inertia=rod(1.0, (0, 0, -thigh)), joint_name="hip")
    b.link(
        "shank",
        "thigh",
        Revolute("y"),
        placement=Placement.at((0, 0, -thigh)),
        joint_name="knee",
        inertia=rod(0.5, (0, 0, -shank)),
        actuated=False,
    )
    b.link("crank", hip, Revolute("y"), placement=down, inertia=rod(0.1, (-lever, 0, 0), 0.01), joint_name="crank")
    b.link(
        "rod",
        "crank",
        Revolute("y"),
        placement=Placement.at((-lever, 0, 0)),
        joint_name="rod",
        inertia=rod(0.2, (0, 0, -thigh), 0.01),
        actuated=False,
    )
    b.frame("rod_end", "rod", Placement.at((0, 0, -thigh)))
    b.frame("knee_lever", "shank", Placement.at((-lever, 0, 0)))
    b.frame("foot", "shank", Placement.at((0, 0, -shank)))
    b.constraints.append(Closure("rod_end", "knee_lever", "revolute", "y", name="knee_loop"))
    b.independent += ["hip", "crank"]
    return b.build()


@checked(kind=choice("kind of gripper", ("parallel", "four_bar")), base=BASE)
def gripper(kind: str = "parallel", *, base: str = "fixed") -> Model:
    """A gripper with two fingers, the right one coupled to the left: one motor.

    "parallel": fingers slide apart on rails, joints `left_slide` and `right_slide` (metres, 0 is closed): nv = 2,
    one coupling. "four_bar": each finger is carried by two parallel bars of 60 mm, 25 mm apart, joints
    `<side>_drive` and `<side>_finger` in front, `<side>_follow` behind, closed by a hinge: nv = 6, a coupling and two
    loops of 5 rows of rank 2. Both have mobility 1 (more on a floating palm) and are closed at neutral q. Frames:
    `left_tip`, `right_tip`. The fingers point along z and move along y.
    """
    b = Builder(f"{kind} gripper")
    b.link("palm", joint=base_joint(base), inertia=box(0.6, (0.06, 0.12, 0.06), (0, 0, -0.03)), actuated=False)
    for side, y in (("left", 1), ("right", -1)):
        finger, tip = box(0.05, (0.02, 0.01, 0.06), (0, 0, 0.03)), Placement.at((0, 0, 0.06))
        if kind == "parallel":
            b.link(
                f"{side}_finger",
                "palm",
                Prismatic("y" if y > 0 else "-y"),
                joint_name=f"{side}_slide",
                placement=Placement.at((0, 0.005 * y, 0)),
                inertia=finger,
                limits=Limits(0, 0.04, 50, 0.2),
            )
        else:
            axis, up, limits = "-x" if y > 0 else "x", Placement.at((0, 0, BAR)), Limits(-0.7, 0.7, 5, 2)
            for name, shift in (("drive", 0.0), ("follow", GAP)):
                b.link(
                    f"{side}_{name}_bar",
                    "palm",
                    Revolute(axis),
                    placement=Placement.at((0, (0.03 + shift) * y, 0)),
                    inertia=rod(0.03, (0, 0, BAR), 0.004),
                    joint_name=f"{side}_{name}",
                    limits=limits,
                    actuated=name == "drive",
                )
            b.link(
                f"{side}_finger",
                f"{side}_drive_bar",
                Revolute(axis),
                placement=up,
                inertia=finger,
                joint_name=f"{side}_finger",
                limits=limits,
                actuated=False,
            )
            b.frame(f"{side}_heel", f"{side}_finger", Placement.at((0, GAP * y, 0)))
            b.frame(f"{side}_follow_end", f"{side}_follow_bar", up)
            b.constraints.append(Closure(f"{side}_heel", f"{side}_follow_end", "revolute", "x", name=f"{side}_loop"))
        b.frame(f"{side}_tip", f"{side}_finger", tip)
    motor = "slide" if kind == "parallel" else "drive"
    b.constraints.append(Coupling(f"right_{motor}", {f"left_{motor}": [1.0]}, name="mimic"))
    b.independent.append(f"left_{motor}")
    return b.build()


def meeting(centre: np.ndarray, radius: float, other: np.ndarray, other_radius: float, second: bool) -> np.ndarray:
    """An intersection of two circles: left of the line from `centre` to `other`, or the second one."""
    d = other - centre
    span = float(np.linalg.norm(d))
    slack = 1e-12 * span
    if not 0 < abs(radius - other_radius) + slack <= span + 2 * slack <= radius + other_radius + 3 * slack:
        raise InputError(
            f"the linkage cannot be assembled: bars of {radius:g} and {other_radius:g} m do not meet over "
            f"a distance of {span:g} m; change a length or the angle"
        )
    along = (span**2 + radius**2 - other_radius**2) / (2 * span)
    up = np.sqrt(max(radius**2 - along**2, 0.0))
    u = d / span
    return np.asarray(centre + along * u + (-up if second else up) * np.array([-u[1], u[0]]))


def _bearing(d: np.ndarray) -> float:
    return float(np.arctan2(d[1], d[0]))


def _bar(
    b: Builder, name: str, parent: str, placement: Placement, length: float, angle: float, actuated: bool = False
) -> None:
    """A bar along its own x that turns about z, at `angle` from the x axis of `placement` when q is zero."""
    b.link(
        name,
        parent,
        Revolute("z"),
        placement=placement @ Placement.at(rpy=(0, 0, angle)),
        inertia=rod(length, (length, 0, 0), 0.02),
        actuated=actuated or parent == "world",
    )


def _join(b: Builder, a: str, a_length: float, c: str, c_length: float, cut: str, angle_between: float) -> None:
    """The ends of two bars joined; the frame on the second has the axes of the first at neutral q."""
    end = Placement.at((a_length, 0, 0))
    if cut == "fixed":
        b.link(f"{a}_pin", a, Revolute("z"), placement=end, inertia=cylinder(0.05, 0.01, 0.05), actuated=False)
        b.frame(f"{a}_end", f"{a}_pin")
    else:
        b.frame(f"{a}_end", a, end)
    b.frame(f"{c}_end", c, Placement.at((c_length, 0, 0), (0, 0, angle_between)))
    b.constraints.append(Closure(f"{a}_end", f"{c}_end", cut, "z", "x"))
