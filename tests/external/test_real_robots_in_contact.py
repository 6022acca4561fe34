"""The papers' robots with 0 to 4 feet and hands held: every method against Pinocchio's constraintDynamics."""

from __future__ import annotations

import numpy as np
import pytest
from pin_model import closure, constraint_dynamics, to_pinocchio

import linkwork as lw
from helpers import EPS, col, cond, motion
from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import Prox, run
from linkwork.algorithms.tree.crba import crba
from linkwork.constraints import jacobian

FEET_12 = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
ROBOTS = {
    "iiwa": ("fixed", lw.surface, ("lbr_iiwa_link_7",)),
    "ur5": ("fixed", lw.point, ("tool0",)),
    "go1": ("free", lw.point, ("FL_foot", "FR_foot", "RL_foot", "RR_foot")),
    "solo12": ("free", lw.point, FEET_12),
    "anymal_b_simple/anymal": ("free", lw.point, ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")),
    "atlas_v4": ("free", lw.surface, ("l_foot", "r_foot", "l_hand", "r_hand")),
    "icub_reduced": ("free", lw.surface, ("l_sole", "r_sole", "l_hand", "r_hand")),
    "talos_reduced": (
        "free",
        lw.surface,
        ("left_sole_link", "right_sole_link", "gripper_left_base_link", "gripper_right_base_link"),
    ),
}
METHODS = [m for m in registry.methods("forward_dynamics").values() if m.rows != "none" and not m.soft]


def load(name: str, base: str) -> lw.Model:
    try:
        return lw.load(name, base=base, passive=False).without_constraints()
    except lw.LinkworkError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")


@pytest.mark.parametrize("name", ROBOTS)
def test_every_method_agrees_with_pinocchio(name) -> None:
    base, kind, frames = ROBOTS[name]
    robot = load(name, base)
    rng = np.random.default_rng(1)
    for held in range(len(frames) + 1):
        model = robot.with_constraints(*(kind(f) for f in frames[:held]))
        q, v, tau = model.random_q(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
        pmodel = to_pinocchio(model)
        cut = "fixed" if kind is lw.surface else "spherical"
        constraints = [closure(model, pmodel, f, "world", cut) for f in frames[:held]]
        expected, _ = constraint_dynamics(pmodel, constraints, q, v, tau)
        at = motion(model, q, v)
        M, J = crba(at), jacobian(at)
        W = J @ np.linalg.inv(np.linalg.cholesky(M)).T
        kappa = cond(M) * cond(W) ** 2
        for method in METHODS:
            if method.refusal(model):
                continue
            options = {} if method.prox is None else {"mu": method.prox.mu}
            out = method.load()(motion(model, q, v), col(tau), **options)
            a = run(out, Prox(tolerance=1e-12, max_iterations=12))[0] if method.prox is not None else out[0]
            worst = max(kappa, 0.0 if method.prox is None else method.prox.mu / np.linalg.eigvalsh(M)[0])
            # Pinocchio's own proximal iteration stops at 1e-10 or so of the largest acceleration
            bound = 100 * worst * EPS + 1e-9
            scale = max(1.0, float(np.abs(expected).max()))
            assert np.abs(a[:, 0] - expected).max() <= bound * scale, (name, held, method.name)
