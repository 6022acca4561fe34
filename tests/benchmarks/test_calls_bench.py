"""linkwork bench calls: every function is measured, on a robot that needs no file."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots import mechanisms
from linkwork.robots.mechanisms import quadruped
from linkwork_bench import calls, frameworks


def test_every_function_is_measured() -> None:
    free = quadruped()
    feet = ["front_left_foot", "rear_right_foot"]
    found = calls.costs(free, free.with_constraints(*(lw.point(foot) for foot in feet)), feet[:0], rounds=1)
    assert len(found) == 12
    assert all(0 < c.kernel < c.call for c in found)
    assert all(c.bound > 0 for c in found)


def test_inputs_in_other_forms_are_measured() -> None:
    found = calls.inputs_given(mechanisms.chain(2), rounds=1)
    assert {"float for dt", "list for tau", "lists for all", "arrays by name"} <= {g.inputs for g in found}
    assert all(g.call > 0 for g in found)


def test_frameworks_are_measured():
    pytest.importorskip("jax", reason="this needs jax: pip install -e '.[test]'")
    arm = mechanisms.chain(2)
    found = frameworks.in_jax(lw.forward_dynamics(arm), (np.zeros(2), np.zeros(2), np.ones(2)), 0.1, rounds=1)
    assert {o.what for o in found} >= {"jit(f), a call", "f in lax.scan", "jit(pure_callback), a call"}
    assert all(o.time > 0 for o in found)
