"""A four-bar linkage, closed by a hinge: five rows of which two matter."""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import four_bar

model = four_bar()
fd = lw.forward_dynamics(model)
result = fd(model.neutral(), np.zeros(model.nv), np.array([1.0, 0.0, 0.0]))
print(f"{fd.method}: {model.rows} rows, a = {result.a}, {result.iterations} solves, residual {result.residual:.1e}")

reference = lw.forward_dynamics(model, method="kkt", backend="numpy")(model.neutral(), np.zeros(model.nv), [1.0, 0, 0])
print("difference to the dense solution", np.abs(result.a - reference.a).max())
