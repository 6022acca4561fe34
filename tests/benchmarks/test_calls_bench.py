"""linkwork bench calls: every function is measured, on a robot that needs no file."""

from __future__ import annotations

import linkwork as lw
from linkwork.robots.mechanisms import quadruped
from linkwork_bench import calls


def test_every_function_is_measured() -> None:
    free = quadruped()
    feet = ["front_left_foot", "rear_right_foot"]
    found = calls.costs(free, free.with_constraints(*(lw.point(foot) for foot in feet)), feet[:0], rounds=1)
    assert len(found) == 12
    assert all(0 < c.kernel < c.call for c in found)
    assert all(c.bound > 0 for c in found)
