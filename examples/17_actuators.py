"""Actuators: an arm with a motor, a servo and a tendon, pushed while it holds its pose.

Run: python examples/17_actuators.py
"""

from __future__ import annotations

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import chain

arm = chain(4)
one, two, three, four = (l.joint_name for l in arm.links[1:])
arm = arm.with_actuators(
    lw.Motor(one, gear=20.0, control_range=(-1, 1), name="shoulder"),
    lw.PositionServo(two, kp=300.0, kd=10.0, force_range=(-60, 60), name="elbow"),
    lw.PositionServo({three: 1.0, four: 0.5}, kp=80.0, kd=3.0, name="tendon"),
)
for actuator in arm.actuators:
    print(actuator)

# joint forces of controls, and accelerations with their derivatives by u
q, v, u = np.full(4, 0.2), np.zeros(4), np.array([0.1, 0.2, 0.3])
print("joint forces", lw.actuation(arm)(q, v, u).tau)
slopes = lw.forward_dynamics(arm, actuators=True).derivatives()(q, v, u)
print("da/du", slopes.da_du.shape, "largest", np.abs(slopes.da_du).max())

# gravity is the motor's task; the servos hold still while the tip is pushed for 0.1 s
hold = lw.inverse_dynamics(arm)


def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The motor carries the weight at the first joint and damps it; servos get their pose."""
    return np.array([(hold(q, 0 * v, 0 * v).tau[0] - 5 * v[0] + 100 * (0.2 - q[0])) / 20.0, 0.2, 0.3])


run = lw.simulate(
    arm,
    q,
    controller=controller,
    duration=1.0,
    actuators=True,
    pushes={arm.links[-1].name: lambda t: [0, 0, -15.0 * (0.3 < t < 0.4), 0, 0, 0]},
)
print(
    f"the tip was pushed by {np.abs(run.q[:, 1] - run.q[250, 1]).max():.4f} rad at the elbow, and came back to "
    f"{abs(run.q[-1, 1] - run.q[250, 1]):.4f}"
)
