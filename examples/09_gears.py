"""Rotors, gears and belts: exact dynamics in independent coordinates, and an approximation."""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import belt_chain

arm = belt_chain(4, ratio=6.0)  # four links, each with a motor and a belt: eight bodies, four couplings
tree = lw.clusters(arm)
print(tree.describe())  # which bodies move together, and how many of their joints are independent
print("independent:", ", ".join(tree.independent))

# positions and velocities of the independent joints say it all
y, ydot = np.array([0.3, -0.5, 0.4, 0.2]), np.array([1.0, -2.0, 0.5, 1.5])
q, v = lw.expand(arm, y, ydot)

# motors pull on the independent joints; gears are part of the recursion, so nothing drifts
tau = np.zeros(arm.nv)
tau[tree.velocities] = [5.0, -2.0, 1.0, 0.5]
fd = lw.forward_dynamics(arm, method="c_aba")
a = fd(q, v, tau).a
print("accelerations:", a[tree.velocities].round(3), f"  ({fd.operations} operations)")

# and back: inverse dynamics gives the forces of the independent joints
print("forces again:", lw.inverse_dynamics(arm, method="c_rnea")(q, v, a).tau[tree.velocities].round(6))

# the usual approximation, rotors as armature, is off by what belts couple and by what rotors do as gyroscopes
plain = lw.approximate(arm)
rough = lw.forward_dynamics(plain, method="aba")(y, ydot, tau[tree.velocities]).a
print("armature instead:", rough.round(3))
