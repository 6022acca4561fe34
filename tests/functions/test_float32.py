"""float32 on real robots, standing on contacts and with loops, and over time: bounds per method, or converged=False.

Errors are relative to the larger of the accelerations with and without the constraints: a robot that is held hardly
moves, and what is left of accelerations that cancel has the rounding of these.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import ConvergenceWarning
from linkwork.robots import mechanisms as mech

BOUNDS = {"pv_early": 5e-3, "prox_bbo": 1e-3, "prox_pv": 1e-4, "prox_ltl": 1e-3, "c_lcaba": 1e-5, "crba_ltl": 1e-5}
"""What docs/promises.md states."""
QUADRUPED = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
ROBOTS = {
    "go2.xml": (None, "pv_early", lw.point, ("FL_foot", "FR_foot", "RL_foot", "RR_foot")),
    "solo12": ("free", "pv_early", lw.point, QUADRUPED),
    "atlas_v4": ("free", "pv_early", lw.surface, ("l_foot", "r_foot")),
    "anymal_b_simple/anymal": ("free", "prox_bbo", lw.point, ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")),
    "iiwa": ("fixed", "prox_ltl", lw.surface, ("lbr_iiwa_link_7",)),
    "cassie.xml": (None, "prox_pv", None, ()),
    "mini_cheetah": ("free", "c_lcaba", None, ()),
    "shadow_hand": (None, "crba_ltl", None, ()),
    "quadruped": (
        "",
        "prox_bbo",
        lw.point,
        ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot"),
    ),
    "four_bar": ("", "prox_ltl", None, ()),
}


def robot(name: str) -> lw.Model:
    base, _, kind, frames = ROBOTS[name]
    if base == "":
        model = getattr(mech, name)()
    else:
        try:
            model = lw.load(name, base=base, passive=False)
        except lw.LinkworkError as problem:
            pytest.skip(f"the robot is not on this machine: {problem}")
    return model.without_constraints().with_constraints(*(kind(f) for f in frames)) if kind else model


@pytest.mark.parametrize("name", ROBOTS)
def test_methods_keep_their_bounds_or_say_that_they_do_not(name):
    model, method = robot(name), ROBOTS[name][1]
    q, v = lw.random_state(model, 0, batch=6)
    tau = np.random.default_rng(5).normal(size=v.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = lw.forward_dynamics(model, method=method, dtype="float32")(q, v, tau)
    free = lw.forward_dynamics(model.without_constraints(), method="crba_ltl", backend="numpy")(q, v, tau).a
    right = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a if model.rows else free
    scale = np.maximum(np.abs(right), np.abs(free)).max(axis=1)
    errors, converged = np.abs(result.a - right).max(axis=1) / scale, np.asarray(result.converged)
    assert result.a.dtype == np.float32
    assert (errors[converged] < BOUNDS[method]).all(), errors
    assert converged.mean() >= 0.5


MOVING = {
    "chain": lambda: mech.chain(7),
    "geared chain": lambda: mech.geared_chain(5),
    "four-bar": lambda: mech.four_bar(1.0, 0.5, 1.0, 0.9),
    "quadruped in the air": mech.quadruped,
    "quadruped on its feet": lambda: robot("quadruped"),
}
DRIFT = 2e-5
"""Of positions (rad, m) after a tenth of a second in steps of 1 ms."""


@pytest.mark.parametrize("name", MOVING)
def test_rollouts_follow_those_of_float64(name):
    model = MOVING[name]()
    if name == "quadruped on its feet":
        q = np.tile(mech.standing(mech.quadruped(), 0.5), (4, 1))
        v = lw.project_velocity(model, q, np.random.default_rng(1).normal(size=(4, model.nv)))
    else:
        q, v = lw.random_state(model, 0, batch=4)
    one, two = (lw.rollout(model, dtype=kind)(q, 0.3 * v, steps=100, every=100) for kind in ("float32", "float64"))
    assert one.q.dtype == np.float32
    assert one.ok.all()
    np.testing.assert_allclose(one.q, two.q, atol=DRIFT)
    np.testing.assert_allclose(one.v, two.v, atol=100 * DRIFT)
