"""Spherical joint by yaw, pitch and roll.

Q = [yaw pitch roll] about z, then y, then x of the turned frames.

v is dq/dt. The map from v to angular velocity is singular where the pitch is a quarter turn, as for all three angles;
`Spherical` has no such posture.
"""

from __future__ import annotations

from linkwork.joints.composite import Composite
from linkwork.joints.revolute import Revolute


class SphericalZYX(Composite):
    kind, nq, nv = "spherical_zyx", 3, 3

    def __init__(self) -> None:
        super().__init__(Revolute("z"), Revolute("y"), Revolute("x"))
