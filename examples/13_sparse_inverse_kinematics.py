"""Inverse kinematics of a humanoid with four contacts.

A sparse KKT factorisation with a diagonal in place of M.

Every step is the least motion x, in weights of the joints, with J x = -error (carpentier2021, section IV-D); the
damping makes it short where a limb is nearly straight. All lanes of a batch have targets of their own.
"""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import humanoid

model, rng = humanoid(), np.random.default_rng(0)
held = {"left_foot": lw.Weld, "right_foot": lw.Weld, "left_hand": lw.Connect, "right_hand": lw.Connect}
places = lw.forward_kinematics(model, list(held))

# a posture with bent knees and elbows defines where the hands and feet are to be
bent = model.neutral()
bent[7:] += 0.2 * rng.uniform(-1, 1, model.nq - 7)
bent[2] -= 0.05
for name, position, rotation in zip(held, *places(bent), strict=True):
    model = model.with_frame(f"{name} target", "world", lw.Placement(rotation, position))
model = model.with_constraints(*(hold(name, f"{name} target") for name, hold in held.items()))

# from many postures at once; the base costs more to move than joints
starts = np.array([model.integrate(model.neutral(), 0.1 * rng.normal(size=model.nv)) for _ in range(64)])
weights = np.ones(model.nv)
weights[:6] = 10.0
step, error = lw.kkt_solve(model, diagonal=True), lw.constraint_error(model)
q, still = starts, np.zeros(model.nv)
for iteration in range(60):
    phi = error(q, still).phi
    print(f"step {iteration:2d}: largest error {np.abs(phi).max():.1e}")
    if np.abs(phi).max() < 1e-10:
        break
    x = step(q, still, -phi, [1e-6], weights).x
    q = np.array([model.integrate(*pair) for pair in zip(q, x, strict=True)])
assert np.abs(phi).max() < 1e-10
