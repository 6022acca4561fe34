"""Configurations of the mechanisms of this package: joints by name, feet on the ground."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwork.checks import NAMES, NUMBER, POSITION, checked, mapping, optional
from linkwork.errors import InputError, UnsupportedError
from linkwork.joints import Free
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.robots.mechanisms.humanoids import SIDES
from linkwork.robots.mechanisms.parts import frame_pose
from linkwork.robots.mechanisms.quadrupeds import LEGS


@checked(model=MODEL, joints=mapping(NUMBER, "a dictionary from names of joints to their positions"))
def posture(model: Model, joints: Mapping[str, float]) -> np.ndarray:
    """Neutral q, but for the joints with one degree of freedom given by name."""
    q = model.neutral()
    for name, value in joints.items():
        where = model.topology.q_slices[model.joint(name)]
        if where.stop - where.start != 1:
            raise InputError(f"joint '{name}' is not described by one number")
        q[where] = value
    return q


@checked(model=MODEL, q=POSITION, feet=NAMES)
def grounded(model: Model, q: np.ndarray, feet: tuple[str, ...]) -> np.ndarray:
    """`q` with the free base, first in it, moved up or down until the lowest foot is at z = 0."""
    if not feet:
        raise InputError("name at least one foot")
    if not isinstance(model.links[min(1, model.nlinks)].joint, Free):
        raise UnsupportedError(f"'{model.name}' has no free base that could be moved up or down")
    out = np.array(q, dtype=float)
    out[2] -= min(float(frame_pose(model, f, out).p[2]) for f in feet)
    return out


@checked(model=MODEL, crouch=optional(NUMBER))
def standing(model: Model, crouch: float | None = None) -> np.ndarray:
    """q = [x y z  qx qy qz qw, joints] of `quadruped()`, `humanoid()` or `biped()` with all feet on z = 0.

    The feet are below the hips and the trunk is level. `crouch` (rad) is how far the thighs lean from the vertical:
    0.8 if not given for the quadruped, whose knees point backwards, 0.3 for the others, whose knees point ahead; elbows
    are bent a little. Linkages of the legs are closed.
    """
    four_legged = all(f"{leg}_foot" in model.frames for leg in LEGS)
    if not four_legged and not all(f"{side}_foot" in model.frames for side in SIDES):
        raise UnsupportedError(
            f"'{model.name}' is neither quadruped() nor humanoid() nor biped(), which `standing` knows; "
            "use `posture` and `grounded` for others"
        )
    lean = (0.8 if four_legged else 0.3) if crouch is None else crouch
    if not 0 <= lean < np.pi / 2:
        raise InputError(f"crouch is the angle of the thighs with the vertical, from 0 to below pi/2, not {crouch!r}")
    angles: dict[str, float] = {}
    if four_legged:
        for leg in LEGS:
            angles |= {f"{leg}_hip_pitch": lean, f"{leg}_knee": -2 * lean}
        return grounded(model, posture(model, angles), tuple(f"{leg}_foot" for leg in LEGS))
    joints = {l.joint_name for l in model.links}
    for p in ("left_", "right_"):
        angles |= {p + "hip_pitch": -lean, p + "knee": 2 * lean, p + "ankle_pitch": -lean}
        if p + "elbow" in joints:
            angles |= {p + "elbow": -0.4}
        if p + "crank" in joints:
            angles |= {p + "crank": 2 * lean, p + "rod": -2 * lean}
    return grounded(model, posture(model, angles), ("left_foot", "right_foot"))
