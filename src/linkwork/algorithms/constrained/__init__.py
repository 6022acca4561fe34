"""Forward dynamics under constraints: M vdot + c = tau + J^T lam, J vdot = k."""
