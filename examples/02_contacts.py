"""A quadruped on four feet: forces, and one kernel for all contact modes."""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import quadruped, standing

model = quadruped()
q, v, tau = standing(model), np.zeros(model.nv), np.zeros(model.nv)
feet = ["front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot"]
model = model.with_constraints(*(lw.point(f) for f in feet))

fd = lw.forward_dynamics(model, modes=True)
every_mode = np.array([[(k >> i) & 1 for i in range(4)] for k in range(16)], dtype=float)
result = fd(np.tile(q, (16, 1)), v, tau, every_mode)
for mode, a, lam in zip(every_mode, result.a, result.lam, strict=True):
    feet_down = "".join("x" if m else "." for m in mode)
    print(feet_down, f"base falls at {a[2]:7.3f} m/s^2, first foot pushes {lam[2]:7.2f} N")
