"""Forward dynamics as C99, and as a CasADi function with its derivatives (the extra `casadi`)."""

import tempfile

import casadi

import linkwork as lw
from linkwork.robots.mechanisms import arm

model = arm(7)
fd = lw.forward_dynamics(model)
with tempfile.TemporaryDirectory() as folder:
    for path in fd.export(folder):
        print(path.name, path.stat().st_size, "bytes")

f = fd.casadi()
q, v, tau = (casadi.SX.sym(n, 7) for n in ("q", "v", "tau"))
derivative = casadi.Function("da_dq", [q, v, tau], [casadi.jacobian(f(q, v, tau)[0], q)])
print("da/dq at zero:", derivative(0, 0, 0)[0, :])
