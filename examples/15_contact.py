"""Contact with friction: a thousand quadrupeds fall onto the ground, each in its own way."""

from __future__ import annotations

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import quadruped

model = quadruped()
feet = [lw.Contact(name, friction=0.6) for name in model.frames if name.endswith("foot")]
run = lw.rollout(model, dt=1e-3, contacts=feet, pd=True, record=("forces",))

q0 = model.neutral()
q0[2] += 0.1 - lw.forward_kinematics(model, [c.frame for c in feet])(q0).positions[:, 2].min()
v0 = np.zeros((1000, model.nv))
v0[:, :3] = 0.3 * np.random.default_rng(0).standard_normal((1000, 3))

result = run(np.tile(q0, (1000, 1)), v0, target=q0, kp=60.0, kd=2.0, steps=600, every=100)
weight = model.mass * 9.81
pushed = result.forces[:, -1, :, 2].sum(axis=1) / weight
solved = np.mean(result.residual < 1e-8)
print(
    f"{result.ok.sum()} of 1000 took all steps; for {solved:.1%} of them the laws of contact held to 1e-8 in every step"
)
print(f"after {result.t[-1]:.1f} s the ground carries {np.median(pushed):.2f} of their weight (median)")
