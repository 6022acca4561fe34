"""Inverse kinematics: one target, a thousand in one call, and a robot with closed loops."""

from __future__ import annotations

import numpy as np

import linkwork as lw
from linkwork.joints import Revolute
from linkwork.model import Limits
from linkwork.robots import mechanisms


def arm() -> lw.Model:
    """Six hinges with limits, and a tool."""
    builder, before = lw.Builder("arm"), "world"
    for k, (axis, length) in enumerate(zip("zyyxyx", (0.3, 0.1, 0.4, 0.3, 0.1, 0.1), strict=True)):
        builder.link(
            f"link{k}",
            before,
            Revolute(axis),
            placement=lw.Placement.at((0, 0, length)),
            inertia=lw.BodyInertia(1.0),
            limits=Limits(-2.8, 2.8),
        )
        before = f"link{k}"
    builder.frame("tool", before, lw.Placement.at((0.05, 0, 0.1)))
    return builder.build()


model = arm()
found = lw.ik(model, {"tool": lw.Placement.at((0.4, 0.2, 0.6), (0.3, 0.2, 0.1))})
print(f"one pose: converged {found.converged}, {found.iterations} steps, error {found.error:.1e}")

poses = lw.forward_kinematics(model, "tool")(model.random_q(0, batch=1000))
targets = np.tile(np.eye(4), (1000, 1, 1))
targets[:, :3, 3], targets[:, :3, :3] = poses.positions, poses.rotations
many = lw.ik(model, {"tool": targets})
print(f"a thousand poses: {many.converged.sum()} converged, {many.iterations.mean():.0f} steps on average")

linkage = mechanisms.four_bar()
there = lw.assemble(linkage, linkage.neutral() + 0.3)
place = lw.forward_kinematics(linkage, "rocker")(there)
closed = lw.ik(linkage, {"rocker": lw.Placement(place.rotations, place.positions)})
gap = np.abs(lw.constraint_error(linkage)(closed.q, np.zeros(linkage.nv)).phi).max()
print(f"a closed loop: converged {closed.converged}, the loop is open by {gap:.1e}")
