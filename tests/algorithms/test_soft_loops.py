"""Soft loops and contacts: their limits, their modes, and what the planner takes."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots import mechanisms as mech
from linkwork.robots import scenarios

EPS = np.finfo(float).eps
SOFT = ("lcaba_soft", "bbo_soft", "ltl_soft")


def state(model: lw.Model, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return model.random_q(rng), rng.uniform(-1, 1, model.nv), rng.uniform(-1, 1, model.nv)


MODELS = {
    "four-bar": mech.four_bar,
    "stem with loops": lambda: mech.stem(3, 3, branch_links=2),
    "quadruped": lambda: mech.quadruped().with_constraints(*(lw.point(f) for f in mech.quadruped().frames)),
}


def off(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("name", MODELS)
def test_without_stiffness_rows_vanish(name) -> None:
    model = MODELS[name]()
    q, v, tau = state(model)
    free = lw.forward_dynamics(model.without_constraints(), method="aba", backend="numpy")(q, v, tau).a
    for method in SOFT:
        found = lw.forward_dynamics(model, method=method, R=1e14, backend="numpy")(q, v, tau)
        assert off(found.a, free) < 1e-9, method
        assert np.abs(found.lam).max() < 1e-9


@pytest.mark.parametrize("name", ["four-bar", "quadruped"])
def test_without_softness_bbo_soft_is_rigid_to_rounding(name) -> None:
    """R is added, never divided by: the error falls with R to rounding, where penalties 1/R lose all digits."""
    model = MODELS[name]()
    q, v, tau = state(model)
    rigid = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)
    errors = []
    for R in (1e-4, 1e-8, 1e-15):
        found = lw.forward_dynamics(model, method="bbo_soft", R=R, backend="numpy")(q, v, tau)
        errors.append(max(off(found.a, rigid.a), off(found.lam, rigid.lam)))
    assert errors[0] > 1e3 * errors[1] > 1e3 * errors[2]
    assert errors[2] < 1e-10


@pytest.mark.parametrize("method", ["lcaba_soft", "bbo_soft"])
def test_soft_loops_are_switched_at_run_time(method) -> None:
    model = mech.stem(3, 3, branch_links=2)
    q, v, tau = state(model, 1)
    fd = lw.forward_dynamics(model, method=method, R=1e-2, modes=True)
    for off_now in range(len(model.constraints)):
        active = np.ones(len(model.constraints))
        active[off_now] = 0.0
        some = model.without_constraints().with_constraints(*np.delete(np.array(model.constraints, object), off_now))
        expected = lw.forward_dynamics(some, method="ltl_soft", R=1e-2, backend="numpy")(q, v, tau).a
        assert off(fd(q, v, tau, active).a, expected) < 1e-9


def test_soft_loops_of_digit_are_planned_by_operations() -> None:
    """In joint space they took 36 711; the planner takes what is fastest."""
    try:
        model = scenarios.digit()
    except lw.LinkworkError as missing:
        pytest.skip(str(missing))
    counts = {m: lw.forward_dynamics(model, method=m, R=1e-3).operations for m in SOFT}
    assert counts["bbo_soft"] < 0.55 * counts["ltl_soft"]
    assert counts["lcaba_soft"] < 0.7 * counts["ltl_soft"]
    assert lw.forward_dynamics(model, R=1e-3).method == "bbo_soft"
