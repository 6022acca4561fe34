"""Residuals shrink by mu per solve, and penalties cost digits where they are added to inertias."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots.mechanisms import chain_of_loops
from linkwork_bench.convergence import accuracy, residuals


def case():
    model = chain_of_loops(2)
    q, v = lw.random_state(model, 0)
    return model, (q, v, np.random.default_rng(0).normal(size=model.nv))


@pytest.mark.parametrize("method", ["lcaba", "prox_bbo", "prox_ltl", "prox_pv", "prox_ltl_soft"])
def test_each_solve_gains_digits_until_rounding(method) -> None:
    model, state = case()
    first, second, _, *rest = residuals(model, method, state, mu=1e5, iterations=6)
    assert second < 1e-3 * first
    assert max(rest) < 1e-6 * first


def test_penalties_on_inertias_cost_digits_and_damped_multipliers_do_not() -> None:
    model, state = case()
    small, large = accuracy(model, "lcaba", state, (1e4, 1e9))
    assert large > 100 * small
    assert max(accuracy(model, "prox_bbo", state, (1e4, 1e9))) < 1e-9
