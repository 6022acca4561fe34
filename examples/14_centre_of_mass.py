"""Task-space inverse dynamics of a humanoid on two feet.

Its centre of mass goes to a reference (carpentier2021).

Tasks are rows, as contacts are. Forces that would cause the accelerations of a posture controller, and rows for both,
give the accelerations nearest to these (in kinetic energy) that keep the feet in place and accelerate the centre of
mass as a PD law asks. The torques that cause them follow from inverse dynamics with the contacts alone.
"""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import humanoid, standing

robot, feet, dt = humanoid(hands=False), (lw.surface("left_foot"), lw.surface("right_foot")), 2e-3
posture = standing(robot)
q, v = posture, np.zeros(robot.nv)

where = lw.constraint_error(robot.with_constraints(lw.CentreOfMass()))
reference = where(q, v).phi + [0.01, 0.05, -0.03]
task = lw.CentreOfMass(reference, stabilisation=lw.Stabilisation(period=0.5))

robot_on_feet = robot.with_constraints(*feet)
forces, wanted = lw.inverse_dynamics(robot), lw.forward_dynamics(robot.with_constraints(*feet, task), method="ltl")
torques = lw.constrained_inverse_dynamics(robot_on_feet)
motion = lw.forward_dynamics(robot_on_feet, method="pv_early")

for step in range(401):
    away = np.linalg.norm(where(q, v).phi - reference)
    if step % 100 == 0:
        print(f"{step * dt:4.1f} s: the centre of mass is {1e3 * away:6.2f} mm from its reference")
    back = np.concatenate([-20 * v[:6], -100 * (q[7:] - posture[7:]) - 20 * v[6:]])
    tau = torques(q, v, wanted(q, v, forces(q, v, back).tau).a).tau
    a = motion(q, v, tau).a
    v = v + dt * a
    q = robot.integrate(q, dt * v)
assert not tau[:6].any(), "the base has no motor"
assert away < 1e-3
