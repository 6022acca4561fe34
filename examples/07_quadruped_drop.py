"""A quadruped falls 10 cm, a little tilted, lands on its feet one after the other, and stands."""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import quadruped, standing

model = quadruped()
stand = standing(model)
feet = ["front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot"]
model = model.with_constraints(*(lw.point(f) for f in feet))


def controller(t, q, v):
    tau = np.zeros(model.nv)
    tau[6:] = 80 * (stand[7:] - q[7:]) - 3 * v[6:]
    return tau


start = stand.copy()
start[2] += 0.1
start[3:7] = [0.05, 0.03, 0.0, np.sqrt(1 - 0.05**2 - 0.03**2)]  # quaternion x, y, z, w
run = lw.simulate(model, start, None, controller, duration=1.0, ground=0.0, projection=True)

for foot in feet:
    first = next(e for e in run.events if e.kind == "touchdown" and e.contact.startswith(foot))
    print(f"{foot:17s} touches down after {first.t:.4f} s")
heights = lw.forward_kinematics(model, feet)(run.q[-1]).positions[:, 2]
rotations = lw.forward_kinematics(model, feet)(run.q[-1]).rotations
carried = sum(float((rotations[k] @ run.lam[-1, 3 * k : 3 * k + 3])[2]) for k in range(4))
print(
    f"at the end the trunk is {run.q[-1, 2]:.3f} m high, the feet within {np.abs(heights).max():.1e} m of the "
    f"ground; they carry {carried:.1f} N of {9.81 * model.mass:.1f} N"
)
