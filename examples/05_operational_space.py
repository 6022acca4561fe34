"""Operational-space control of an arm's hand with the Delassus matrix: make it accelerate as wished."""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import arm

model = arm(7)
hand = model.links[-1].name
held = model.with_constraints(lw.point(hand))
q, v = model.random_q(1), np.zeros(model.nv)

J = lw.constraint_jacobian(held)(q).J
bias = lw.inverse_dynamics(model)(q, v, np.zeros(model.nv)).tau
wish = np.array([0.5, 0.0, 1.0])
force = lw.operational_space_inertia(held)(q, wish).force
tau = bias + J.T @ force
a = lw.forward_dynamics(model)(q, v, tau).a
print("wished", wish, "got", J @ a)
assert np.allclose(J @ a, wish)
