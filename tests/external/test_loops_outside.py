"""Closed-loop robots against Pinocchio's solver and against MuJoCo's own matrices, solved exactly."""

from __future__ import annotations

import numpy as np
import pytest
from pin_model import closure, constraint_dynamics, to_pinocchio

import linkwork as lw
from helpers import EPS, col, cond, motion
from linkwork import interop
from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import Prox, run
from linkwork.algorithms.tree.crba import crba
from linkwork.constraints import Closure, jacobian
from linkwork.io import zoo

METHODS = [
    m
    for m in registry.methods("forward_dynamics").values()
    if m.rows == "any" and m.redundant and not m.soft and m.name != "kkt"
]


def robot(name: str) -> lw.Model:
    try:
        return lw.load(name, passive=False)
    except lw.LinkworkError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")


def solve(method: registry.Method, model: lw.Model, q, v, tau) -> np.ndarray:
    iteration = method.load()(motion(model, q, v), col(tau), mu=method.prox.mu)
    return run(iteration, Prox(tolerance=1e-10, max_iterations=30))[0][:, 0]


def bound(model: lw.Model, q, v, method: registry.Method) -> float:
    at = motion(model, q, v)
    M = crba(at)
    W = jacobian(at) @ np.linalg.inv(np.linalg.cholesky(M)).T
    return 100 * EPS * max(cond(M) * cond(W) ** 2, method.prox.mu / np.linalg.eigvalsh(M)[0]) + 1e-9


@pytest.mark.parametrize("name", ["cassie", "digit_v3"])
def test_loops_agree_with_pinocchio(name) -> None:
    model = robot(name)
    assert all(isinstance(c, Closure) and c.joint == "spherical" for c in model.constraints)
    pmodel = to_pinocchio(model)
    constraints = [closure(model, pmodel, c.a, c.b, "spherical") for c in model.constraints]
    for seed in range(2):
        q, v = lw.random_state(model, seed)
        tau = np.random.default_rng(seed).normal(size=model.nv)
        expected, _ = constraint_dynamics(pmodel, constraints, q, v, tau)
        for method in METHODS:
            a = solve(method, model, q, v, tau)
            assert np.abs(a - expected).max() <= bound(model, q, v, method) * np.abs(expected).max(), method.name


def test_cassie_agrees_with_the_exact_solution_of_mujocos_matrices() -> None:
    """MuJoCo's constraints are soft; its M, bias and J are not: solved exactly, for a closed state at rest."""
    mujoco = pytest.importorskip("mujoco")
    model = robot("cassie")
    theirs = mujoco.MjModel.from_xml_path(str(zoo.find("cassie").path))
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    theirs.dof_damping[:] = 0
    theirs.jnt_stiffness[:] = 0
    data = mujoco.MjData(theirs)
    map_ = interop.mujoco(model, theirs)
    q, _ = lw.random_state(model, 3)
    v = np.zeros(model.nv)
    data.qpos[:], data.qvel[:] = map_.q_to(q), 0
    mujoco.mj_forward(theirs, data)
    M = np.zeros((theirs.nv, theirs.nv))
    mujoco.mj_fullM(theirs, data, M)
    J = np.array(data.efc_J).reshape(-1, theirs.nv)[: data.ne]
    tau = np.random.default_rng(3).normal(size=model.nv)
    force = map_.tau_to(q, tau) - data.qfrc_bias
    L = np.linalg.cholesky(M)
    free = np.linalg.solve(M, force)
    W = np.linalg.solve(L, J.T).T
    y = np.linalg.lstsq(W, -J @ free, rcond=1e-10)[0]
    expected = map_.a_from(q, v, free + np.linalg.solve(L.T, y))
    for method in METHODS:
        a = solve(method, model, q, v, tau)
        assert np.abs(a - expected).max() <= bound(model, q, v, method) * np.abs(expected).max(), method.name


@pytest.mark.parametrize("ratio", [3.0, 6.0])
def test_an_explicit_rotor_equals_armature(ratio) -> None:
    """A rotor on the same axis, geared 3:1, weighs as much as 9 times its inertia on the joint."""
    inertia, spin = lw.BodyInertia(1.0, np.array([0.3, 0, 0]), np.diag([0.01, 0.02, 0.03])), 2e-3
    geared, plain = lw.Builder("rotor"), lw.Builder("armature")
    for b, armature in ((geared, 0.0), (plain, ratio**2 * spin)):
        b.link("arm", joint="revolute", axis="z", inertia=inertia, armature=armature, joint_name="arm")
    geared.link(
        "rotor",
        joint="revolute",
        axis="z",
        inertia=lw.BodyInertia(0.0, np.zeros(3), np.diag([0, 0, spin])),
        joint_name="rotor",
    )
    model = geared.build().with_constraints(lw.Coupling("rotor", {"arm": [ratio]}))
    q, v, tau = 0.4, 1.3, 0.7
    expected = lw.forward_dynamics(plain.build(), backend="numpy")([q], [v], [tau]).a[0]
    for method in METHODS:
        a = solve(method, model, np.array([q, ratio * q]), np.array([v, ratio * v]), np.array([tau, 0.0]))
        np.testing.assert_allclose(a, [expected, ratio * expected], rtol=1e-6)
