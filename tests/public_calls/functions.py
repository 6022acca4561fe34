"""The factories of functions, and what they return."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import linkwork as lw
from public_calls.common import NUMPY_BACKEND, OPTIONS, URDF, Call, arm, robot


def factories() -> Iterator[Call]:
    m, q, v = robot(), robot().random_q(0), np.full(robot().nv, 0.1)
    a, flat = arm(), np.full(2, 0.1)
    prox = lw.Prox()
    yield Call(
        "forward_dynamics",
        lw.forward_dynamics,
        {
            "model": m,
            "method": "prox_ltl",
            "use": "state",
            "independent": False,
            **OPTIONS,
            "external_forces": False,
            "prox": prox,
            "R": None,
            "modes": False,
            "warm_start": False,
            "frames": "given",
            "measure": False,
            "parameters": ("inertia", "gravity"),
            "targets": True,
            "actuators": False,
        },
    )
    yield Call(
        "forward_dynamics softly",
        lw.forward_dynamics,
        {"model": m, "R": [1.0, 2.0, 3.0], "method": "ltl_soft", **NUMPY_BACKEND},
    )
    yield Call(
        "inverse_dynamics",
        lw.inverse_dynamics,
        {
            "model": a,
            "method": "rnea",
            **OPTIONS,
            "external_forces": False,
            "frames": "given",
            "parameters": ("damping",),
        },
    )
    yield Call(
        "constrained_inverse_dynamics",
        lw.constrained_inverse_dynamics,
        {
            "model": a,
            "actuated": ["link1_joint", "link2_joint"],
            "weight": 1e-3,
            "underactuated": True,
            **OPTIONS,
            "external_forces": False,
            "parameters": ("stiffness",),
        },
    )
    given = {"parameters": ("inertia", "armature")}
    yield Call(
        "impulse",
        lw.impulse,
        {"model": m, "restitution": 0.5, "method": "prox_ltl", **OPTIONS, "prox": prox, "modes": False, **given},
    )
    weighted = {"model": m, "method": "ltl", "damping": True, "modes": True, **OPTIONS, "frames": "given", **given}
    yield Call("delassus", lw.delassus, {**weighted, "measure": False})
    yield Call("operational_space_inertia", lw.operational_space_inertia, {**weighted, "output": "matrix"})
    yield Call("factored_solve", lw.factored_solve, {"model": m, **OPTIONS})
    yield Call("kkt_solve", lw.kkt_solve, {"model": m, "diagonal": True, **OPTIONS})
    yield Call(
        "mass_matrix",
        lw.mass_matrix,
        {
            "model": m,
            "method": "crba",
            "packed": False,
            **OPTIONS,
            "frames": "given",
            **given,
        },
    )
    yield Call("mass_pattern", lw.mass_pattern, {"model": m})
    columns = {"parameters": ("inertia", "damping")}
    linear = {"model": a, "kind": "torque", **columns, "projected": True}
    yield Call("regressor", lw.regressor, {**linear, "packed": True, **OPTIONS})
    yield Call("regressor_pattern", lw.regressor_pattern, linear)
    yield Call("parameter_vector", lw.parameter_vector, {"model": a, **columns})
    yield Call("base_parameters", lw.base_parameters, {"model": a, **columns})
    rng = np.random.default_rng(0)
    states = {n: rng.normal(size=(20, 2)) for n in ("q", "v", "a", "tau")}
    moved = {n: x for n, x in states.items() if n != "tau"}
    yield Call("excitation", lw.excitation, {"model": a, **moved, **columns, **NUMPY_BACKEND})
    driven = {"joints": ["link1_joint", "link2_joint"], "spread": 0.5}
    yield Call("identify", lw.identify, {"model": a, **states, **columns, **driven, **NUMPY_BACKEND})
    yield Call("constraint_jacobian", lw.constraint_jacobian, {"model": m, **OPTIONS})
    yield Call("constraint_error", lw.constraint_error, {"model": m, **OPTIONS})
    yield Call("difference", lw.difference, {"model": m, **OPTIONS})
    yield Call("integrate", lw.integrate, {"model": m, **OPTIONS})
    yield Call("forward_kinematics", lw.forward_kinematics, {"model": m, "frames": ["tip"], **OPTIONS})
    yield Call("forward_kinematics of one", lw.forward_kinematics, {"model": m, "frames": "tip", **OPTIONS})
    where = {"model": m, "frames": ["tip", "arm"], "reference": "world", **OPTIONS}
    yield Call("terms", lw.terms, {"names": ["M", "J"], **where})
    yield Call("frame_velocity", lw.frame_velocity, where)
    yield Call("frame_jacobian", lw.frame_jacobian, where)
    yield Call("frame_acceleration", lw.frame_acceleration, {**where, "classical": True})
    for name in ("centre_of_mass", "centroidal_momentum", "energy", "coriolis_matrix", "gravity_forces"):
        yield Call(name, getattr(lw, name), {"model": m, **OPTIONS})
    yield Call("bias_forces", lw.bias_forces, {"model": m, **OPTIONS})
    yield Call("inverse_mass_matrix", lw.inverse_mass_matrix, {"model": m, **OPTIONS})
    yield Call(
        "plan",
        lw.plan,
        {
            "model": a,
            "task": "forward_dynamics",
            "use": "state",
            "independent": False,
            "soft": False,
            "modes": False,
            "measure": False,
        },
    )
    yield Call("best_cuts", lw.best_cuts, {"source": URDF, "use": "state", "independent": False, "base": "fixed"})

    fd = lw.forward_dynamics(m, method="ltl", backend="numpy", external_forces=True)
    prox_fd = lw.forward_dynamics(m, method="prox_ltl", backend="numpy", modes=True)
    yield Call("Function()", fd, {"q": q, "v": v, "tau": v, "fext": np.zeros(18)})
    yield Call("Function() in order", lambda q, v, tau: fd(q, v, tau), {"q": q, "v": v, "tau": v})
    yield Call("Function() with modes", prox_fd, {"q": q, "v": v, "tau": v, "active": [1.0]})
    yield Call("Function.derivatives", fd.derivatives, {"wrt": ["q", "tau"]})
    yield Call("Function.jvp", fd.jvp, {"wrt": ["q"]})
    yield Call("Function.vjp", fd.vjp, {"wrt": ["v"]})
    yield Call("Function.hvp", fd.hvp, {"wrt": ["v"]})
    slopes, back = fd.derivatives(["v"]), fd.vjp(["q"])
    yield Call("Function.derivatives()", slopes, {"q": q, "v": v, "tau": v})
    yield Call("Function.vjp()", back, {"q": q, "v": v, "tau": v, "w_a": v, "w_lam": np.ones(3)})
    yield Call("Function.casadi", prox_fd.casadi, {"iterations": 3})
    external = lw.mass_matrix(a).casadi_external
    yield Call("Function.casadi_external", external, {"wrt": ["q"], "gauss_newton": True})
    traced = lw.forward_dynamics(m, method="prox_ltl", backend="casadi")
    yield Call("Function() by CasADi", traced, {"q": q, "v": v, "tau": v})
    two = {n: np.stack([x, x, x]) for n, x in {"q": q, "v": v, "tau": v}.items()}
    yield Call("Function() of a batch", fd, dict(two))
    native = lw.forward_dynamics(a, method="aba")
    yield Call("a kernel's Function()", lambda q, v, tau: native(q, v, tau), {"q": flat, "v": flat, "tau": flat})
    yield Call("a kernel's Function() by name", native, {"q": flat, "v": flat, "tau": flat})
    free = lw.forward_dynamics(m, method="prox_ltl")
    yield Call("a free robot's kernel", lambda q, v, tau: free(q, v, tau), {"q": q, "v": v, "tau": v})
    yield Call("a free robot's kernel for batches", free, dict(two))
    small = lw.forward_dynamics(m, method="ltl", dtype="float32")
    yield Call("a kernel of float32", lambda q, v, tau: small(q, v, tau), {"q": q, "v": v, "tau": v})
    yield Call("a kernel's mass_matrix()", lw.mass_matrix(m), {"q": q})
    yield Call("a kernel's forward_kinematics()", lw.forward_kinematics(m), {"q": q})
    yield Call("a kernel's terms()", lw.terms(m, ["J", "g"], "tip"), {"q": q})
    yield Call("a kernel's constraint_error()", lw.constraint_error(m), {"q": q, "v": v})
    into = {"out": native(flat, flat, flat)}
    yield Call("Function() into", lambda out: native(flat, flat, flat, out=out), into)
    yield Call("Function.bind", native.bind, {"batch": 3})
    yield Call("Kernel()", lambda q, v, tau: native.kernel(q, v, tau), {"q": flat, "v": flat, "tau": flat})
