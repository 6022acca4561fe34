"""Closed linkages: four-bar, six-bar, Bricard's over-constrained one, and a gripper."""

from __future__ import annotations

import numpy as np

from linkwork.constraints import Closure
from linkwork.errors import InputError
from linkwork.joints import Revolute
from linkwork.model import Builder, Model, Placement
from linkwork.robots.mechanisms.parts import check_choice, check_lengths, cylinder, rod

UPRIGHT = Placement.at(rpy=(np.pi / 2, 0, 0))
"""The plane of planar linkages in the world: their x is the world's x, their y the world's z, hinges turn about -y."""
PLANAR_CUTS = ("revolute", "spherical", "cylindrical", "universal", "point_on_line", "fixed")
"""Cut joints that close a planar loop and leave it one way to move; "fixed" welds the end to an extra pin."""


def four_bar(ground: float = 1.0, crank: float = 0.5, coupler: float = 1.0, rocker: float = 0.5, *,
             angle: float = np.pi / 3, crossed: bool = False, cut: str = "revolute") -> Model:
    """A planar four-bar linkage in a vertical plane: three hinges and a loop, mobility 1.

    Links `crank` (on the world at the origin), `coupler` (on the crank) and `rocker` (on the world at x = ground),
    1 kg per metre, along their own x. Neutral q is closed, with the crank `angle` above the ground link, and the
    other links as the lengths want it (`crossed` takes the other of the two ways). Frames `coupler_end`,
    `rocker_end` are joined by the cut joint: "revolute" gives 5 rows of rank 2, "spherical" 3; "fixed" gives 6 rows
    of rank 3, between the rocker and a small link `coupler_pin` on a fourth hinge at the coupler's end.
    """
    check_lengths(ground=ground, crank=crank, coupler=coupler, rocker=rocker)
    check_choice("the cut joint of a planar linkage", cut, PLANAR_CUTS)
    pin = crank * np.array([np.cos(angle), np.sin(angle)])
    end = meeting(pin, coupler, np.array([ground, 0.0]), rocker, crossed)
    b = Builder("four-bar")
    _bar(b, "crank", "world", UPRIGHT, crank, angle)
    _bar(b, "coupler", "crank", Placement.at((crank, 0, 0)), coupler, _bearing(end - pin) - angle)
    _bar(b, "rocker", "world", UPRIGHT @ Placement.at((ground, 0, 0)), rocker, _bearing(end - [ground, 0]))
    _join(b, "coupler", coupler, "rocker", rocker, cut, angle_between=_bearing(end - pin) - _bearing(end - [ground, 0]))
    b.independent.append("crank_joint")
    return b.build()


def meeting(centre: np.ndarray, radius: float, other: np.ndarray, other_radius: float, second: bool) -> np.ndarray:
    """Where two circles meet: the way on the left of the line from `centre` to `other`, or the second one."""
    d = other - centre
    span = float(np.linalg.norm(d))
    if not abs(radius - other_radius) <= span * (1 + 1e-12) or not span <= (radius + other_radius) * (1 + 1e-12) or span == 0:
        raise InputError(
            f"the linkage cannot be assembled: bars of {radius:g} and {other_radius:g} m do not meet over a distance of "
            f"{span:g} m; change a length or the angle"
        )
    along = (span**2 + radius**2 - other_radius**2) / (2 * span)
    up = np.sqrt(max(radius**2 - along**2, 0.0))
    u = d / span
    return np.asarray(centre + along * u + (-up if second else up) * np.array([-u[1], u[0]]))


def _bearing(d: np.ndarray) -> float:
    return float(np.arctan2(d[1], d[0]))


def _bar(b: Builder, name: str, parent: str, placement: Placement, length: float, angle: float,
         actuated: bool = False) -> None:
    """A bar along its own x that turns about z, at `angle` from the x axis of `placement` when q is zero."""
    b.link(name, parent, Revolute("z"), placement=placement @ Placement.at(rpy=(0, 0, angle)),
           inertia=rod(length, (length, 0, 0), 0.02), actuated=actuated or parent == "world")


def _join(b: Builder, a: str, a_length: float, c: str, c_length: float, cut: str, angle_between: float) -> None:
    """The ends of two bars joined; the frame on the second has the axes of the first in the neutral position."""
    end = Placement.at((a_length, 0, 0))
    if cut == "fixed":
        b.link(f"{a}_pin", a, Revolute("z"), placement=end, inertia=cylinder(0.05, 0.01, 0.05), actuated=False)
        b.frame(f"{a}_end", f"{a}_pin")
    else:
        b.frame(f"{a}_end", a, end)
    b.frame(f"{c}_end", c, Placement.at((c_length, 0, 0), (0, 0, angle_between)))
    b.constraints.append(Closure(f"{a}_end", f"{c}_end", cut, "z", "x"))
