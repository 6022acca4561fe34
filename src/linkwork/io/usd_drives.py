"""Drives of USD joints (UsdPhysics.DriveAPI) as actuators.

    f = stiffness (target + u - q) + damping (target velocity - v)      within +-maxForce

so that u = 0 is what the file says, and u moves its target. A drive without stiffness is a velocity servo, whose u is
added to the target velocity. Drives that are given as accelerations are not modelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwork.model.actuator import EVERYTHING, Actuator

TYPES = {"revolute": "angular", "prismatic": "linear"}
"""The instance of DriveAPI that moves a joint."""


def read_drive(prim: Any, physics: Any, name: str, kind: str, metre: float, kilogram: float) -> Actuator | str | None:
    """The actuator of a joint; None without a drive, or what is not modelled of it."""
    found = [d for d in physics.DriveAPI.GetAll(prim) if d.GetStiffnessAttr().Get() or d.GetDampingAttr().Get()]
    if not found:
        return None
    if len(found) > 1 or kind not in TYPES or not prim.HasAPI(physics.DriveAPI, TYPES[kind]):
        return "drive along an axis that the joint has not"
    (drive,) = found
    if str(drive.GetTypeAttr().Get()) == "acceleration":
        return "drive by accelerations"
    angle, length = (np.pi / 180, metre) if kind == "revolute" else (metre, 1.0)
    force = kilogram * metre * length  # torques have the unit of length twice
    k, d, x, v, most = (
        float(a.Get())
        for a in (
            drive.GetStiffnessAttr(),
            drive.GetDampingAttr(),
            drive.GetTargetPositionAttr(),
            drive.GetTargetVelocityAttr(),
            drive.GetMaxForceAttr(),
        )
    )
    k, d, x, v = k * force / angle, d * force / angle, x * angle, v * angle
    bound = (-most * force, most * force) if np.isfinite(most) else EVERYTHING
    gain, bias = (k, (k * x + d * v, -k, -d)) if k else (d, (d * v, 0.0, -d))
    return Actuator({name: (1.0,)}, np.array([gain]), np.array(bias), force_range=bound, name=name)
