"""Build a robot, solve its dynamics, check the answer by inverse dynamics."""

import numpy as np

import linkwork as lw

pendulum = lw.Builder("double pendulum")
rod = lw.BodyInertia(mass=1.0, com=np.array([0, 0, -0.5]), I=np.diag([1 / 12, 1 / 12, 1e-3]))
pendulum.link("upper", joint="revolute", axis="y", inertia=rod)
pendulum.link("lower", "upper", joint="revolute", axis="y", placement=lw.Placement.at((0, 0, -1)), inertia=rod)
model = pendulum.build()

q, v, tau = np.array([0.3, -0.2]), np.array([1.0, 0.5]), np.zeros(2)
a = lw.forward_dynamics(model)(q, v, tau).a
print("accelerations", a)
print("the forces behind them", lw.inverse_dynamics(model)(q, v, a).tau)
