"""UIUC's Tello humanoid with its differentials.

Two at each leg's hip and knee, from the geometry of their rods.

Sim and Ramos, "Tello leg: the study of design principles and metrics for dynamic humanoid robots", 2022, with the
constants that chignoli2023_clusters uses. Two rotors (angles r_1, r_2, gear 6:1, y_i = r_i / 6) move two joints (angles
p, s) through rods of fixed length: phi(r_1, r_2, p, s) = 0, two rows, which no formula solves for p and s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwork.checks import NAME, checked
from linkwork.constraints import Constraint, Coupling, Custom
from linkwork.io.load import load
from linkwork.model import Model

RATIO = 6.0
"""The gear of every motor; the file gives none for hip clamps and arms, which have the same motors."""


@checked(name=NAME)
def tello(name: str = "tello_humanoid") -> Model:
    """The robot with its four differentials and ten geared joints: nv = 42, mobility 24.

    Rotors are independent.
    """
    model = load(name, passive=False)
    return model.with_constraints(*transmissions())


def transmissions() -> tuple[Constraint, ...]:
    """Differentials of hips and of knees and ankles, and gears of hip clamps and arms, of both sides."""
    out: list[Constraint] = []
    for side in ("left", "right"):
        rotors = [f"{side}-hip-clamp-to-hip-rotor-{n}" for n in (1, 2)]
        links = [f"{side}-hip-clamp-to-gimbal", f"{side}-gimbal-to-thigh"]
        out.append(Custom(hip, (*rotors, *links), name=f"{side} hip differential"))
        rotors = [f"{side}-thigh-to-knee-ankle-rotor-{n}" for n in (1, 2)]
        links = [f"{side}-thigh-to-shin", f"{side}-shin-to-foot"]
        out.append(Custom(knee_ankle, (*rotors, *links), name=f"{side} knee-ankle differential"))
        geared = (
            f"torso-to-{side}-hip-clamp",
            f"torso-to-{side}-shoulder-ry",
            f"{side}-shoulder-ry-to-shoulder-rx",
            f"{side}-shoulder-rx-to-shoulder-rz",
            f"{side}-shoulder-rz-to-elbow",
        )
        out += [Coupling(f"{joint}-rotor", {joint: [RATIO]}) for joint in geared]
    return tuple(out)


def hip(r1: Any, r2: Any, p: Any, s: Any) -> Any:
    """Both rods of the hip, m^2: p tilts the gimbal about x, s swings the thigh about y."""
    sin, cos = np.sin, np.cos
    across = cos(p) * sin(s)

    def rod(y: Any, sign: int) -> Any:
        return (
            57 / 2500 * (sin(y) - across)
            - 8 / 625 * (cos(y) * cos(s) + sin(y) * across)
            - sign * (399 / 20000 + 7 / 625 * (sin(y) - sin(s))) * sin(p)
            - 49 / 5000 * cos(p)
            + 3021 / 160000
        )

    return [rod(r1 / RATIO, 1), rod(r2 / RATIO, -1)]


def knee_ankle(r1: Any, r2: Any, p: Any, s: Any) -> Any:
    """The shin's belt, rad, and the rod to the foot, m^2: p bends the knee, s the ankle, both about y."""
    sin, cos = np.sin, np.cos
    y1, y2, pi = r1 / RATIO, r2 / RATIO, np.pi
    d = (y1 - y2) / 2
    rod = (
        21 / 6250 * cos(d + 1979 * pi / 4500)
        - 13 / 625 * cos(d + 493 * pi / 1500)
        - 273 / 12500 * np.cos(pi / 9)
        - 7 / 2500 * sin(d + s + 231 * pi / 500)
        + 91 / 5000 * sin(s + 2 * pi / 15)
        - 147 / 50000 * sin(s + pi / 45)
        + 163349 / 6250000
    )
    return [p - (y1 + y2) / 2, rod]
